"""Decides which jobs are synced, and when (upstream: pkg/controller/job/job_controller.go)."""

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Final

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    JOBS,
    PODS,
    controller_of,
    is_terminating,
    key_of,
    labels_of,
    resolve_controller,
)
from fakeapiserver.component_helpers.pods import add_controller_indexer, objects_of_owner
from fakeapiserver.component_helpers.workloads.controller_ref_manager import ControllerRefManager
from fakeapiserver.component_helpers.workloads.expectations import CountingExpectations
from fakeapiserver.component_helpers.workloads.jobs import finished_as
from fakeapiserver.component_helpers.workloads.pod_control import PodControl
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import ReconcilerFunc, Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.job.context import BATCH_PERIOD, KIND, SyncJobContext, Tracking
from fakeapiserver.controllers.job.metrics import JobMetrics
from fakeapiserver.controllers.job.pods import TRACKING_FINALIZER, UNTRACK, is_tracked
from fakeapiserver.controllers.job.sync import sync_job

_NAME: Final = "kubernetes.io/job-controller"
# Seconds after the first failure, doubled with each further one.
_FIRST_RETRY: Final = 1.0
_LAST_RETRY: Final = 60.0


class JobController:
    """Requests are jobs; `release`'s are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self.jobs = context.informer(JOBS)
        self.pods = context.informer(PODS)
        self._pods = add_controller_indexer(self.pods)
        self._selectors: dict[str, Selector] = {}
        events = context.recorder("job-controller")
        self._pod_control = PodControl(context.client, events)
        self._expectations = CountingExpectations(context.clock)
        self._tracking = Tracking(
            context.client,
            events,
            context.clock,
            self._pod_control,
            self._expectations,
            JobMetrics(context.metrics),
        )

    # ------------------------------------------------------------------------------ what happened to jobs

    def job_changed(self, event: Event, queue: Queue) -> None:
        """Queues the job: at once after a change by its user, in a moment after a change by this controller."""
        if isinstance(event, CreateEvent):
            queue.add(request_for(event.object))
        elif isinstance(event, DeleteEvent):
            metadata = event.object["metadata"]
            queue.add(request_for(event.object))
            self._tracking.finished.discard(metadata["uid"])
            self._tracking.backoffs.pop(key_of(event.object), None)
            self._selectors.pop(metadata["uid"], None)
        elif isinstance(event, UpdateEvent):
            self._job_updated(event.object_old, event.object_new, queue)

    def _job_updated(self, old: Object, new: Object, queue: Queue) -> None:
        if finished_as(new):
            return
        request = request_for(new)
        if old["metadata"].get("generation") == new["metadata"].get("generation"):
            queue.add_after(request, BATCH_PERIOD)
        else:
            queue.add(request)
        start, deadline = (new.get("status") or {}).get("startTime"), new["spec"].get("activeDeadlineSeconds")
        if start and deadline is not None and old["spec"].get("activeDeadlineSeconds") != deadline:
            queue.add_after(request, (seconds_of(start) or 0.0) + deadline - self._clock.now())

    def job_ended(self, event: Event, queue: Queue) -> None:
        """Queues the pods of a job that has finished or is gone, which lose their finalizer."""
        if isinstance(event, DeleteEvent):
            job = event.object
        elif isinstance(event, UpdateEvent) and finished_as(event.object_new):
            job = event.object_new
        else:
            return
        matches = self._selector(job).matches
        for pod in objects_of_owner(self._pods, job, KIND.kind, orphans=True):
            if is_tracked(pod) and matches(labels_of(pod)):
                queue.add(request_for(pod))
        if isinstance(event, DeleteEvent):
            self._selectors.pop(job["metadata"]["uid"], None)

    # ------------------------------------------------------------------------------ what happened to pods

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """The job that controls the pod looks at it, or those that might adopt it."""
        if isinstance(event, UpdateEvent):
            self._pod_updated(event.object_old, event.object_new, queue)
        elif isinstance(event, DeleteEvent):
            self._pod_deleted(event.object, queue, final=True)
        elif is_terminating(event.object):
            self._pod_deleted(event.object, queue, final=False)
        else:
            job = self._job_of(event.object)
            if job is not None:
                self._expectations.creation_observed(key_of(job))
                queue.add_after(request_for(job), BATCH_PERIOD)
            elif controller_of(event.object) is None:
                self._offer(event.object, queue)

    def _pod_updated(self, old: Object, new: Object, queue: Queue) -> None:
        if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
            return
        if is_terminating(new):
            self._pod_deleted(new, queue, final=False)
            return
        was, now = controller_of(old), controller_of(new)
        for pod in (new,) if was == now else (old, new):
            job = self._job_of(pod)
            if job is not None:
                if not is_tracked(new):
                    self._tracking.finalizer_removal_observed(key_of(job), new["metadata"]["uid"])
                queue.add_after(request_for(job), BATCH_PERIOD)
        if now is None and (was is not None or labels_of(old) != labels_of(new)):
            self._offer(new, queue)

    def _pod_deleted(self, pod: Object, queue: Queue, *, final: bool) -> None:
        """Handles a pod that is gone (`final`) or is being deleted."""
        job = self._job_of(pod)
        if job is None or finished_as(job):
            return
        key = key_of(job)
        self._expectations.deletion_observed(key)
        if final or not is_tracked(pod):
            self._tracking.finalizer_removal_observed(key, pod["metadata"]["uid"])
        queue.add_after(request_for(job), BATCH_PERIOD)

    def pod_orphaned(self, event: Event, queue: Queue) -> None:
        """A pod that no job counts any more must not be held by one."""
        pod = object_of(event)
        if not is_tracked(pod):
            return
        reference = controller_of(pod)
        if reference is None:
            queue.add(request_for(pod))
        elif isinstance(event, DeleteEvent) or is_terminating(pod):
            job = self._job_of(pod)
            if job is None or finished_as(job):
                queue.add(request_for(pod))

    def _job_of(self, pod: Object) -> Object | None:
        """The job that controls it, if it is still the same."""
        return resolve_controller(self.jobs.indexer, pod, KIND.kind)

    def _offer(self, pod: Object, queue: Queue) -> None:
        """Queues the jobs that may adopt an orphan."""
        own = labels_of(pod)
        if not own:
            return
        for job in self.jobs.indexer.by_index(NAMESPACE_INDEX, pod["metadata"]["namespace"]):
            if self._selector(job).matches(own):
                queue.add_after(request_for(job), BATCH_PERIOD)

    def _selector(self, job: Object) -> Selector:
        """Returns the job's selector, which never changes."""
        uid = job["metadata"]["uid"]
        selector = self._selectors.get(uid)
        if selector is None:
            selector = self._selectors[uid] = labels.from_label_selector(job["spec"].get("selector"))
        return selector

    # ----------------------------------------------------------------------------------- one of them

    async def reconcile(self, request: Request) -> Result | None:
        key, tracking = str(request), self._tracking
        job = self.jobs.indexer.get_by_key(key)
        if job is None:
            tracking.forget(key)
            return None
        if job["spec"].get("managedBy", _NAME) != _NAME:
            return None
        if not tracking.has_seen_writes(key, job):
            return Result(requeue_after=BATCH_PERIOD)
        uid = job["metadata"]["uid"]
        if finished_as(job):
            tracking.backoffs.pop(key, None)
            tracking.written.pop(key, None)
            tracking.finished.discard(uid)
            return None
        if uid in tracking.finished:
            return None
        satisfied = self._expectations.satisfied(key)
        start, result = perf_counter(), "error"
        sync = SyncJobContext(tracking, job, await self._claimed_pods(job), satisfied=satisfied)
        try:
            wait = await sync_job(sync)
            result = "success"
        finally:
            tracking.metrics.synced(job, result, sync.action, perf_counter() - start)
        return Result(requeue_after=wait) if wait is not None else None

    async def _claimed_pods(self, job: Object) -> Sequence[Object]:
        """Its own, and those that it adopts. StatusError, AdoptionRefused."""
        metadata = job["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        jobs = self._client.resource(JOBS, namespace)
        manager = ControllerRefManager(
            job,
            KIND,
            self._selector(job),
            "Pod",
            self._pod_control.patcher(namespace),
            lambda: jobs.get(name),
            [TRACKING_FINALIZER],
        )
        pods = await manager.claim(objects_of_owner(self._pods, job, KIND.kind, orphans=True))
        return [_adopted(pod) if controller_of(pod) is None else pod for pod in pods]

    async def release(self, request: Request) -> None:
        """Removes the finalizer from a pod without a job."""
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None or not is_tracked(pod):
            return
        reference = controller_of(pod)
        if reference is not None:
            if (reference["kind"], reference["apiVersion"]) != (KIND.kind, str(KIND.group_version)):
                return
            job = self._job_of(pod)
            if job is not None and (job["spec"].get("managedBy", _NAME) != _NAME or not finished_as(job)):
                return
        try:
            await self._pod_control.patcher(request.namespace)(request.name, UNTRACK)
        except StatusError as error:
            if not is_not_found(error):
                raise


def _adopted(pod: Object) -> Object:
    """Returns the pod as it is after its adoption."""
    metadata = pod["metadata"]
    finalizers: Iterable[str] = metadata.get("finalizers") or ()
    if TRACKING_FINALIZER in finalizers:
        return pod
    return {**pod, "metadata": {**metadata, "finalizers": [*finalizers, TRACKING_FINALIZER]}}


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler, workers = JobController(context), context.configuration.concurrent_job_syncs
    jobs = context.controller(
        reconciler, workers=workers, rate_limiter=ItemExponentialFailureRateLimiter(_FIRST_RETRY, _LAST_RETRY)
    )
    jobs.add_source(Informer(reconciler.jobs, reconciler.job_changed))
    jobs.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    orphans = context.controller(
        ReconcilerFunc(reconciler.release),
        workers=workers,
        name=f"{context.name}-orphan-pods",
        rate_limiter=ItemExponentialFailureRateLimiter(_FIRST_RETRY, _LAST_RETRY),
    )
    orphans.add_source(Informer(reconciler.jobs, reconciler.job_ended))
    orphans.add_source(Informer(reconciler.pods, reconciler.pod_orphaned))
    return [jobs, orphans]
