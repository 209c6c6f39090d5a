"""Deletes jobs some time after they have finished (upstream: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go)."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import JOBS, is_terminating
from fakeapiserver.component_helpers.workloads.jobs import finished_condition
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer


class TTLAfterFinishedController:
    """Requests are jobs."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._deletion_seconds = context.metrics.histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "From when a job could go until it was deleted",
            [0.1 * 2**power for power in range(14)],
        )
        self.jobs = context.informer(JOBS)

    def job_changed(self, event: Event, queue: Queue) -> None:
        """Queues finished jobs with a limit."""
        if isinstance(event, DeleteEvent):
            return
        job = object_of(event)
        if expires_at(job) is not None:
            queue.add(request_for(job))

    async def reconcile(self, request: Request) -> Result | None:
        cached = self.jobs.indexer.get_by_key(str(request))
        expiry = expires_at(cached) if cached is not None else None
        if expiry is None:
            return None
        if expiry <= self._clock.now():
            # What the cache has may be old: the server says how long it is to live now.
            jobs = self._client.resource(JOBS, request.namespace)
            try:
                fresh = await jobs.get(request.name)
                expiry = expires_at(fresh)
                if expiry is None:
                    return None
                if expiry <= self._clock.now():
                    await jobs.delete(request.name, propagation_policy="Foreground", uid=fresh["metadata"]["uid"])
                    self._deletion_seconds.observe(self._clock.now() - expiry)
                    return None
            except StatusError as error:
                if is_not_found(error):
                    return None
                raise
        return Result(requeue_after=expiry - self._clock.now())


def expires_at(job: Object) -> float | None:
    """Returns the job's expiry in seconds since the epoch, or None if it hasn't finished, has no limit or is being deleted.

    Raises ValueError for a finished job without a time.
    """
    ttl, condition = job["spec"].get("ttlSecondsAfterFinished"), finished_condition(job)
    if ttl is None or condition is None or is_terminating(job):
        return None
    finished = seconds_of(condition.get("lastTransitionTime") or "")
    if finished is None:
        metadata = job["metadata"]
        name = f"{metadata['namespace']}/{metadata['name']}"
        raise ValueError(f"unable to find the time when the Job {name} finished")
    return finished + float(ttl)


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = TTLAfterFinishedController(context)
    workers = context.configuration.concurrent_ttl_after_finished_syncs
    controller = context.controller(reconciler, workers=workers)
    controller.add_source(Informer(reconciler.jobs, reconciler.job_changed))
    return [controller]
