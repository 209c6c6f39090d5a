"""A job during one sync, and what the controller keeps between syncs (upstream: pkg/controller/job/job_controller.go, syncJobCtx)."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.clock import Clock
from fakeapiserver.component_helpers.objects import JOBS, key_of
from fakeapiserver.component_helpers.pods import is_pod_active, is_pod_ready, is_pod_terminating
from fakeapiserver.component_helpers.workloads.expectations import CountingExpectations
from fakeapiserver.component_helpers.workloads.pod_control import (
    PodControl,
)
from fakeapiserver.controllers.job.backoff import BackoffRecord
from fakeapiserver.controllers.job.indexes import Indexes
from fakeapiserver.controllers.job.metrics import JobMetrics
from fakeapiserver.controllers.job.pods import (
    completion_index,
    is_indexed,
    is_tracked,
)

KIND: Final = GroupVersionKind("batch", "v1", "Job")
# Seconds within which changes of pods and status are looked at together.
BATCH_PERIOD: Final = 1.0
FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
Condition = dict[str, Any]


class Tracking(Struct):
    """The state that the controller keeps between syncs. Keys are jobs, `namespace/name`."""

    client: DynamicClient
    events: CoreEventRecorder
    clock: Clock
    pod_control: PodControl
    expectations: CountingExpectations
    metrics: JobMetrics
    # uids of pods whose finalizer was taken, until that is seen.
    untracked: dict[str, set[str]] = field(default_factory=dict)
    backoffs: dict[str, BackoffRecord] = field(default_factory=dict)
    # uids of jobs that are written as finished, until that is seen.
    finished: set[str] = field(default_factory=set)
    # What was written last of a job: (uid, resourceVersion).
    written: dict[str, tuple[str, int]] = field(default_factory=dict)

    def forget(self, key: str) -> None:
        """Forgets a job that doesn't exist any more."""
        self.expectations.forget(key)
        for known in (self.untracked, self.backoffs, self.written):
            known.pop(key, None)

    def has_seen_writes(self, key: str, job: Object) -> bool:
        """Returns whether the job is as it was last written, or newer."""
        uid, version = self.written.get(key, ("", 0))
        metadata = job["metadata"]
        return uid != metadata["uid"] or version <= int(metadata["resourceVersion"])

    def finalizer_removal_observed(self, key: str, uid: str) -> None:
        self.untracked.get(key, set()).discard(uid)


class SyncJobContext:
    """A job in one sync: what the server has, and what its status is going to say (upstream: syncJobCtx).

    pods: the job's. satisfied: every pod that was made or deleted has been seen; asked before `pods` were read.
    """

    def __init__(self, tracking: Tracking, job: Object, pods: Sequence[Object], *, satisfied: bool) -> None:
        self.tracking = tracking
        # What this look did, for metrics.
        self.action = "reconciling"
        self.clock = tracking.clock
        self.key = key_of(job)
        self.namespace: str = job["metadata"]["namespace"]
        self.take(job)
        # How many succeeded and failed pods metrics know of.
        self.reported = (int(self.status.get("succeeded", 0)), int(self.status.get("failed", 0)))
        self.spec: dict[str, Any] = job["spec"]
        self.pods = pods
        self.satisfied = satisfied
        self.active = [pod for pod in pods if is_pod_active(pod)]
        # What the status will say.
        self.active_count = len(self.active)
        self.ready = sum(map(is_pod_ready, self.active))
        self.terminating = sum(map(is_pod_terminating, pods))
        self.removal_expected = frozenset(tracking.untracked.get(self.key, ()))
        self.uncounted_before = {name: frozenset(self.uncounted[name]) for name in ("succeeded", "failed")}
        self.finished: Condition | None = None
        self.completions: int = self.spec.get("completions") or 0
        # Of indexed jobs: what was done before this look, and is now.
        self.succeeded_before = Indexes()
        self.succeeded_indexes = Indexes()
        self.failed_indexes: Indexes | None = None
        # The last failed pod of an index, which stays until there is another one that knows how often the index has failed.
        self.delayed: dict[int, Object] = {}
        # Seconds until the next sync, None: when something changes.
        self.wait: float | None = None
        # What the status counts, or is about to; set by sync_job.
        self.succeeded = 0
        self.failed = 0
        self.backoff = tracking.backoffs.get(self.key, BackoffRecord())

    def take(self, job: Object) -> None:
        """Continues with `job`, which the server has now."""
        self.status: dict[str, Any] = {**(job.get("status") or {})}
        known = self.status.get("uncountedTerminatedPods") or {}
        self.uncounted: dict[str, list[str]] = {name: [*(known.get(name) or ())] for name in ("succeeded", "failed")}
        self.job: Object = {**job, "status": self.status}

    def now(self) -> str:
        return rfc3339(self.clock.now())

    def count(self, name: str) -> int:
        """Returns the number of pods that the status counts or is about to count."""
        return int(self.status.get(name, 0)) + len(self.uncounted_before[name])

    def requeue_after(self, seconds: float) -> None:
        self.wait = seconds if self.wait is None else min(self.wait, seconds)

    def uncounted_pods(self, counted: Iterable[str] = ()) -> Iterable[Object]:
        indexed = is_indexed(self.job)
        for pod in self.pods:
            uid = pod["metadata"]["uid"]
            if not is_tracked(pod) or uid in counted or uid in self.removal_expected:
                continue
            if not indexed or 0 <= completion_index(pod) < self.completions:
                yield pod

    def indexes_of(self, pods: Iterable[Object]) -> Indexes:
        indexes = {completion_index(pod) for pod in pods}
        return Indexes.of(index for index in indexes if index >= 0)

    def condition(self, kind: str, reason: str, message: str, status: str = "True") -> Condition:
        now = self.now()
        return {
            "type": kind,
            "status": status,
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }

    def held(self, kind: str) -> Condition | None:
        """Returns the condition of this type, whatever its status."""
        return next((row for row in self.status.get("conditions") or () if row["type"] == kind), None)

    def holding(self, kind: str) -> Condition | None:
        held = self.held(kind)
        return held if held is not None and held["status"] == "True" else None

    def ensure(self, kind: str, status: str, reason: str, message: str) -> bool:
        """Sets a condition, unless it is False and was never set. Returns whether anything changed."""
        known = self.held(kind)
        if known is None and status == "False":
            return False
        if known is not None and (known["status"], known.get("reason"), known.get("message")) == (
            status,
            reason,
            message,
        ):
            return False
        conditions = self.status.get("conditions") or []
        new = self.condition(kind, reason, message, status)
        self.status["conditions"] = (
            [*conditions, new] if known is None else [new if row is known else row for row in conditions]
        )
        return True

    def event(self, kind: str, reason: str, message: str) -> None:
        self.tracking.events.event(self.job, kind, reason, message)

    async def write(self) -> None:
        self.status["uncountedTerminatedPods"] = {name: uids for name, uids in self.uncounted.items() if uids}
        jobs = self.tracking.client.resource(JOBS, self.namespace)
        self.take(await jobs.update_status(self.job))
        before, self.reported = self.reported, (int(self.status.get("succeeded", 0)), int(self.status.get("failed", 0)))
        self.tracking.metrics.pods_finished(self.job, self.reported[0] - before[0], self.reported[1] - before[1])
        metadata = self.job["metadata"]
        self.tracking.written[self.key] = (metadata["uid"], int(metadata["resourceVersion"]))
