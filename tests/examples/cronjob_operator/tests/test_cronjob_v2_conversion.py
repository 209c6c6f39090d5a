"""A CronJob v2 is a CronJob v1 too."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from fakeapiserver import Cluster
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime import Client
from fakeapiserver.controller_runtime.models import ObjectMeta

from cronjob_operator.api.v1 import cronjob as v1
from cronjob_operator.api.v2 import cronjob as v2
from tests.conftest import CLUSTER, running

POD = {"restartPolicy": "Never", "containers": [{"name": "hello", "image": "busybox"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": POD}}}
META = ObjectMeta(name="hello", namespace="default", labels={"kept": "yes"})


def scenario(cluster: Cluster, work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with running(cluster) as manager:
            await work(Client(manager.dynamic, manager.mapper))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("5 * * * *", {"minute": "5"}),
        ("*/5 8 1 2 3", {"minute": "*/5", "hour": "8", "dayOfMonth": "1", "month": "2", "dayOfWeek": "3"}),
        ("* * * * *", {}),
    ],
)
@pytest.mark.fake_cluster(**CLUSTER)
def test_there_and_back(fake_cluster: Cluster, line: str, fields: dict[str, str]) -> None:
    async def work(client: Client) -> None:
        spec = v2.CronJobSpec(schedule=v2.CronSchedule.model_validate(fields), job_template=TEMPLATE, suspend=True)
        made = await client.create(v2.CronJob(metadata=META, spec=spec))
        assert made.spec.schedule.model_dump(by_alias=True, exclude_none=True) == fields
        hub = await client.get(v1.CronJob, "hello", "default")
        assert (hub.spec.schedule, hub.metadata.labels, hub.spec.job_template) == (line, {"kept": "yes"}, TEMPLATE)
        hub.spec.suspend = True
        hub.spec.failed_jobs_history_limit = 7
        await client.update(hub)
        again = await client.get(v2.CronJob, "hello", "default")
        assert again.spec == made.spec.model_copy(update={"failed_jobs_history_limit": 7})

    scenario(fake_cluster, work)


@pytest.mark.fake_cluster(**CLUSTER)
def test_schedules_that_v2_cannot_express_are_reported(fake_cluster: Cluster) -> None:
    async def work(client: Client) -> None:
        await client.create(
            v1.CronJob(metadata=META, spec=v1.CronJobSpec(schedule="@hourly", job_template=TEMPLATE, suspend=True))
        )
        with pytest.raises(StatusError, match="invalid schedule: not a standard 5-field schedule"):
            await client.get(v2.CronJob, "hello", "default")

    scenario(fake_cluster, work)
