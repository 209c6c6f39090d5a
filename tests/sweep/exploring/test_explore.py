"""`explore` finds operators' bugs that show with some specs only, and has nothing to say about the operator without one."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from fakeapiserver.sweep import scenario
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.exploring import cases, explore
from fakeapiserver.sweep.exploring.explore import Exploration
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.process import Command
from fakeapiserver.sweep.timing import Timing
from tests.sweep.exploring import sites

HERE = Path(__file__).parent
SITE = yaml.safe_load((HERE / "site.yaml").read_text())
SCENARIO = {"crds": "site-crd.yaml", "nodes": 4, "steps": [{"apply": "site.yaml"}]}


def target(bug: str = "", document: dict[str, Any] = SCENARIO) -> Target:
    return Target(InProcess(partial(sites.setup, bug=bug)), scenario.of_document(document, HERE, "scenario"))


def explored(bug: str, names: list[str]) -> Exploration:
    with explore.learn(target(bug)) as learnt:
        return explore.explore(learnt, [explore.named(learnt, name)[0] for name in names], jobs=1)


NOT_CHANGED = ["no change", 'spec.comment = "example"']
WRONG = {
    "back": (
        ['spec.mirrors = [{"name": "a1"}, {"name": "a2"}]', "spec.mirrors unset"],
        'the ConfigMap default/shop-a2 exists, but should not, after spec.mirrors = [{"name": "a1"}, {"name": "a2"}] and back',
    ),
    "fresh": (
        ['spec.title = "Shop2"'],
        'the ConfigMap default/shop-a1 has data.title "Shop" instead of "Shop2", when changed to spec.title = "Shop2", unlike when '
        "created with it",
    ),
    "crash": (
        ['spec.login = {"user": "example"}'],
        "the operator never notices the change: status.observedGeneration of the Site default/shop stays behind, with "
        'spec.login = {"user": "example"}',
    ),
    "loop": (
        ["spec.size = 8"],
        "created with spec.size = 8, the operator doesn't come to rest: still moving after 10 s: somebody goes on writing",
    ),
    "ready": (
        ["spec.size = 8"],
        "the Site default/shop says that it is Ready, but the Deployment default/shop has 4 of 8 replicas, with spec.size = 8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", [pytest.param(bug, marks=pytest.mark.slow if bug == "loop" else ()) for bug in WRONG])
def test_a_bug_is_found(bug: str) -> None:
    names, text = WRONG[bug]
    report = explored(bug, [*NOT_CHANGED, *names])
    [finding] = report.findings
    assert text in [each.text for each in finding.symptoms]
    assert finding.causes == names
    assert not report.unsure


def test_the_right_operator_passes() -> None:
    names = list(dict.fromkeys(name for names, _ in WRONG.values() for name in names))
    report = explored("", [*NOT_CHANGED, *names, 'spec.storage = "2Gi"', 'spec.theme = "dark", then spec.size = 2'])
    assert (report.findings, report.unsure) == ([], [])
    assert report.without_effect == ["spec.comment"]
    assert [each.id for each in report.results if not each.way_back] == ['spec.storage = "2Gi"']
    assert report.states == len(names) + 2


FOLLOWING = ['spec.title = "Shop2"', 'spec.title = "example"', 'spec.title = "Shopx"']
IGNORED = 'spec.title = "Shop2", then spec.title = "example"'


def test_the_objects_of_a_scenario_outlive_the_cases() -> None:
    document = {**{name: SCENARIO[name] for name in ("nodes", "steps")}, "objects": SCENARIO["crds"]}
    names = [*NOT_CHANGED, *FOLLOWING, "spec.mirrors unset"]
    with explore.learn(target(document=document)) as learnt:
        report = explore.explore(learnt, [explore.named(learnt, name)[0] for name in names], jobs=1)
    assert [(each.id, each.symptoms, each.error) for each in report.results] == [(name, [], "") for name in names]


@pytest.mark.parametrize("order", [(0, 1, 2), pytest.param((1, 2, 0), marks=pytest.mark.slow)])
def test_a_value_is_ignored(order: tuple[int, ...]) -> None:
    report = explored("ignored", [*NOT_CHANGED, *(FOLLOWING[number] for number in order)])
    assert [each.causes for each in report.findings] == [[IGNORED.replace("Shop2", "Shopx") if order[0] else IGNORED]]
    assert (report.planned, len(report.results)) == (6, 6)


def test_a_value_is_ignored_again() -> None:
    [finding] = explored("ignored", [IGNORED]).findings
    assert {each.text for each in finding.symptoms} == {
        f'{path} of the {name} follows spec.title = "Shop2", but not spec.title = "example", and no error is reported'
        for path, name in (
            ("spec.template.spec.containers[name=web].env[name=title].value", "Deployment default/shop"),
            ("data.title", "ConfigMap default/shop-a1"),
        )
    }
    assert explored("", [IGNORED]).findings == []


def test_a_value_that_follows_from_revisions() -> None:
    report = explored("revision", ["no change", 'spec.title = "Shop2"'])
    assert (report.findings, report.unsure) == ([], [])


@pytest.mark.parametrize(("bug", "reported"), [("", []), ("reported", ["phase Failed"])])
def test_errors_with_the_own_spec(bug: str, reported: list[str]) -> None:
    with explore.learn(target(bug)) as learnt:
        assert learnt.reported == reported


def test_the_plan() -> None:
    site = {**SITE, "spec": {**SITE["spec"], "theme": "dark"}}
    with explore.learn(target(document={**SCENARIO, "steps": [{"apply": site}]})) as learnt:
        names = [cases.id_of(each) for each in explore.plan(learnt, 40)]
        assert {each.id for each in learnt.refused} == {
            'spec.storage = "512Mi"',
            'spec.storage = "1024Mi"',
            "spec.size = -1",
        }
        assert [each for each in names if each.startswith("spec.size = 0, with spec.theme")]  # a dark site has a size
        assert names[0] == "no change"
        assert len(names) == 40
        moves = [name for name in names if ", then " not in name]
        assert names[: len(moves)] == moves
        assert not [cases.id_of(each) for each in explore.plan(learnt, 500, 1) if len(each) > 1]


@pytest.mark.parametrize(
    ("document", "wanted", "message"),
    [
        ({"steps": [{"delete": "sites/shop"}]}, "", "the scenario's first steps must apply the custom resource"),
        (
            {"crds": "site-crd.yaml", "steps": [{"apply": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}}]},
            "",
            "the operator writes nothing when the custom resource is created",
        ),
        (SCENARIO, "sites/other", "the scenario applies no sites/other; it applies sites/shop"),
        (
            {**SCENARIO, "steps": [{"apply": ["site.yaml", {**SITE, "metadata": {"name": "b"}}]}]},
            "",
            "several custom resources: choose one with --object: sites/shop, sites/b",
        ),
    ],
)  # fmt: skip
def test_mistakes(document: dict[str, Any], wanted: str, message: str) -> None:
    with pytest.raises(ValueError, match=message), explore.learn(target(document=document), wanted):
        pass


@pytest.mark.slow
def test_an_operator_that_ends() -> None:
    operator = Command(["env", "BUG=exit", sys.executable, str(HERE / "sites.py")])
    ended = structs.replace(target(), operator=operator, timing=Timing(patience=4.0))
    with explore.learn(ended) as learnt:
        [case] = explore.named(learnt, 'spec.login = {"user": "example"}')
        report = explore.explore(learnt, [case], jobs=1)
    [finding] = report.findings
    assert finding.symptoms[0].kind == "panic"
    assert finding.title.startswith('created with spec.login = {"user": "example"}, the operator crashes: panic: ')


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(
        yaml.safe_dump({**SCENARIO, "crds": str(HERE / "site-crd.yaml"), "steps": [{"apply": str(HERE / "site.yaml")}]})
    )
    arguments = ["--scenario=scenario.yaml", "--only=spec.mirrors unset", "--patience=4s", "--results=results"]
    operator = f"--operator=env BUG=back {sys.executable} {HERE / 'sites.py'}"
    command = [sys.executable, "-m", "fakeapiserver", "explore", operator, *arguments]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout.startswith(
        "1. the ConfigMap default/shop-a1 exists, but should not, when changed to spec.mirrors unset, unlike when created with it\n"
    )
    assert "1 finding in 1 case, " in ran.stdout
    again = subprocess.run([*command, "--output=junit"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert '<testsuite name="explore" tests="1" failures="1" errors="0"' in again.stdout
