"""Sweeps find the published bugs of operators that people use, and have nothing to say about the repaired ones."""

import os
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from fakeapiserver.sweep import scenario, sweep
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.perturbation import Perturbation
from fakeapiserver.sweep.sweep import Learnt
from tests.examples.operators_with_bugs import (
    a_size_in_between,
    claims_of_pods_that_end,
    claims_of_the_former_database,
    cleanup_of_what_is_left,
    databases,
    decommissioned_in_vain,
    goes_on_after_its_end,
    gone_between_two_reads,
    half_of_a_pair,
    made_again_as_in_the_past,
    orphans_of_a_past_size,
    owned_by_the_former_database,
    part_disabled_in_the_past,
    resize_forgotten,
    restart_forgotten,
    scale_down_refused,
    scaled_down_to_a_past_size,
    status_written_last,
)

# Of each repaired operator's plan, which begins with one case of each class. FAKEAPISERVER_SWEPT_CASES=0: whole plans, which take a minute
# or two each.
CASES = int(os.environ.get("FAKEAPISERVER_SWEPT_CASES", "8")) or None
PATTERNS = [
    a_size_in_between,
    claims_of_pods_that_end,
    claims_of_the_former_database,
    cleanup_of_what_is_left,
    decommissioned_in_vain,
    goes_on_after_its_end,
    gone_between_two_reads,
    half_of_a_pair,
    made_again_as_in_the_past,
    orphans_of_a_past_size,
    owned_by_the_former_database,
    part_disabled_in_the_past,
    resize_forgotten,
    restart_forgotten,
    scale_down_refused,
    scaled_down_to_a_past_size,
    status_written_last,
]


def name(pattern: ModuleType) -> str:
    return pattern.__name__.rpartition(".")[2]


def target(pattern: ModuleType, bug: bool) -> Target:
    document = databases.scenario(pattern.SPEC, pattern.STEPS, getattr(pattern, "NODES", 0))
    return Target(InProcess(partial(pattern.setup, bug=bug)), scenario.of_document(document, Path(), name(pattern)))


def chosen(learnt: Learnt, pattern: ModuleType) -> list[Perturbation]:
    """The surprises that show the bug."""
    return [each for surprise in pattern.FINDINGS for each in sweep.named(learnt, surprise)]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS, ids=name)
def test_a_published_bug_is_found(pattern: ModuleType) -> None:
    buggy = target(pattern, bug=True)
    learnt = sweep.learn(buggy)
    report = sweep.sweep(buggy, learnt, chosen(learnt, pattern))
    assert {finding.causes[0]: finding.title for finding in report.findings} == pattern.FINDINGS


@pytest.mark.parametrize("pattern", [half_of_a_pair, goes_on_after_its_end, gone_between_two_reads], ids=name)
def test_a_surprise_shows_the_bug_and_not_the_repaired_operator(pattern: ModuleType) -> None:
    titles = []
    for bug in (True, False):
        learnt = sweep.learn(target(pattern, bug))
        report = sweep.sweep(target(pattern, bug), learnt, chosen(learnt, pattern))
        titles.append([finding.title for finding in report.findings])
        assert all(result.reached for result in report.results)
    assert titles == [[*pattern.FINDINGS.values()], []]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pattern", PATTERNS, ids=name)
def test_the_repaired_operator_passes_its_plan(pattern: ModuleType) -> None:
    repaired = target(pattern, bug=False)
    learnt = sweep.learn(repaired)
    report = sweep.sweep(repaired, learnt, learnt.plan[:CASES])
    assert [(finding.title, finding.causes) for finding in report.findings] == []
    assert report.unsure == []
