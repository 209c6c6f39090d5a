"""An operator that looks again every half a minute may miss something for that long: this is no bug. What it never puts right is one."""

import contextlib
import sys
from pathlib import Path

import pytest

from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime import Manager, Request, Result, controller_managed_by, gvk
from fakeapiserver.sweep import sweep
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.process import Command
from fakeapiserver.sweep.scenario import Scenario, applying
from fakeapiserver.sweep.timing import Timing

CONFIG_MAP = gvk("v1", "ConfigMap")
SITE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}, "data": {"mode": "fast"}}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
TICKING = [sys.executable, str(Path(__file__).with_name("ticking_operator.py"))]
REFUSED = "refuse create configmaps default/copy with 500"


class Copier:
    """Ignores errors, and looks again after so many seconds; 0: never."""

    def __init__(self, manager: Manager, seconds: float) -> None:
        self.client = manager.client
        self.seconds = seconds

    async def reconcile(self, request: Request) -> Result | None:
        site = await self.client.find(CONFIG_MAP, request.name, request.namespace)
        if site is None or request.name != "site":
            return None
        metadata = {"name": "copy", "namespace": request.namespace}
        with contextlib.suppress(StatusError):
            await self.client.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": site["data"]}
            )
        return Result(requeue_after=self.seconds)


@pytest.mark.parametrize(
    ("seconds", "titles", "unsure"),
    [
        pytest.param(30.0, [], [REFUSED], id="put right by the next look"),
        pytest.param(0.0, ["the ConfigMap default/copy is missing"], [], id="never put right"),
    ],
)
def test_what_is_put_right_after_a_while_is_no_finding(seconds: float, titles: list[str], unsure: list[str]) -> None:
    def setup(manager: Manager) -> None:
        controller_managed_by(manager).for_(CONFIG_MAP).complete(Copier(manager, seconds))

    target = Target(InProcess(setup), Scenario([applying([SITE], "default")]))
    learnt = sweep.learn(target)
    report = sweep.sweep(target, learnt, sweep.named(learnt, REFUSED))
    assert [each.title for each in report.findings] == titles
    assert [each.perturbation.id for each in report.unsure] == unsure


@pytest.mark.parametrize(
    ("well", "titles"),
    [
        pytest.param(
            [True, True, False, False], ["the ConfigMap default/copy is missing"], id="shown by the third try"
        ),
        pytest.param(
            [False, True, False, False], ["the ConfigMap default/copy is missing"], id="not confirmed at first"
        ),
        pytest.param([True, True, True], [], id="never shown"),
    ],
)
def test_a_single_case_is_tried_again(well: list[bool], titles: list[str]) -> None:
    """`well`: whether the operator puts its mistake right at once, in each run of the case."""
    left = [True, True, True]  # two undisturbed runs, of which one ends with a restart

    def setup(manager: Manager) -> None:
        controller_managed_by(manager).for_(CONFIG_MAP).complete(Copier(manager, 1.0 if left.pop(0) else 0.0))

    target = Target(InProcess(setup), Scenario([applying([SITE], "default")]))
    learnt = sweep.learn(target)
    left += well
    report = sweep.sweep(target, learnt, sweep.named(learnt, REFUSED))
    assert [each.title for each in report.findings] == titles
    assert left == []


@pytest.mark.slow
def test_an_operator_that_writes_at_intervals_is_at_rest_between_them() -> None:
    timing = Timing(quiet=0.2, patience=3.0, calm=1.5)
    scenario = Scenario([applying([SITE], "default"), applying([OTHER], "default")])
    target = Target(Command(TICKING), scenario, timing)
    learnt = sweep.learn(target)
    assert learnt.expected.pause > 0.8
    report = sweep.sweep(target, learnt, sweep.named(learnt, "restart after step 2 with the state after step 1"))
    assert [each.title for each in report.findings] == []
    assert [(each.reached, each.error) for each in report.results] == [(True, "")]
