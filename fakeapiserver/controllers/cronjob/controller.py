"""Makes the jobs that are due, counts those that run, and deletes those that are history.

Upstream: pkg/controller/cronjob/cronjob_controllerv2.go.
"""

from collections.abc import Iterable, Sequence
from email.utils import formatdate
from typing import Any, Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.errors import StatusError, is_already_exists, is_not_found
from fakeapiserver.client.record import object_reference
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    CRON_JOBS,
    JOBS,
    controller_of,
    is_namespace_terminating,
    is_terminating,
    key_of,
    resolve_controller,
)
from fakeapiserver.component_helpers.pods import add_indexer
from fakeapiserver.component_helpers.workloads.controller_ref_manager import new_controller_ref
from fakeapiserver.component_helpers.workloads.jobs import COMPLETE, FAILED, finished_as
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.cronjob.schedule import (
    NeverDue,
    is_known_zone,
    job_name,
    last_schedule_time,
    missed,
    names_zone,
    schedule_of,
    scheduled_timestamp,
    seconds_until_next,
)

_KIND: Final = GroupVersionKind("batch", "v1", "CronJob")
_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# Jobs by `namespace/name` of their controller.
_BY_CONTROLLER_NAME: Final = "controllerName"
# The shortest time that is waited for.
_AT_ONCE: Final = 0.001


