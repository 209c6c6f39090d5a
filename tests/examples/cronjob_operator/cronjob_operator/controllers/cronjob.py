"""Starts the jobs that are due, and clears away old ones."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from fakeapiserver.apimachinery import cron
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.errors import StatusError, is_already_exists, is_not_found
from fakeapiserver.client.record import object_reference
from fakeapiserver.controller_runtime import Client, Manager, Request, Result, TerminalError, controller_managed_by, gvk
from fakeapiserver.controller_runtime.controllerutil import set_controller_reference
from fakeapiserver.controller_runtime.markers import rbac

from cronjob_operator.api.v1.cronjob import CronJob, CronJobStatus

JOB = gvk("batch/v1", "Job")
SCHEDULED_AT = "batch.tutorial.example.com/scheduled-at"
OWNER_INDEX = "metadata.controller"
MAX_MISSED = 100
Object = dict[str, Any]


def owner_index(job: Object) -> list[str]:
    """The CronJob that controls a job."""
    references = job["metadata"].get("ownerReferences") or []
    return [row["name"] for row in references if row.get("controller") and row["kind"] == "CronJob"]


def finished(job: Object) -> str:
    """Complete, Failed, or "" while it runs."""
    conditions = (job.get("status") or {}).get("conditions") or []
    found = [row["type"] for row in conditions if row["status"] == "True" and row["type"] in ("Complete", "Failed")]
    return found[0] if found else ""


@rbac(groups=["batch.tutorial.example.com"], resources=["cronjobs"], verbs=["get", "list", "watch"])
@rbac(groups=["batch.tutorial.example.com"], resources=["cronjobs/status"], verbs=["patch"])
@rbac(groups=["batch.tutorial.example.com"], resources=["cronjobs/finalizers"], verbs=["update"])
@rbac(groups=["batch"], resources=["jobs"], verbs=["get", "list", "watch", "create", "delete"])
@rbac(groups=["batch"], resources=["jobs/status"], verbs=["get"])
class CronJobReconciler:
    """`now`: seconds since the Unix epoch."""

    def __init__(self, client: Client, now: Callable[[], float] = time.time) -> None:
        self._client = client
        self._now = now

    async def reconcile(self, request: Request) -> Result | None:
        cron_job = await self._client.find(CronJob, request.name, request.namespace)
        if cron_job is None or cron_job.metadata.deletion_timestamp:
            return None
        jobs = await self._client.list(JOB, namespace=request.namespace, fields={OWNER_INDEX: request.name})
        active = [job for job in jobs if not finished(job)]
        await self._report(cron_job, jobs, active)
        spec = cron_job.spec
        await self._clear_away([job for job in jobs if finished(job) == "Failed"], spec.failed_jobs_history_limit)
        await self._clear_away([job for job in jobs if finished(job) == "Complete"], spec.successful_jobs_history_limit)
        if cron_job.spec.suspend:
            return None
        missed, due = self._schedule(cron_job)
        later = Result(requeue_after=max(due - self._now(), 0.001))
        if missed is None or self._too_late(cron_job, missed):
            return later
        if active and cron_job.spec.concurrency_policy == "Forbid":
            return later
        if cron_job.spec.concurrency_policy == "Replace":
            await self._delete(active)
        await self._start(cron_job, missed)
        return later

    def _schedule(self, cron_job: CronJob) -> tuple[float | None, float]:
        """(the last time that was missed, the next one)."""
        try:
            schedule = cron.parse(cron_job.spec.schedule)
        except ValueError as error:
            raise TerminalError(f"unparseable schedule {cron_job.spec.schedule!r}: {error}") from None
        now, status = self._now(), cron_job.status or CronJobStatus()
        since = seconds_of(status.last_schedule_time or cron_job.metadata.creation_timestamp or "") or now
        if cron_job.spec.starting_deadline_seconds is not None:
            since = max(since, now - cron_job.spec.starting_deadline_seconds)
        missed, starts = None, 0
        moment = schedule.next_after(since, "UTC")
        while moment is not None and moment <= now:
            missed, starts = moment, starts + 1
            if starts > MAX_MISSED:
                raise TerminalError("too many missed start times: set startingDeadlineSeconds, or check the clock")
            moment = schedule.next_after(moment, "UTC")
        if moment is None:
            raise TerminalError(f"the schedule {cron_job.spec.schedule!r} is never due")
        return missed, moment

    def _too_late(self, cron_job: CronJob, missed: float) -> bool:
        deadline = cron_job.spec.starting_deadline_seconds
        return deadline is not None and missed + deadline < self._now()

    async def _start(self, cron_job: CronJob, at: float) -> None:
        """The name says when: a job isn't started twice."""
        template = cron_job.spec.job_template
        metadata = template.get("metadata") or {}
        job: Object = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": f"{cron_job.metadata.name}-{int(at)}",
                "namespace": cron_job.metadata.namespace,
                "labels": metadata.get("labels") or {},
                "annotations": {**(metadata.get("annotations") or {}), SCHEDULED_AT: rfc3339(at)},
            },
            "spec": template["spec"],
        }
        set_controller_reference(cron_job, job)
        try:
            await self._client.create(job)
        except StatusError as error:
            if not is_already_exists(error):
                raise

    async def _clear_away(self, jobs: list[Object], limit: int) -> None:
        oldest_first = sorted(jobs, key=lambda job: (job.get("status") or {}).get("startTime") or "")
        await self._delete(oldest_first[: max(len(jobs) - limit, 0)])

    async def _delete(self, jobs: list[Object]) -> None:
        for job in jobs:
            try:
                await self._client.delete(job, propagation_policy="Background")
            except StatusError as error:
                if not is_not_found(error):
                    raise

    async def _report(self, cron_job: CronJob, jobs: Sequence[Object], active: Sequence[Object]) -> None:
        scheduled = [(job["metadata"].get("annotations") or {}).get(SCHEDULED_AT) for job in jobs]
        before = cron_job.status.last_schedule_time if cron_job.status else None
        status = CronJobStatus(
            active=[object_reference(job) for job in active],
            last_schedule_time=max([moment for moment in (*scheduled, before) if moment], default=None),
        )
        if status != (cron_job.status or CronJobStatus()):
            wanted = status.model_dump(by_alias=True, exclude_none=True)
            await self._client.patch_status(cron_job, {"status": wanted})
            cron_job.status = status


def setup_with_manager(manager: Manager) -> None:
    """Adds the controller."""
    manager.index_field(JOB, OWNER_INDEX, owner_index)
    builder = controller_managed_by(manager).for_(CronJob).owns(JOB).named("cronjob")
    builder.complete(CronJobReconciler(manager.client, manager.clock.now))
