"""Creates and deletes the pods of a job (upstream: pkg/controller/job/job_controller.go, manageJob)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.objects import is_namespace_terminating
from fakeapiserver.component_helpers.pods import is_pod_ready, is_pod_terminating
from fakeapiserver.component_helpers.workloads.pod_control import (
    SLOW_START_INITIAL_BATCH_SIZE,
    pod_from_template,
    slow_start_batch,
)
from fakeapiserver.controllers.job.backoff import remaining_of_index
from fakeapiserver.controllers.job.context import BATCH_PERIOD, KIND, SyncJobContext
from fakeapiserver.controllers.job.pods import (
    COMPLETION_INDEX,
    TRACKING_FINALIZER,
    UNTRACK,
    for_removal,
    generate_name,
    has_limit_per_index,
    index_annotations,
    is_indexed,
    is_suspended,
    is_tracked,
    replaces_failed_only,
    with_index_variable,
)

# So many pods are created or deleted at once.
_MAX_CREATED_OR_DELETED: Final = 500


async def manage(ctx: SyncJobContext) -> Exception | None:
    """Creates or deletes pods up to the wanted number, subject to the back-off."""
    active, now = len(ctx.active), ctx.clock.now()
    if is_suspended(ctx.job):
        return await _remove(ctx, for_removal(ctx.job, ctx.active, active))
    wanted = _wanted(ctx)
    excess = for_removal(ctx.job, ctx.active, max(0, active - wanted))
    if excess:
        return await _remove(ctx, excess[:_MAX_CREATED_OR_DELETED])
    missing = wanted - active - (ctx.terminating if replaces_failed_only(ctx.job) else 0)
    if missing <= 0:
        return None
    if not has_limit_per_index(ctx.job):
        remaining = ctx.backoff.remaining(now)
        if remaining > 0:
            ctx.requeue_after(max(remaining, BATCH_PERIOD))
            return None
    missing = min(missing, _MAX_CREATED_OR_DELETED)
    if not is_indexed(ctx.job):
        return await _create(ctx, [None] * missing)
    indexes = _pending_indexes(ctx, missing)
    if has_limit_per_index(ctx.job):
        waits = {index: remaining_of_index(ctx.delayed.get(index), now) for index in indexes}
        indexes = [index for index, wait in waits.items() if not wait]
        if waits and not indexes:
            ctx.requeue_after(max(min(waits.values()), BATCH_PERIOD))
            return None
    return await _create(ctx, indexes)


def _wanted(ctx: SyncJobContext) -> int:
    parallelism, completions = ctx.spec["parallelism"], ctx.spec.get("completions")
    if completions is None:
        # One that succeeds says that the work is done: others may end theirs.
        return len(ctx.active) if ctx.succeeded > 0 else int(parallelism)
    return max(0, min(int(completions) - ctx.succeeded, int(parallelism)))


def _pending_indexes(ctx: SyncJobContext, count: int) -> list[int]:
    """Returns the first `count` indexes without a pod that works on them."""
    taken = ctx.succeeded_indexes | ctx.indexes_of(ctx.active)
    if replaces_failed_only(ctx.job):
        taken |= ctx.indexes_of(filter(is_pod_terminating, ctx.pods))
    if ctx.failed_indexes is not None:
        taken |= ctx.failed_indexes
    return [index for index, _ in zip(taken.missing(ctx.completions), range(count), strict=False)]


async def _create(ctx: SyncJobContext, indexes: Sequence[int | None]) -> Exception | None:
    """A pod for each; of a job without indexes they are None."""
    ctx.action = "pods_created"
    expectations, key = ctx.tracking.expectations, ctx.key
    expectations.expect_creations(key, len(indexes))
    pending = iter(indexes)
    failed = 0

    async def create_next() -> None:
        nonlocal failed
        try:
            await ctx.tracking.pod_control.create(ctx.namespace, _new_pod(ctx, next(pending)), ctx.job)
        except Exception as error:
            if isinstance(error, StatusError) and is_namespace_terminating(error):
                return  # whatever is tried will fail, and be gone soon
            failed += 1
            expectations.creation_observed(key)
            raise

    made, failure = await slow_start_batch(len(indexes), SLOW_START_INITIAL_BATCH_SIZE, create_next)
    expectations.creation_observed(key, len(indexes) - made - failed)
    ctx.active_count += made
    ctx.tracking.metrics.pods_made(_why_made(ctx), made, failed)
    return failure


def _why_made(ctx: SyncJobContext) -> str:
    """In the words of metrics."""
    if not ctx.failed:
        return "recreate_terminating_or_failed" if ctx.terminating else "new"
    failed_only = ctx.spec.get("podReplacementPolicy") == "Failed"
    return "recreate_failed" if failed_only else "recreate_terminating_or_failed"


def _new_pod(ctx: SyncJobContext, index: int | None) -> Object:
    pod = pod_from_template(ctx.spec["template"], ctx.job, KIND)
    metadata = pod["metadata"]
    finalizers = metadata.get("finalizers") or []
    if TRACKING_FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, TRACKING_FINALIZER]
    if is_indexed(ctx.job):
        pod["spec"] = with_index_variable(pod["spec"])
    if index is None:
        return pod
    name = ctx.job["metadata"]["name"]
    mark = {COMPLETION_INDEX: str(index)}
    metadata["generateName"] = generate_name(name, index)
    metadata["labels"] = {**(metadata.get("labels") or {}), **mark}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **mark}
    if has_limit_per_index(ctx.job):
        metadata["annotations"].update(index_annotations(ctx.job, ctx.delayed.get(index)))
    pod["spec"] = {**pod["spec"], "hostname": f"{name}-{index}"}
    return pod


async def _remove(ctx: SyncJobContext, pods: Sequence[Object]) -> Exception | None:
    """Deletes pods of a job that goes on: they don't count."""
    ctx.action = "pods_deleted" if pods else ctx.action
    ctx.tracking.expectations.expect_deletions(ctx.key, len(pods))
    deleted, failure = await delete(ctx, pods, partial(_untrack_and_delete_pod, ctx))
    ctx.active_count = len(ctx.active) - deleted
    return failure


async def delete(
    ctx: SyncJobContext, pods: Sequence[Object], delete: Callable[[Object], Awaitable[None]]
) -> tuple[int, Exception | None]:
    """Deletes pods; returns how many were deleted, and the first failure."""
    results = await asyncio.gather(*map(delete, pods), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures:
        if not isinstance(failure, Exception):
            raise failure
    deleted = len(pods) - len(failures)
    ctx.terminating += deleted
    ctx.ready -= sum(map(is_pod_ready, pods))
    return deleted, next((failure for failure in failures if isinstance(failure, Exception)), None)


async def delete_pod(ctx: SyncJobContext, pod: Object) -> None:
    try:
        await ctx.tracking.pod_control.delete(ctx.namespace, pod["metadata"]["name"], ctx.job)
    except StatusError as error:
        if not is_not_found(error):
            raise


async def _untrack_and_delete_pod(ctx: SyncJobContext, pod: Object) -> None:
    try:
        if is_tracked(pod):
            await untrack_pod(ctx, pod)
        await ctx.tracking.pod_control.delete(ctx.namespace, pod["metadata"]["name"], ctx.job)
    except Exception as error:
        ctx.tracking.expectations.deletion_observed(ctx.key)  # it won't be
        if not (isinstance(error, StatusError) and is_not_found(error)):
            raise


async def untrack_pod(ctx: SyncJobContext, pod: Object) -> None:
    await ctx.tracking.pod_control.patcher(ctx.namespace)(pod["metadata"]["name"], UNTRACK)
