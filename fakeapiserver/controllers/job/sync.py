"""A single sync of a job (upstream: pkg/controller/job/job_controller.go, syncJob)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.clock import Clock
from fakeapiserver.component_helpers.objects import JOBS, is_namespace_terminating, is_terminating, key_of
from fakeapiserver.component_helpers.pods import is_pod_active, is_pod_ready, is_pod_terminating, pod_phase
from fakeapiserver.component_helpers.workloads.expectations import CountingExpectations
from fakeapiserver.component_helpers.workloads.jobs import COMPLETE, FAILED
from fakeapiserver.component_helpers.workloads.pod_control import (
    SLOW_START_INITIAL_BATCH_SIZE,
    PodControl,
    pod_from_template,
    slow_start_batch,
)
from fakeapiserver.controllers.job.backoff import BackoffRecord, finished_at, remaining_of_index
from fakeapiserver.controllers.job.indexes import Indexes
from fakeapiserver.controllers.job.metrics import JobMetrics
from fakeapiserver.controllers.job.pods import (
    COMPLETION_INDEX,
    TRACKING_FINALIZER,
    UNTRACK,
    all_index_failures,
    completion_index,
    for_removal,
    generate_name,
    has_limit_per_index,
    index_annotations,
    index_failures,
    is_failed,
    is_indexed,
    is_suspended,
    is_tracked,
    replaces_failed_only,
    with_index_variable,
)
from fakeapiserver.controllers.job.policies import failure_match, success_match

KIND: Final = GroupVersionKind("batch", "v1", "Job")
# Seconds within which changes of pods and status are looked at together.
BATCH_PERIOD: Final = 1.0
# So many uids stand in status.uncountedTerminatedPods, and so many pods are made or deleted, at once.
_MAX_UNCOUNTED: Final = 500
_MAX_CREATED_OR_DELETED: Final = 500
_FAILURE_TARGET: Final = "FailureTarget"
_SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
_SUSPENDED: Final = "Suspended"
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
        """The job is gone."""
        self.expectations.forget(key)
        for known in (self.untracked, self.backoffs, self.written):
            known.pop(key, None)

    def has_seen_writes(self, key: str, job: Object) -> bool:
        """The job is as it was last written, or later."""
        uid, version = self.written.get(key, ("", 0))
        metadata = job["metadata"]
        return uid != metadata["uid"] or version <= int(metadata["resourceVersion"])

    def finalizer_removal_observed(self, key: str, uid: str) -> None:
        self.untracked.get(key, set()).discard(uid)


class JobSync:
    """Make one, `await run()` once.

    pods: the job's. satisfied: every pod that was made or deleted has been seen; asked before `pods` were read.
    """

    def __init__(self, tracking: Tracking, job: Object, pods: Sequence[Object], *, satisfied: bool) -> None:
        self._tracking = tracking
        # What this look did, for metrics.
        self.action = "reconciling"
        self._clock = tracking.clock
        self._key = key_of(job)
        self._namespace: str = job["metadata"]["namespace"]
        self._take(job)
        # How many succeeded and failed pods metrics know of.
        self._told = (int(self._status.get("succeeded", 0)), int(self._status.get("failed", 0)))
        self._spec: dict[str, Any] = job["spec"]
        self._pods = pods
        self._satisfied = satisfied
        self._active = [pod for pod in pods if is_pod_active(pod)]
        # What the status will say.
        self._active_count = len(self._active)
        self._ready = sum(map(is_pod_ready, self._active))
        self._terminating = sum(map(is_pod_terminating, pods))
        self._removal_expected = frozenset(tracking.untracked.get(self._key, ()))
        self._uncounted_before = {name: frozenset(self._uncounted[name]) for name in ("succeeded", "failed")}
        self._finished: Condition | None = None
        self._completions: int = self._spec.get("completions") or 0
        # Of indexed jobs: what was done before this look, and is now.
        self._succeeded_before = Indexes()
        self._succeeded_indexes = Indexes()
        self._failed_indexes: Indexes | None = None
        # The last failed pod of an index, which stays until there is another one that knows how often the index has failed.
        self._delayed: dict[int, Object] = {}
        self._wait: float | None = None

    def _take(self, job: Object) -> None:
        """`job` is what the server has now."""
        self._status: dict[str, Any] = {**(job.get("status") or {})}
        known = self._status.get("uncountedTerminatedPods") or {}
        self._uncounted: dict[str, list[str]] = {name: [*(known.get(name) or ())] for name in ("succeeded", "failed")}
        self._job: Object = {**job, "status": self._status}

    async def run(self) -> float | None:
        """Seconds until the job is to be looked at again whatever happens. What a request raised that failed: StatusError …"""
        succeeded_pods, failed_pods = self._newly_ended()
        self._succeeded = self._count("succeeded") + len(succeeded_pods)
        self._failed = self._count("failed") + sum(
            failure_match(self._spec.get("podFailurePolicy"), pod).counts for pod in failed_pods
        )
        if not self._status.get("startTime") and not is_suspended(self._job):
            self._status["startTime"] = self._now()
        known = self._tracking.backoffs.get(self._key, BackoffRecord())
        self._backoff = known.with_pods(succeeded_pods, failed_pods)
        self._decide()
        changed, failure = await (self._end() if self._finished is not None else self._go_on())
        status = self._status
        ready, terminating, active = self._ready, self._terminating, self._active_count
        changed |= (active, ready, terminating) != (
            status.get("active", 0),
            status.get("ready"),
            status.get("terminating"),
        )
        status.update(active=active, ready=ready, terminating=terminating)
        await self._track(changed)
        if failure is not None:
            raise failure
        return self._wait

    def _now(self) -> str:
        return rfc3339(self._clock.now())

    def _count(self, name: str) -> int:
        """Pods that the status counts, or is about to."""
        return int(self._status.get(name, 0)) + len(self._uncounted_before[name])

    def _look_again_in(self, seconds: float) -> None:
        self._wait = seconds if self._wait is None else min(self._wait, seconds)

    # --------------------------------------------------------------------------- what there is

    def _newly_ended(self) -> tuple[list[Object], list[Object]]:
        """Returns the succeeded and the failed pods that are not counted yet."""
        succeeded = [
            pod for pod in self._uncounted_pods(self._uncounted_before["succeeded"]) if pod_phase(pod) == "Succeeded"
        ]
        failed = [pod for pod in self._uncounted_pods(self._uncounted_before["failed"]) if is_failed(pod, self._job)]
        return succeeded, failed

    def _uncounted_pods(self, counted: Iterable[str] = ()) -> Iterable[Object]:
        indexed = is_indexed(self._job)
        for pod in self._pods:
            uid = pod["metadata"]["uid"]
            if not is_tracked(pod) or uid in counted or uid in self._removal_expected:
                continue
            if not indexed or 0 <= completion_index(pod) < self._completions:
                yield pod

    def _indexes_of(self, pods: Iterable[Object]) -> Indexes:
        indexes = {completion_index(pod) for pod in pods}
        return Indexes.of(index for index in indexes if index >= 0)

    # ------------------------------------------------------------------------ whether it has ended

    def _condition(self, kind: str, reason: str, message: str, status: str = "True") -> Condition:
        now = self._now()
        return {
            "type": kind,
            "status": status,
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }

    def _held(self, kind: str) -> Condition | None:
        """The condition of this type."""
        return next((row for row in self._status.get("conditions") or () if row["type"] == kind), None)

    def _holding(self, kind: str) -> Condition | None:
        held = self._held(kind)
        return held if held is not None and held["status"] == "True" else None

    def _decide(self) -> None:
        """Decides whether the job has finished: by an earlier decision, then by a failure, then by success."""
        spec = self._spec
        self._finished = self._holding(_SUCCESS_CRITERIA_MET)
        if self._finished is None:
            target = self._holding(_FAILURE_TARGET)
            if target is not None:
                self._finished = self._condition(FAILED, target.get("reason", ""), target.get("message", ""))
            elif message := self._failing_pod():
                self._finished = self._condition(_FAILURE_TARGET, "PodFailurePolicy", message)
        if self._finished is None:
            self._check_limits()
        if not is_indexed(self._job):
            return
        self._succeeded_before = Indexes.parse(self._status.get("completedIndexes", ""), self._completions)
        self._succeeded_indexes = self._succeeded_before | Indexes.of(
            index
            for pod in self._pods
            if pod_phase(pod) == "Succeeded"
            and 0 <= (index := completion_index(pod)) < self._completions
            and is_tracked(pod)
        )
        self._succeeded = len(self._succeeded_indexes)
        if has_limit_per_index(self._job):
            self._check_indexes()
        if self._finished is None:
            message = success_match(spec.get("successPolicy"), self._completions, self._succeeded_indexes)
            if message:
                self._finished = self._condition(_SUCCESS_CRITERIA_MET, "SuccessPolicy", message)

    def _failing_pod(self) -> str:
        """Why the failure of one pod makes the job fail."""
        policy = self._spec.get("podFailurePolicy")
        if policy is None:
            return ""
        messages = (failure_match(policy, pod).message for pod in self._pods if is_failed(pod, self._job))
        return next((message for message in messages if message), "")

    def _check_limits(self) -> None:
        spec = self._spec
        if self._failed > spec["backoffLimit"] or self._past_backoff_on_failure():
            message = "Job has reached the specified backoff limit"
            self._finished = self._condition(_FAILURE_TARGET, "BackoffLimitExceeded", message)
            return
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is None or is_suspended(self._job):
            return
        left = (seconds_of(self._status["startTime"]) or 0.0) + deadline - self._clock.now()
        if left <= 0:
            message = "Job was active longer than specified deadline"
            self._finished = self._condition(_FAILURE_TARGET, "DeadlineExceeded", message)
        else:
            self._look_again_in(left)

    def _past_backoff_on_failure(self) -> bool:
        """Reports whether container restarts exceed the limit; with restartPolicy OnFailure they are counted instead of pods."""
        if self._spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        restarts = sum(
            container.get("restartCount", 0)
            for pod in self._pods
            if pod_phase(pod) in ("Running", "Pending")
            for name in ("initContainerStatuses", "containerStatuses")
            for container in pod["status"].get(name) or ()
        )
        limit = self._spec["backoffLimit"]
        return bool(restarts > 0 if limit == 0 else restarts >= limit)

    def _check_indexes(self) -> None:
        """Finds the failed indexes of a job with a limit per index."""
        spec = self._spec
        before = Indexes.parse(self._status.get("failedIndexes") or "", self._completions)
        failed = self._failed_indexes = before | Indexes.of(
            index
            for pod in self._pods
            if 0 <= (index := completion_index(pod)) < self._completions
            and is_tracked(pod)
            and self._has_failed_its_index(pod)
        )
        if self._finished is None:
            limit = spec.get("maxFailedIndexes")
            if limit is not None and len(failed) > limit:
                message = "Job has exceeded the specified maximal number of failed indexes"
                self._finished = self._condition(_FAILURE_TARGET, "MaxFailedIndexesExceeded", message)
            elif len(failed) and len(failed) + len(self._succeeded_indexes) >= self._completions:
                self._finished = self._condition(_FAILURE_TARGET, "FailedIndexes", "Job has failed indexes")
        active = self._indexes_of(self._active)
        for pod in self._uncounted_pods():
            index = completion_index(pod)
            if not is_failed(pod, self._job) or any(
                index in done for done in (self._succeeded_indexes, failed, active)
            ):
                continue
            known = self._delayed.get(index)
            if known is None or (
                all_index_failures(known) <= all_index_failures(pod) and finished_at(pod) >= finished_at(known)
            ):
                self._delayed[index] = pod

    def _has_failed_its_index(self, pod: Object) -> bool:
        failed, policy = is_failed(pod, self._job), self._spec.get("podFailurePolicy")
        match = failure_match(policy, pod)
        if failed and match.action == "FailIndex":
            return True
        return bool(failed and match.counts and index_failures(pod) >= self._spec["backoffLimitPerIndex"])

    # --------------------------------------------------------------------------- what is to be done

    async def _end(self) -> tuple[bool, Exception | None]:
        """Deletes what still runs; the pods keep their finalizers until they are counted."""
        deleted, failure = await self._delete(self._active, self._delete_pod)
        self._active_count = len(self._active) - deleted
        if self._active_count or not self._satisfied:
            # There are pods left, or pods that the informer has not seen yet.
            self._finished = None
        return False, failure

    async def _go_on(self) -> tuple[bool, Exception | None]:
        """Whether the status is new, and what failed."""
        manages = self._satisfied and not is_terminating(self._job)
        if manages:
            self.action = "tracking"
        failure = await self._manage() if manages else None
        completions = self._spec.get("completions")
        enough = self._succeeded > 0 if completions is None else self._succeeded >= completions
        if enough and not self._active_count:
            message = "Reached expected number of succeeded pods"
            self._finished = self._condition(_SUCCESS_CRITERIA_MET, "CompletionsReached", message)
            return False, failure
        return manages and self._tell_of_suspension(), failure

    def _tell_of_suspension(self) -> bool:
        """Reports whether that is new."""
        if is_suspended(self._job):
            changed = self._ensure(_SUSPENDED, "True", "JobSuspended", "Job suspended")
            if changed:
                self._event("Normal", "Suspended", "Job suspended")
                self._status.pop("startTime", None)
        else:
            changed = self._ensure(_SUSPENDED, "False", "JobResumed", "Job resumed")
            if changed:
                self._event("Normal", "Resumed", "Job resumed")
                self._status["startTime"] = self._now()
        return changed

    def _ensure(self, kind: str, status: str, reason: str, message: str) -> bool:
        """Sets a condition; what never held needn't be said not to hold. Whether anything is new."""
        known = self._held(kind)
        if known is None and status == "False":
            return False
        if known is not None and (known["status"], known.get("reason"), known.get("message")) == (
            status,
            reason,
            message,
        ):
            return False
        conditions = self._status.get("conditions") or []
        new = self._condition(kind, reason, message, status)
        self._status["conditions"] = (
            [*conditions, new] if known is None else [new if row is known else row for row in conditions]
        )
        return True

    async def _manage(self) -> Exception | None:
        """Creates or deletes pods up to the wanted number, subject to the back-off."""
        active, now = len(self._active), self._clock.now()
        if is_suspended(self._job):
            return await self._remove(for_removal(self._job, self._active, active))
        wanted = self._wanted()
        excess = for_removal(self._job, self._active, max(0, active - wanted))
        if excess:
            return await self._remove(excess[:_MAX_CREATED_OR_DELETED])
        missing = wanted - active - (self._terminating if replaces_failed_only(self._job) else 0)
        if missing <= 0:
            return None
        if not has_limit_per_index(self._job):
            remaining = self._backoff.remaining(now)
            if remaining > 0:
                self._look_again_in(max(remaining, BATCH_PERIOD))
                return None
        missing = min(missing, _MAX_CREATED_OR_DELETED)
        if not is_indexed(self._job):
            return await self._create([None] * missing)
        indexes = self._pending_indexes(missing)
        if has_limit_per_index(self._job):
            waits = {index: remaining_of_index(self._delayed.get(index), now) for index in indexes}
            indexes = [index for index, wait in waits.items() if not wait]
            if waits and not indexes:
                self._look_again_in(max(min(waits.values()), BATCH_PERIOD))
                return None
        return await self._create(indexes)

    def _wanted(self) -> int:
        parallelism, completions = self._spec["parallelism"], self._spec.get("completions")
        if completions is None:
            # One that succeeds says that the work is done: others may end theirs.
            return len(self._active) if self._succeeded > 0 else int(parallelism)
        return max(0, min(int(completions) - self._succeeded, int(parallelism)))

    def _pending_indexes(self, count: int) -> list[int]:
        """Returns the first `count` indexes without a pod that works on them."""
        taken = self._succeeded_indexes | self._indexes_of(self._active)
        if replaces_failed_only(self._job):
            taken |= self._indexes_of(filter(is_pod_terminating, self._pods))
        if self._failed_indexes is not None:
            taken |= self._failed_indexes
        return [index for index, _ in zip(taken.missing(self._completions), range(count), strict=False)]

    # ------------------------------------------------------------------------------------- pods

    async def _create(self, indexes: Sequence[int | None]) -> Exception | None:
        """A pod for each; of a job without indexes they are None."""
        self.action = "pods_created"
        expectations, key = self._tracking.expectations, self._key
        expectations.expect_creations(key, len(indexes))
        pending = iter(indexes)
        failed = 0

        async def create_next() -> None:
            nonlocal failed
            try:
                await self._tracking.pod_control.create(self._namespace, self._new_pod(next(pending)), self._job)
            except Exception as error:
                if isinstance(error, StatusError) and is_namespace_terminating(error):
                    return  # whatever is tried will fail, and be gone soon
                failed += 1
                expectations.creation_observed(key)
                raise

        made, failure = await slow_start_batch(len(indexes), SLOW_START_INITIAL_BATCH_SIZE, create_next)
        expectations.creation_observed(key, len(indexes) - made - failed)
        self._active_count += made
        self._tracking.metrics.pods_made(self._why_made(), made, failed)
        return failure

    def _why_made(self) -> str:
        """In the words of metrics."""
        if not self._failed:
            return "recreate_terminating_or_failed" if self._terminating else "new"
        failed_only = self._spec.get("podReplacementPolicy") == "Failed"
        return "recreate_failed" if failed_only else "recreate_terminating_or_failed"

    def _new_pod(self, index: int | None) -> Object:
        pod = pod_from_template(self._spec["template"], self._job, KIND)
        metadata = pod["metadata"]
        finalizers = metadata.get("finalizers") or []
        if TRACKING_FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, TRACKING_FINALIZER]
        if is_indexed(self._job):
            pod["spec"] = with_index_variable(pod["spec"])
        if index is None:
            return pod
        name = self._job["metadata"]["name"]
        mark = {COMPLETION_INDEX: str(index)}
        metadata["generateName"] = generate_name(name, index)
        metadata["labels"] = {**(metadata.get("labels") or {}), **mark}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **mark}
        if has_limit_per_index(self._job):
            metadata["annotations"].update(index_annotations(self._job, self._delayed.get(index)))
        pod["spec"] = {**pod["spec"], "hostname": f"{name}-{index}"}
        return pod

    async def _remove(self, pods: Sequence[Object]) -> Exception | None:
        """Deletes pods of a job that goes on: they don't count."""
        self.action = "pods_deleted" if pods else self.action
        self._tracking.expectations.expect_deletions(self._key, len(pods))
        deleted, failure = await self._delete(pods, self._untrack_and_delete_pod)
        self._active_count = len(self._active) - deleted
        return failure

    async def _delete(
        self, pods: Sequence[Object], delete: Callable[[Object], Awaitable[None]]
    ) -> tuple[int, Exception | None]:
        """Deletes pods; returns how many were deleted, and the first failure."""
        results = await asyncio.gather(*map(delete, pods), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            if not isinstance(failure, Exception):
                raise failure
        deleted = len(pods) - len(failures)
        self._terminating += deleted
        self._ready -= sum(map(is_pod_ready, pods))
        return deleted, next((failure for failure in failures if isinstance(failure, Exception)), None)

    async def _delete_pod(self, pod: Object) -> None:
        try:
            await self._tracking.pod_control.delete(self._namespace, pod["metadata"]["name"], self._job)
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _untrack_and_delete_pod(self, pod: Object) -> None:
        try:
            if is_tracked(pod):
                await self._untrack_pod(pod)
            await self._tracking.pod_control.delete(self._namespace, pod["metadata"]["name"], self._job)
        except Exception as error:
            self._tracking.expectations.deletion_observed(self._key)  # it won't be
            if not (isinstance(error, StatusError) and is_not_found(error)):
                raise

    async def _untrack_pod(self, pod: Object) -> None:
        await self._tracking.pod_control.patcher(self._namespace)(pod["metadata"]["name"], UNTRACK)

    # ------------------------------------------------------------------------------------ the status

    async def _track(self, flush: bool) -> None:
        """Counts each pod that has ended once: its uid goes into the status, then its finalizer, then its uid becomes a number.
        StatusError … when one of that failed."""
        tracked = {
            pod["metadata"]["uid"]
            for pod in self._pods
            if is_tracked(pod) and pod["metadata"]["uid"] not in self._removal_expected
        }
        flush |= self._count_untracked(tracked)
        pods, new_indexes, reached_limit, counted = self._ended_pods()
        flush |= counted
        if is_indexed(self._job):
            flush |= self._write_indexes(new_indexes)
        flush |= self._add_interim_condition()
        if flush:
            await self._write()
            self._tracking.backoffs[self._key] = self._backoff
        removed, failure = await self._untrack(pods)
        flush = self._count_untracked(tracked - removed)
        if failure is not None:
            if flush:
                await self._write()
            raise failure
        finished = not reached_limit and self._enact()
        if flush or finished:
            await self._write()
        if finished:
            self._tell_of_end()

    def _count_untracked(self, tracked: set[str]) -> bool:
        """uids whose pods have lost their finalizer become numbers; whether there are any."""
        changed = False
        for name, uids in self._uncounted.items():
            kept = [uid for uid in uids if uid in tracked]
            if len(kept) != len(uids):
                self._status[name] = int(self._status.get(name, 0)) + len(uids) - len(kept)
                self._uncounted[name] = kept
                changed = True
        return changed

    def _ended_pods(self) -> tuple[list[Object], list[int], bool, bool]:
        """Pods that may lose their finalizer, their indexes that have succeeded, whether there are more than one look takes, and
        whether the status says anything new of them."""
        indexed = is_indexed(self._job)
        ended: list[Object] = []
        new_indexes: list[int] = []
        changed = False
        failing = self._finished is not None and self._finished["type"] != _SUCCESS_CRITERIA_MET
        for pod in sorted(self._pods, key=completion_index) if indexed else self._pods:
            uid = pod["metadata"]["uid"]
            if not is_tracked(pod) or uid in self._removal_expected:
                continue
            failed = is_failed(pod, self._job)
            if not self._may_untrack(pod, failed):
                continue
            ended.append(pod)
            index = completion_index(pod)
            counts = not indexed or 0 <= index < self._completions
            if pod_phase(pod) == "Succeeded" and uid not in self._uncounted_before["failed"]:
                if indexed:
                    if counts and index not in self._succeeded_before:
                        new_indexes.append(index)
                        changed = True
                elif uid not in self._uncounted_before["succeeded"]:
                    self._uncounted["succeeded"].append(uid)
                    changed = True
            elif (
                (failed or failing)
                and counts
                and uid not in self._uncounted_before["failed"]
                and failure_match(self._spec.get("podFailurePolicy"), pod).counts
            ):
                self._uncounted["failed"].append(uid)
                changed = True
            if len(new_indexes) + sum(map(len, self._uncounted.values())) >= _MAX_UNCOUNTED:
                return ended, new_indexes, True, changed
        return ended, new_indexes, False, changed

    def _may_untrack(self, pod: Object, failed: bool) -> bool:
        if is_terminating(self._job) or self._finished is not None or pod_phase(pod) == "Succeeded":
            return True
        if not failed:
            return False
        delayed = self._delayed.get(completion_index(pod))
        return delayed is None or delayed["metadata"]["uid"] != pod["metadata"]["uid"]

    def _write_indexes(self, new: Iterable[int]) -> bool:
        status = self._status
        self._succeeded_indexes |= Indexes.of(new)
        known = (status.get("completedIndexes", ""), status.get("failedIndexes"))
        failed = None if self._failed_indexes is None else str(self._failed_indexes)
        status.update(succeeded=len(self._succeeded_indexes), completedIndexes=str(self._succeeded_indexes))
        if failed is None:
            status.pop("failedIndexes", None)
        else:
            status["failedIndexes"] = failed
        return known != (status["completedIndexes"], failed)

    def _add_interim_condition(self) -> bool:
        """Adds the condition that announces the job's end before its pods lose their finalizers; returns whether it
        is new.
        """
        finished = self._finished
        if finished is None or finished["type"] == FAILED:
            return False
        succeeds = finished["type"] == _SUCCESS_CRITERIA_MET
        adds = not succeeds or self._holding(_SUCCESS_CRITERIA_MET) is None
        if adds:
            self._status["conditions"] = [*(self._status.get("conditions") or ()), finished]
        self._finished = self._condition(
            COMPLETE if succeeds else FAILED, finished.get("reason", ""), finished.get("message", "")
        )
        return adds

    async def _untrack(self, pods: Sequence[Object]) -> tuple[set[str], Exception | None]:
        """Removes the finalizers; returns the uids of the pods that lost them, and the first failure."""
        if not pods:
            return set(), None
        uids = [pod["metadata"]["uid"] for pod in pods]
        self._tracking.untracked.setdefault(self._key, set()).update(uids)
        results = await asyncio.gather(*map(self._untrack_pod, pods), return_exceptions=True)
        removed: set[str] = set()
        failure: Exception | None = None
        for uid, result in zip(uids, results, strict=True):
            if isinstance(result, BaseException):
                self._tracking.finalizer_removal_observed(self._key, uid)
                if not isinstance(result, Exception):
                    raise result
                if not (isinstance(result, StatusError) and is_not_found(result)):
                    failure = failure or result
                    continue
            removed.add(uid)
        return removed, failure

    def _enact(self) -> bool:
        """Reports whether the job has ended: all its pods have, and are counted."""
        finished = self._finished
        if finished is None or any(self._uncounted.values()) or self._terminating > 0:
            return False
        self._ensure(finished["type"], finished["status"], finished["reason"], finished["message"])
        if finished["type"] == COMPLETE:
            self._status["completionTime"] = finished["lastTransitionTime"]
        return True

    def _tell_of_end(self) -> None:
        finished = self._finished
        assert finished is not None
        if finished["type"] == COMPLETE:
            completions = self._spec.get("completions")
            if completions is not None and int(self._status.get("succeeded", 0)) > completions:
                message = "Too many succeeded pods running after completion count reached"
                self._event("Warning", "TooManySucceededPods", message)
            self._event("Normal", "Completed", "Job completed")
            self._tracking.metrics.finished(self._job, "succeeded", finished["reason"])
        else:
            self._event("Warning", finished["reason"], finished["message"])
            self._tracking.metrics.finished(self._job, "failed", finished["reason"])
        self._tracking.finished.add(self._job["metadata"]["uid"])

    def _event(self, kind: str, reason: str, message: str) -> None:
        self._tracking.events.event(self._job, kind, reason, message)

    async def _write(self) -> None:
        self._status["uncountedTerminatedPods"] = {name: uids for name, uids in self._uncounted.items() if uids}
        jobs = self._tracking.client.resource(JOBS, self._namespace)
        self._take(await jobs.update_status(self._job))
        before, self._told = self._told, (int(self._status.get("succeeded", 0)), int(self._status.get("failed", 0)))
        self._tracking.metrics.pods_finished(self._job, self._told[0] - before[0], self._told[1] - before[1])
        metadata = self._job["metadata"]
        self._tracking.written[self._key] = (metadata["uid"], int(metadata["resourceVersion"]))
