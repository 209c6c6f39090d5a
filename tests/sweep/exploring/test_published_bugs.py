"""`explore` finds the published bugs of operators that people use, and has nothing to say about the repaired ones."""

import os
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from fakeapiserver.sweep import scenario
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.exploring import explore
from fakeapiserver.sweep.in_process import InProcess
from tests.examples.operators_with_bugs import databases
from tests.examples.operators_with_bugs.specs import (
    created_once,
    ineffective_field,
    part_never_removed,
    unset_crashes,
    value_not_removed,
    waits_for_broken_pods,
)

CASES = int(os.environ.get("FAKEAPISERVER_SWEPT_CASES", "8")) or 30
PATTERNS = [
    created_once,
    ineffective_field,
    part_never_removed,
    unset_crashes,
    value_not_removed,
    waits_for_broken_pods,
]
BRIEF = [part_never_removed, unset_crashes]


def name(pattern: ModuleType) -> str:
    return pattern.__name__.rpartition(".")[2]


def target(pattern: ModuleType, bug: bool) -> Target:
    document = databases.scenario(pattern.SPEC, pattern.STEPS, getattr(pattern, "NODES", 0))
    return Target(InProcess(partial(pattern.setup, bug=bug)), scenario.of_document(document, Path(), name(pattern)))


@pytest.mark.parametrize(
    "pattern", [pytest.param(each, id=name(each), marks=() if each in BRIEF else pytest.mark.slow) for each in PATTERNS]
)
def test_a_published_bug_is_found(pattern: ModuleType) -> None:
    with explore.learn(target(pattern, bug=True)) as learnt:
        changes = getattr(pattern, "CHANGES", [*pattern.FINDINGS])
        report = explore.explore(learnt, [each for change in changes for each in explore.named(learnt, change)])
    assert {finding.causes[0]: finding.title for finding in report.findings} == pattern.FINDINGS
    assert report.without_effect == getattr(pattern, "IGNORED", [])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pattern", PATTERNS, ids=name)
def test_the_repaired_operator_passes_its_plan(pattern: ModuleType) -> None:
    with explore.learn(target(pattern, bug=False)) as learnt:
        report = explore.explore(learnt, explore.plan(learnt, CASES))
    assert [(finding.title, finding.causes) for finding in report.findings] == []
    assert report.unsure == []
    assert not {*getattr(pattern, "IGNORED", [])} & {*report.without_effect}
