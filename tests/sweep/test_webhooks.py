"""Operators with webhooks: each case has a port and a certificate of its own, and no step begins before the webhook server answers."""

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver.controller_runtime import Manager
from fakeapiserver.sweep import case, scenario, sweep
from fakeapiserver.sweep.case import DoesNotStart, Expected, Run, Target, Timing
from fakeapiserver.sweep.exploring import cases, explore
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.launcher import Launcher
from fakeapiserver.sweep.perturbation import Perturbation, WritePoint
from fakeapiserver.sweep.process import Command
from tests.sweep import webhook_operator

HERE = Path(__file__).parent
COMMAND = [sys.executable, str(HERE / "webhook_operator.py"), "{webhook-port}"]
LAUNCHERS: dict[str, Launcher] = {
    "its default folder": Command(COMMAND),
    "another folder": Command(COMMAND, {"CERTIFICATES": "{webhook-cert-dir}"}),
    "in process": InProcess(webhook_operator.setup),
}
DATABASE = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "db"}}
STEPS = [{"apply": DATABASE}, {"patch": "databases/db", "with": {"spec": {"size": 3}}}]


def read(folder: Path, **fields: Any) -> scenario.Scenario:
    document = {
        "crds": str(HERE / "database-crd.yaml"),
        "webhooks": webhook_operator.CONFIGURATIONS,
        "steps": STEPS,
        **fields,
    }
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(document))
    return scenario.read(path)


def sizes(run: Run) -> list[str]:
    """The size in the ConfigMap after each step."""
    key = next(key for key in run.states[-1] if "db-config" in key)
    return [state[key]["data"]["size"] for state in run.states]


@pytest.mark.parametrize("name", LAUNCHERS)
def test_webhooks_of_operators_are_called(name: str, tmp_path: Path) -> None:
    run = case.run(Target(LAUNCHERS[name], read(tmp_path)))
    assert (run.problems, sizes(run)) == ([], ["2", "3"])


@pytest.mark.parametrize("name", [pytest.param("another folder", marks=pytest.mark.slow), "in process"])
def test_a_killed_operator_gets_its_port_again(name: str, tmp_path: Path) -> None:
    """Its writes fail while the webhook server of the killed one is gone."""
    target = Target(LAUNCHERS[name], read(tmp_path))
    known = sweep.learn(target, ["crash"])
    crashes = sweep.named(known, "crash after patch configmaps default/db-config")
    report = sweep.sweep(target, known, crashes, jobs=2)
    assert [(each.symptoms, each.reached, each.error) for each in report.results] == [([], True, "")] * len(crashes)


def test_an_operator_that_ends_whenever_it_is_started_again_is_given_up(tmp_path: Path) -> None:
    starts = iter(range(100))

    def setup(manager: Manager) -> None:
        if next(starts) > 1:  # the operator of the second case, after the crash
            raise ValueError("the state on the disk is damaged")
        webhook_operator.setup(manager)

    target = Target(InProcess(setup), read(tmp_path))
    undisturbed = case.run(target)
    crash = Perturbation("crash", WritePoint("patch", "configmaps", "", "default", "db-config", 1), "after")
    run = case.run(target, crash, Expected(undisturbed.states))
    assert run.problems == ["the operator exits again and again: 6 times, with status 1"]


def test_explore_leaves_out_what_a_webhook_refuses(tmp_path: Path) -> None:
    steps = [{"apply": {**DATABASE, "spec": {"size": webhook_operator.MAX_SIZE}}}]
    with explore.learn(Target(LAUNCHERS["in process"], read(tmp_path, steps=steps))) as learnt:
        planned = [cases.id_of(each) for each in explore.plan(learnt, 20, depth=1)]
    larger = f"spec.size = {webhook_operator.MAX_SIZE + 1}"
    assert f"spec.size = {webhook_operator.MAX_SIZE - 1}" in planned
    assert (larger in planned, larger in {each.id for each in learnt.refused}) == (False, True)


@pytest.mark.slow
def test_explore_runs_one_operator_at_a_time_at_a_fixed_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    steps = [{"apply": {**DATABASE, "spec": {"size": 3}}}]
    command = Command([*COMMAND[:-1], str(port)])
    with explore.learn(Target(command, read(tmp_path, steps=steps, webhookPort=port))) as learnt:
        planned = explore.plan(learnt, 5)
        report = explore.explore(learnt, planned, jobs=1)
    assert [(each.symptoms, each.error) for each in report.results] == [([], "")] * 5


def test_what_a_webhook_refuses_fails_the_step(tmp_path: Path) -> None:
    too_large = {**DATABASE, "spec": {"size": 9}}
    with pytest.raises(case.StepFailed, match=r"step 1 \(apply Database db\) fails: .*spec.size must be 5 or less"):
        case.run(Target(LAUNCHERS["in process"], read(tmp_path, steps=[{"apply": too_large}])))


def test_an_operator_that_does_not_serve_its_webhooks_is_reported(tmp_path: Path) -> None:
    quiet = Command([sys.executable, str(HERE / "database_operator.py")])
    sentence = r"there is no webhook server at https://127\.0\.0\.1:\d+, .*\{webhook-port\} and \{webhook-cert-dir\}"
    with pytest.raises(DoesNotStart, match=sentence):
        case.run(Target(quiet, read(tmp_path), Timing(start=3.0)))


def test_a_placeholder_without_webhooks_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\{webhook-port\} needs webhooks"):
        case.run(Target(Command(COMMAND), read(tmp_path, webhooks=[], crds=[])))


def test_the_environment_of_a_scenario(tmp_path: Path) -> None:
    run = case.run(Target(Command(COMMAND), read(tmp_path, env={"RAN_AS": "scenario"})))
    config = next(obj for key, obj in run.states[-1].items() if "db-config" in key)
    assert config["metadata"]["labels"] == {"ran-as": "scenario"}