class CronJobController:
    """Requests are cron jobs."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._events = context.recorder("cronjob-controller")
        self._skew = context.metrics.histogram(
            "cronjob_controller_job_creation_skew_duration_seconds",
            "From when a job was due until it was made",
            [2**power for power in range(10)],
        )
        self.jobs = context.informer(JOBS)
        self.cron_jobs = context.informer(CRON_JOBS)
        # The last write until the cache has it: from an older state the controller would report missing jobs.
        self._written: dict[str, Object] = {}
        add_indexer(self.jobs, _BY_CONTROLLER_NAME, _controller_name)

    # -------------------------------------------------------------------------- what happened

    def job_changed(self, event: Event, queue: Queue) -> None:
        """Queues the cron job that controls the job, and the one that did before the change."""
        if isinstance(event, UpdateEvent):
            old, new = event.object_old, event.object_new
            if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
                return
            objects = [new] if controller_of(old) == controller_of(new) else [old, new]
        else:
            objects = [event.object]
        for job in objects:
            owner = self._owner(job)
            if owner is not None:
                queue.add(request_for(owner))

    def cron_job_changed(self, event: Event, queue: Queue) -> None:
        """At once, or when it is due if its timetable is new."""
        if not isinstance(event, UpdateEvent):
            queue.add(request_for(event.object))
            return
        old, new = event.object_old["spec"], event.object_new["spec"]
        if old["schedule"] == new["schedule"] and old.get("timeZone") == new.get("timeZone"):
            queue.add(request_for(event.object_new))
            return
        try:
            schedule = schedule_of(event.object_new)
        except ValueError:
            self._warn(
                event.object_new,
                "UnParseableCronJobSchedule",
                f"unparseable schedule for cronjob: {new['schedule']}",
            )
            return
        queue.add_after(
            request_for(event.object_new), seconds_until_next(event.object_new, self._clock.now(), schedule)
        )

    def _owner(self, job: Object) -> Object | None:
        """The cron job that controls it, if it is still the same."""
        return resolve_controller(self.cron_jobs.indexer, job, "CronJob")

    # ------------------------------------------------------------------------------- one of them

    async def reconcile(self, request: Request) -> Result | None:
        newest = self._newest(str(request))
        if newest is None:
            return None
        jobs = self.jobs.indexer.by_index(_BY_CONTROLLER_NAME, key_of(newest))
        cron_job = _CronJob(newest)
        await self._delete_history(cron_job, jobs)
        failure: Exception | None = None
        wait: float | None = None
        try:
            await self._compare(cron_job, jobs)
            if not is_terminating(newest):
                wait = await self._make_what_is_due(cron_job)
        except StatusError as error:
            failure = error
        if cron_job.changed:
            cron_jobs = self._client.resource(CRON_JOBS, request.namespace)
            self._written[str(request)] = await cron_jobs.update_status(cron_job.object)
        if failure is not None:
            raise failure
        return None if wait is None else Result(requeue_after=max(wait, _AT_ONCE))

    def _newest(self, key: str) -> Object | None:
        """The cache's state, or the one that was written and hasn't come there yet."""
        cached, written = self.cron_jobs.indexer.get_by_key(key), self._written.get(key)
        if cached is not None and written is not None:
            ours, known = written["metadata"], cached["metadata"]
            if ours["uid"] == known["uid"] and int(ours["resourceVersion"]) > int(known["resourceVersion"]):
                return written
        self._written.pop(key, None)
        return cached

    async def _compare(self, cron_job: "_CronJob", jobs: Sequence[Object]) -> None:
        """status.active with the jobs that are there."""
        for job in jobs:
            name, uid, finished = job["metadata"]["name"], job["metadata"]["uid"], finished_as(job)
            if not finished and uid not in cron_job.active:
                metadata = cron_job.object["metadata"]
                fresh = await self._client.resource(CRON_JOBS, metadata["namespace"]).get(metadata["name"])
                if any(reference["uid"] == uid for reference in (fresh.get("status") or {}).get("active") or ()):
                    cron_job.replace(fresh)
                    continue
                self._warn(
                    cron_job.object,
                    "UnexpectedJob",
                    f"Saw a job that the controller did not create or forgot: {name}",
                )
            elif finished and uid in cron_job.active:
                cron_job.drop(uid)
                self._tell(cron_job.object, "SawCompletedJob", f"Saw completed job: {name}, condition: {finished}")
            if finished == COMPLETE:
                cron_job.succeeded_at(job["status"].get("completionTime"))
        children = {job["metadata"]["uid"] for job in jobs}
        for uid, reference in [*cron_job.active.items()]:
            if uid not in children and not await self._job(reference):
                self._tell(cron_job.object, "MissingJob", f"Active job went missing: {reference['name']}")
                cron_job.drop(uid)

    async def _make_what_is_due(self, cron_job: "_CronJob") -> float | None:
        """Seconds until it is looked at again; None: not before it changes."""
        obj, spec, now = cron_job.object, cron_job.object["spec"], self._clock.now()
        zone = spec.get("timeZone")
        if zone is not None and not is_known_zone(zone):
            self._warn(obj, "UnknownTimeZone", f"invalid timeZone: {go_quote(zone)}: unknown time zone {zone}")
            return None
        if spec.get("suspend"):
            return None
        if names_zone(obj):
            self._warn(
                obj,
                "UnsupportedSchedule",
                f"CRON_TZ or TZ used in schedule {go_quote(spec['schedule'])} is not officially supported, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
            )
        try:
            schedule = schedule_of(obj)
        except ValueError as error:
            self._warn(obj, "UnparseableSchedule", f"unparseable schedule: {go_quote(spec['schedule'])} : {error}")
            return None
        try:
            due = missed(obj, now, schedule)
        except NeverDue as error:
            self._warn(obj, "InvalidSchedule", f"invalid schedule: {spec['schedule']} : {error}")
            return None
        if due.latest is not None:
            if due.too_many:
                self._warn(
                    obj,
                    "TooManyMissedTimes",
                    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
                )
            if self._may_start(cron_job, due.latest, now):
                await self._start(cron_job, due.latest)
        return seconds_until_next(cron_job.object, now, schedule)

    def _may_start(self, cron_job: "_CronJob", due: float, now: float) -> bool:
        """Reports whether the job isn't too late, was not started yet, and no running job forbids it."""
        obj, spec = cron_job.object, cron_job.object["spec"]
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and due + deadline < now:
            self._warn(obj, "MissSchedule", f"Missed scheduled time to start a job: {_rfc1123z(due)}")
            return False
        name = job_name(obj, due)
        if any(reference["name"] == name for reference in cron_job.active.values()) or last_schedule_time(obj) == due:
            return False
        if spec.get("concurrencyPolicy") == "Forbid" and cron_job.active:
            self._tell(
                obj,
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is Forbid",
            )
            return False
        return True

    async def _start(self, cron_job: "_CronJob", due: float) -> None:
        """Starts a job. Raises StatusError, also if the job exists already.

        Upstream then reads the job without its namespace, fails without an event, and tries again until the job is gone.
        """
        obj = cron_job.object
        if obj["spec"].get("concurrencyPolicy") == "Replace":
            await self._delete_active(cron_job)
        jobs = self._client.resource(JOBS, obj["metadata"]["namespace"])
        try:
            job = await jobs.create(_job_of(obj, due))
        except StatusError as error:
            if not is_already_exists(error) and not is_namespace_terminating(error):
                self._warn(obj, "FailedCreate", f"Error creating job: {error}")
            raise
        self._tell(obj, "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        made = seconds_of(job["metadata"]["creationTimestamp"])
        self._skew.observe((made or due) - due)
        cron_job.started(job, due)

    async def _delete_active(self, cron_job: "_CronJob") -> None:
        """Deletes the jobs that still run, to replace them. Raises StatusError."""
        for reference in [*cron_job.active.values()]:
            jobs = self._client.resource(JOBS, reference["namespace"])
            try:
                job = await jobs.get(reference["name"])
            except StatusError as error:
                self._warn(cron_job.object, "FailedGet", f"Get job: {error}")
                raise
            await self._delete(cron_job, job)

    async def _delete_history(self, cron_job: "_CronJob", jobs: Sequence[Object]) -> None:
        """Deletes finished jobs beyond the limits, the oldest first."""
        limits = {COMPLETE: "successfulJobsHistoryLimit", FAILED: "failedJobsHistoryLimit"}
        for outcome, name in limits.items():
            limit = cron_job.object["spec"].get(name)
            if limit is None:
                continue
            finished = sorted((job for job in jobs if finished_as(job) == outcome), key=_start_order)
            for job in finished[: max(0, len(finished) - limit)]:
                try:
                    await self._delete(cron_job, job)
                except StatusError:
                    continue  # an event was recorded; the next sync tries again

    async def _delete(self, cron_job: "_CronJob", job: Object) -> None:
        """With its pods. StatusError."""
        metadata = job["metadata"]
        jobs = self._client.resource(JOBS, metadata["namespace"])
        try:
            await jobs.delete(metadata["name"], propagation_policy="Background")
        except StatusError as error:
            self._warn(cron_job.object, "FailedDelete", f"Deleted job: {error}")
            raise
        cron_job.drop(metadata["uid"])
        self._tell(cron_job.object, "SuccessfulDelete", f"Deleted job {metadata['name']}")

    async def _job(self, reference: Object) -> bool:
        """The server has it, even if the cache doesn't yet. StatusError."""
        try:
            await self._client.resource(JOBS, reference["namespace"]).get(reference["name"])
        except StatusError as error:
            if is_not_found(error):
                return False
            raise
        return True

    def _tell(self, obj: Object, reason: str, message: str) -> None:
        self._events.event(obj, "Normal", reason, message)

    def _warn(self, obj: Object, reason: str, message: str) -> None:
        self._events.event(obj, "Warning", reason, message)


class _CronJob:
    """A cron job whose status is being worked out. `changed`: it must be written."""

    def __init__(self, obj: Object) -> None:
        self.changed = False
        self.replace(obj)

    def replace(self, obj: Object) -> None:
        """A newer state of it."""
        self._status: dict[str, Any] = {**(obj.get("status") or {})}
        self.object: Object = {**obj, "status": self._status}
        # References of the jobs that run, by their uid.
        self.active: dict[str, Object] = {reference["uid"]: reference for reference in self._status.get("active") or ()}

    def drop(self, uid: str) -> None:
        """The job doesn't run any more."""
        self.active.pop(uid, None)
        self._write_active()

    def started(self, job: Object, due: float) -> None:
        self.active[job["metadata"]["uid"]] = object_reference(job)
        self._status["lastScheduleTime"] = rfc3339(due)
        self._write_active()

    def succeeded_at(self, completed: str | None) -> None:
        """`completed`: status.completionTime of a job that did; the latest counts."""
        last = self._status.get("lastSuccessfulTime")
        if completed and (last is None or (seconds_of(completed) or 0.0) > (seconds_of(last) or 0.0)):
            self._status["lastSuccessfulTime"] = completed
            self.changed = True

    def _write_active(self) -> None:
        self._status["active"] = [*self.active.values()]
        self.changed = True


def _controller_name(job: Object) -> Iterable[str]:
    reference = controller_of(job)
    return (f"{job['metadata']['namespace']}/{reference['name']}",) if reference else ()


def _job_of(cron_job: Object, due: float) -> Object:
    metadata, template = cron_job["metadata"], cron_job["spec"]["jobTemplate"]
    own = template.get("metadata") or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(cron_job, due),
            "namespace": metadata["namespace"],
            "labels": {**(own.get("labels") or {})},
            "annotations": {
                **(own.get("annotations") or {}),
                _SCHEDULED_AT: scheduled_timestamp(cron_job, due),
            },
            "ownerReferences": [new_controller_ref(cron_job, _KIND)],
        },
        "spec": template["spec"],
    }


def _start_order(job: Object) -> tuple[bool, float, str]:
    """By start, those that never started last; then by name."""
    start = (job.get("status") or {}).get("startTime")
    return start is None, (start and seconds_of(start)) or 0.0, job["metadata"]["name"]


def _rfc1123z(seconds: float) -> str:
    return formatdate(seconds).replace("-0000", "+0000")  # a zone like any other, as Go says it


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = CronJobController(context)
    controller = context.controller(reconciler, workers=context.configuration.concurrent_cron_job_syncs)
    controller.add_source(Informer(reconciler.jobs, reconciler.job_changed))
    controller.add_source(Informer(reconciler.cron_jobs, reconciler.cron_job_changed))
    return [controller]
