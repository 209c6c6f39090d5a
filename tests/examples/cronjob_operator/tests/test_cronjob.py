"""Jobs are started when they are due, once, and cleared away."""

import asyncio
from typing import Any

import pytest
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime import Client, Manager, ManagerOptions, Request
from fakeapiserver.client import kubeconfig

from cronjob_operator.api.v1.cronjob import CronJob
from cronjob_operator.controllers.cronjob import JOB, OWNER_INDEX, CronJobReconciler, owner_index
from tests.conftest import CLUSTER, running

REQUEST = Request("default", "hello")
POD = {"restartPolicy": "Never", "containers": [{"name": "hello", "image": "busybox"}]}
Object = dict[str, Any]


def cron_job(**spec: Any) -> Object:
    return {
        "apiVersion": "batch.tutorial.example.com/v1",
        "kind": "CronJob",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {"spec": POD}}}, **spec},
    }


class Hours:
    """A reconciler whose clock is turned, reading what is stored."""

    def __init__(self, manager: Manager) -> None:
        self.client = Client(manager.dynamic, manager.mapper, _Indexed(manager))
        self.moment = 0.0
        self.reconciler = CronJobReconciler(self.client, lambda: self.moment)

    async def begin(self, **spec: Any) -> None:
        made = await self.client.create(cron_job(**spec))
        created = seconds_of(made["metadata"]["creationTimestamp"])
        assert created is not None
        self.moment = created // 3600 * 3600 + 3600

    async def reconcile(self, hours: float = 0.0) -> float:
        """The seconds until the next look."""
        self.moment += hours * 3600
        await self.reconciler.reconcile(REQUEST)
        result = await self.reconciler.reconcile(REQUEST)
        return result.requeue_after if result else 0.0

    async def jobs(self) -> list[str]:
        return [job["metadata"]["name"] for job in await self.client.list(JOB, namespace="default")]

    async def finish(self, name: str, kind: str) -> None:
        job = await self.client.get(JOB, name, "default")
        start = job["metadata"]["creationTimestamp"]
        condition = {"type": kind, "status": "True", "lastTransitionTime": start, "reason": "x", "message": "x"}
        before = {**condition, "type": "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"}
        status: Object = {"startTime": start, "conditions": [before, condition]}
        if kind == "Complete":
            status["completionTime"] = start
        await self.client.patch_status(job, {"status": status})


class _Indexed:
    """Reads from the server, with the index that the manager's cache would have."""

    def __init__(self, manager: Manager) -> None:
        self._reader = manager.api_reader

    async def get(self, *arguments: Any) -> Object:
        return await self._reader.get(*arguments)

    async def list(self, kind: Any, *, fields: Any = None, **options: Any) -> list[Object]:
        found = await self._reader.list(kind, **options)
        wanted = (fields or {}).get(OWNER_INDEX)
        return [obj for obj in found if wanted is None or wanted in owner_index(obj)]


def scenario(cluster: Cluster, work: Any) -> None:
    async def run() -> None:
        manager = Manager(kubeconfig.load(cluster.kubeconfig), ManagerOptions())
        await work(Hours(manager))
        manager.rest.close()

    asyncio.run(run())


@pytest.mark.fake_cluster(crds=CLUSTER["crds"], controllers=())
def test_a_job_is_started_once_when_it_is_due(fake_cluster: Cluster) -> None:
    async def work(hours: Hours) -> None:
        await hours.begin()
        assert await hours.reconcile() == 3600
        assert await hours.jobs() == [f"hello-{int(hours.moment)}"]
        assert await hours.reconcile(0.5) == 1800
        assert len(await hours.jobs()) == 1
        await hours.reconcile(0.5)
        assert len(await hours.jobs()) == 2
        found = await hours.client.get(CronJob, "hello", "default")
        assert found.status is not None
        assert len(found.status.active) == 2
        assert seconds_of(found.status.last_schedule_time or "") == hours.moment

    scenario(fake_cluster, work)


@pytest.mark.parametrize(("policy", "left"), [("Allow", 2), ("Forbid", 1), ("Replace", 1)])
@pytest.mark.fake_cluster(crds=CLUSTER["crds"], controllers=())
def test_what_happens_to_two_at_once(fake_cluster: Cluster, policy: str, left: int) -> None:
    async def work(hours: Hours) -> None:
        await hours.begin(concurrencyPolicy=policy)
        await hours.reconcile()
        await hours.reconcile(1)
        jobs = await hours.jobs()
        assert len(jobs) == left
        assert (f"hello-{int(hours.moment)}" in jobs) is (policy != "Forbid")

    scenario(fake_cluster, work)


@pytest.mark.fake_cluster(crds=CLUSTER["crds"], controllers=())
def test_old_jobs_are_cleared_away(fake_cluster: Cluster) -> None:
    async def work(hours: Hours) -> None:
        await hours.begin(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
        for kind in ("Complete", "Complete", "Failed"):
            await hours.reconcile()
            for name in await hours.jobs():
                job = await hours.client.get(JOB, name, "default")
                if not (job.get("status") or {}).get("conditions"):
                    await hours.finish(name, kind)
            await hours.reconcile(0.5)
            hours.moment += 1800
        assert len(await hours.jobs()) == 1

    scenario(fake_cluster, work)


@pytest.mark.fake_cluster(crds=CLUSTER["crds"], controllers=())
def test_what_is_suspended_or_too_late_is_not_started(fake_cluster: Cluster) -> None:
    async def work(hours: Hours) -> None:
        await hours.begin(suspend=True, startingDeadlineSeconds=600)
        assert await hours.reconcile() == 0
        assert await hours.jobs() == []
        stored = await hours.client.get(CronJob, "hello", "default")
        await hours.client.patch(stored, {"spec": {"suspend": False}})
        assert await hours.reconcile(0.5) == 1800
        assert await hours.jobs() == []
        await hours.reconcile(0.5)
        assert len(await hours.jobs()) == 1

    scenario(fake_cluster, work)


@pytest.mark.fake_cluster(**CLUSTER)
def test_the_manager_starts_what_is_due(fake_cluster: Cluster) -> None:
    async def work() -> None:
        async with running(fake_cluster) as manager:
            made = await manager.client.create(cron_job(schedule="@every 1s"))
            assert made["spec"]["successfulJobsHistoryLimit"] == 3
            jobs = manager.dynamic.resource((await manager.mapper.mapping_for("jobs")).gvr, "default")
            async for event in jobs.watch(resource_version=made["metadata"]["resourceVersion"]):
                assert event.object["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
                break

    asyncio.run(work())


@pytest.mark.parametrize(
    ("name", "schedule", "message"),
    [("hello", "every hour", "spec.schedule: expected exactly 5 fields"), ("x" * 53, "0 * * * *", "no more than 52")],
)
@pytest.mark.fake_cluster(**CLUSTER)
def test_what_cannot_be_is_refused(fake_cluster: Cluster, name: str, schedule: str, message: str) -> None:
    async def work() -> None:
        async with running(fake_cluster) as manager:
            wanted = cron_job(schedule=schedule)
            wanted["metadata"]["name"] = name
            with pytest.raises(StatusError, match=message):
                await manager.client.create(wanted)

    asyncio.run(work())
