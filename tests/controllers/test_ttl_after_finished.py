"""Jobs that are deleted some time after they have finished."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.objects import JOBS
from tests.controllers.harness import Harness, run

CONTROLLER = "ttl-after-finished-controller"
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}


def job(ttl: int | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": POD}
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    return {"metadata": {"name": "once"}, "spec": spec}


async def finish(cluster: Harness, outcome: str) -> None:
    now = rfc3339(cluster.clock.now())
    first = "SuccessCriteriaMet" if outcome == "Complete" else "FailureTarget"
    status: dict[str, Any] = {
        "startTime": now,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in (first, outcome)],
    }
    if outcome == "Complete":
        status["completionTime"] = now
    await cluster.patch_status(JOBS, "once", status)


@pytest.mark.parametrize("outcome", ["Complete", "Failed"])
@pytest.mark.parametrize(("ttl", "after", "gone"), [(60, 50, False), (60, 61, True), (0, 0, True), (None, 9999, False)])
def test_a_finished_job_lives_as_long_as_it_says(outcome: str, ttl: int | None, after: int, gone: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(JOBS, job(ttl))
        await finish(cluster, outcome)
        await cluster.advance(after)
        found = (await cluster.of(JOBS).list())["items"]
        if gone:
            # Its pods go first: the garbage collector takes the finalizer away when they have.
            assert found[0]["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert bool(found[0]["metadata"].get("deletionTimestamp")) == gone

    run(scenario, CONTROLLER)


def test_a_job_that_runs_lives_on() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(JOBS, job(0))
        await cluster.advance(3600)
        assert await cluster.names(JOBS) == ["once"]

    run(scenario, CONTROLLER)


def test_what_is_said_later_counts() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(JOBS, job(3600))
        await finish(cluster, "Complete")
        await cluster.of(JOBS).patch("once", {"spec": {"ttlSecondsAfterFinished": 10}})
        await cluster.settle()
        await cluster.advance(11)
        found = await cluster.get(JOBS, "once")
        assert found["metadata"].get("deletionTimestamp")

    run(scenario, CONTROLLER)
