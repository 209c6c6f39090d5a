"""Counts each pod that has ended once, and ends the job (upstream: trackJobStatusAndRemoveFinalizers in job_controller.go)."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.component_helpers.pods import pod_phase
from fakeapiserver.component_helpers.workloads.jobs import COMPLETE, FAILED
from fakeapiserver.controllers.job import pod_management
from fakeapiserver.controllers.job.context import SUCCESS_CRITERIA_MET, SyncJobContext
from fakeapiserver.controllers.job.indexes import Indexes
from fakeapiserver.controllers.job.pods import (
    completion_index,
    is_failed,
    is_indexed,
    is_tracked,
)
from fakeapiserver.controllers.job.policies import failure_match

# So many uids stand in status.uncountedTerminatedPods at once.
_MAX_UNCOUNTED: Final = 500


async def track(ctx: SyncJobContext, flush: bool) -> None:
    """Counts each pod that has ended once: its uid goes into the status, then its finalizer, then its uid becomes a number.
    StatusError … when one of that failed."""
    tracked = {
        pod["metadata"]["uid"]
        for pod in ctx.pods
        if is_tracked(pod) and pod["metadata"]["uid"] not in ctx.removal_expected
    }
    flush |= _count_untracked(ctx, tracked)
    pods, new_indexes, reached_limit, counted = _ended_pods(ctx)
    flush |= counted
    if is_indexed(ctx.job):
        flush |= _write_indexes(ctx, new_indexes)
    flush |= _add_interim_condition(ctx)
    if flush:
        await ctx.write()
        ctx.tracking.backoffs[ctx.key] = ctx.backoff
    removed, failure = await _untrack(ctx, pods)
    flush = _count_untracked(ctx, tracked - removed)
    if failure is not None:
        if flush:
            await ctx.write()
        raise failure
    finished = not reached_limit and _enact(ctx)
    if flush or finished:
        await ctx.write()
    if finished:
        _report_end(ctx)


def _count_untracked(ctx: SyncJobContext, tracked: set[str]) -> bool:
    """uids whose pods have lost their finalizer become numbers; whether there are any."""
    changed = False
    for name, uids in ctx.uncounted.items():
        kept = [uid for uid in uids if uid in tracked]
        if len(kept) != len(uids):
            ctx.status[name] = int(ctx.status.get(name, 0)) + len(uids) - len(kept)
            ctx.uncounted[name] = kept
            changed = True
    return changed


def _ended_pods(ctx: SyncJobContext) -> tuple[list[Object], list[int], bool, bool]:
    """Pods that may lose their finalizer, their indexes that have succeeded, whether there are more than one look takes, and
    whether the status says anything new of them."""
    indexed = is_indexed(ctx.job)
    ended: list[Object] = []
    new_indexes: list[int] = []
    changed = False
    failing = ctx.finished is not None and ctx.finished["type"] != SUCCESS_CRITERIA_MET
    for pod in sorted(ctx.pods, key=completion_index) if indexed else ctx.pods:
        uid = pod["metadata"]["uid"]
        if not is_tracked(pod) or uid in ctx.removal_expected:
            continue
        failed = is_failed(pod, ctx.job)
        if not _may_untrack(ctx, pod, failed):
            continue
        ended.append(pod)
        index = completion_index(pod)
        counts = not indexed or 0 <= index < ctx.completions
        if pod_phase(pod) == "Succeeded" and uid not in ctx.uncounted_before["failed"]:
            if indexed:
                if counts and index not in ctx.succeeded_before:
                    new_indexes.append(index)
                    changed = True
            elif uid not in ctx.uncounted_before["succeeded"]:
                ctx.uncounted["succeeded"].append(uid)
                changed = True
        elif (
            (failed or failing)
            and counts
            and uid not in ctx.uncounted_before["failed"]
            and failure_match(ctx.spec.get("podFailurePolicy"), pod).counts
        ):
            ctx.uncounted["failed"].append(uid)
            changed = True
        if len(new_indexes) + sum(map(len, ctx.uncounted.values())) >= _MAX_UNCOUNTED:
            return ended, new_indexes, True, changed
    return ended, new_indexes, False, changed


def _may_untrack(ctx: SyncJobContext, pod: Object, failed: bool) -> bool:
    if is_terminating(ctx.job) or ctx.finished is not None or pod_phase(pod) == "Succeeded":
        return True
    if not failed:
        return False
    delayed = ctx.delayed.get(completion_index(pod))
    return delayed is None or delayed["metadata"]["uid"] != pod["metadata"]["uid"]


def _write_indexes(ctx: SyncJobContext, new: Iterable[int]) -> bool:
    status = ctx.status
    ctx.succeeded_indexes |= Indexes.of(new)
    known = (status.get("completedIndexes", ""), status.get("failedIndexes"))
    failed = None if ctx.failed_indexes is None else str(ctx.failed_indexes)
    status.update(succeeded=len(ctx.succeeded_indexes), completedIndexes=str(ctx.succeeded_indexes))
    if failed is None:
        status.pop("failedIndexes", None)
    else:
        status["failedIndexes"] = failed
    return known != (status["completedIndexes"], failed)


def _add_interim_condition(ctx: SyncJobContext) -> bool:
    """Adds the condition that announces the job's end before its pods lose their finalizers; returns whether it
    is new.
    """
    finished = ctx.finished
    if finished is None or finished["type"] == FAILED:
        return False
    succeeds = finished["type"] == SUCCESS_CRITERIA_MET
    adds = not succeeds or ctx.holding(SUCCESS_CRITERIA_MET) is None
    if adds:
        ctx.status["conditions"] = [*(ctx.status.get("conditions") or ()), finished]
    ctx.finished = ctx.condition(
        COMPLETE if succeeds else FAILED, finished.get("reason", ""), finished.get("message", "")
    )
    return adds


async def _untrack(ctx: SyncJobContext, pods: Sequence[Object]) -> tuple[set[str], Exception | None]:
    """Removes the finalizers; returns the uids of the pods that lost them, and the first failure."""
    if not pods:
        return set(), None
    uids = [pod["metadata"]["uid"] for pod in pods]
    ctx.tracking.untracked.setdefault(ctx.key, set()).update(uids)
    results = await asyncio.gather(*map(partial(pod_management.untrack_pod, ctx), pods), return_exceptions=True)
    removed: set[str] = set()
    failure: Exception | None = None
    for uid, result in zip(uids, results, strict=True):
        if isinstance(result, BaseException):
            ctx.tracking.finalizer_removal_observed(ctx.key, uid)
            if not isinstance(result, Exception):
                raise result
            if not (isinstance(result, StatusError) and is_not_found(result)):
                failure = failure or result
                continue
        removed.add(uid)
    return removed, failure


def _enact(ctx: SyncJobContext) -> bool:
    """Reports whether the job has ended: all its pods have, and are counted."""
    finished = ctx.finished
    if finished is None or any(ctx.uncounted.values()) or ctx.terminating > 0:
        return False
    ctx.ensure(finished["type"], finished["status"], finished["reason"], finished["message"])
    if finished["type"] == COMPLETE:
        ctx.status["completionTime"] = finished["lastTransitionTime"]
    return True


def _report_end(ctx: SyncJobContext) -> None:
    finished = ctx.finished
    assert finished is not None
    if finished["type"] == COMPLETE:
        completions = ctx.spec.get("completions")
        if completions is not None and int(ctx.status.get("succeeded", 0)) > completions:
            message = "Too many succeeded pods running after completion count reached"
            ctx.event("Warning", "TooManySucceededPods", message)
        ctx.event("Normal", "Completed", "Job completed")
        ctx.tracking.metrics.finished(ctx.job, "succeeded", finished["reason"])
    else:
        ctx.event("Warning", finished["reason"], finished["message"])
        ctx.tracking.metrics.finished(ctx.job, "failed", finished["reason"])
    ctx.tracking.finished.add(ctx.job["metadata"]["uid"])
