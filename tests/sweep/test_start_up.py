"""Operators that don't start: what the message says, and what is refused before one is started."""

import sys
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.cases import CaseOptions
from fakeapiserver.sweep import case, start_up
from fakeapiserver.sweep.case import DoesNotStart, Target
from fakeapiserver.sweep.process import Command
from fakeapiserver.testing import sweeps
from tests.sweep import test_webhooks


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        ("unable to find leader election namespace: not running in-cluster, please specify it", "POD_NAMESPACE"),
        ("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST must be defined", "KUBECONFIG"),
        ("listen tcp :8081: bind: address already in use", "{port}"),
    ],
)
def test_a_failed_start_has_a_hint(output: str, hint: str) -> None:
    shown = start_up.last_lines(f"starting\n{output}\n").splitlines()
    assert shown[:-1] == ["starting", output]
    assert hint in shown[-1]
    assert "isolate: true" in shown[-1]


def test_other_outputs_have_none() -> None:
    assert start_up.last_lines("one\ntwo\n") == "one\ntwo"


def test_the_hint_is_in_the_message(tmp_path: Path) -> None:
    script = "import sys; sys.exit('unable to find leader election namespace')"
    with pytest.raises(DoesNotStart, match="isolate: true"):
        case.run(Target(Command([sys.executable, "-c", script]), test_webhooks.read(tmp_path, webhooks=[], crds=[])))


@pytest.mark.parametrize(("jobs", "fields"), [(1, {"webhookPort": 9443}), (2, {})])
def test_a_fixed_port_needs_one_job(jobs: int, fields: dict[str, Any], tmp_path: Path) -> None:
    CaseOptions(jobs=jobs).check_jobs(test_webhooks.read(tmp_path, **fields))


def test_more_jobs_than_ports_are_refused(tmp_path: Path) -> None:
    scenario = test_webhooks.read(tmp_path, webhookPort=9443)
    with pytest.raises(
        UsageError, match="webhookPort: only one operator at a time can listen on port 9443: use --jobs=1"
    ):
        CaseOptions(jobs=2).check_jobs(scenario)


def test_the_environment_of_a_marker(tmp_path: Path) -> None:
    script = "import os, sys; sys.exit(os.environ['NOTE'])"
    plan = sweeps.read((), {"operator": [sys.executable, "-c", script], "env": {"NOTE": "from the marker"}})
    with pytest.raises(DoesNotStart, match="from the marker"):
        case.run(Target(plan.operator, test_webhooks.read(tmp_path, webhooks=[], crds=[])))


@pytest.mark.parametrize(
    ("operator", "env", "sentence"),
    [
        ("./manager", ["A=1"], "takes env as a dict of texts"),
        ("./manager", {"A": 1}, "takes env as a dict of texts"),
        (print, {"A": "1"}, "takes env for a command"),
    ],
)
def test_a_wrong_environment_of_a_marker(operator: object, env: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        sweeps.read((), {"operator": operator, "env": env})
