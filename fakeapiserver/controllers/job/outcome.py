"""Decides whether a job has succeeded or failed (upstream: pkg/controller/job/job_controller.go, syncJob; success_policy.go)."""

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.component_helpers.pods import pod_phase
from fakeapiserver.component_helpers.workloads.jobs import FAILED
from fakeapiserver.controllers.job.backoff import finished_at
from fakeapiserver.controllers.job.context import FAILURE_TARGET, SUCCESS_CRITERIA_MET, SyncJobContext
from fakeapiserver.controllers.job.indexes import Indexes
from fakeapiserver.controllers.job.pods import (
    all_index_failures,
    completion_index,
    has_limit_per_index,
    index_failures,
    is_failed,
    is_indexed,
    is_suspended,
    is_tracked,
)
from fakeapiserver.controllers.job.policies import failure_match, success_match


def decide(ctx: SyncJobContext) -> None:
    """Decides whether the job has finished: by an earlier decision, then by a failure, then by success."""
    spec = ctx.spec
    ctx.finished = ctx.holding(SUCCESS_CRITERIA_MET)
    if ctx.finished is None:
        target = ctx.holding(FAILURE_TARGET)
        if target is not None:
            ctx.finished = ctx.condition(FAILED, target.get("reason", ""), target.get("message", ""))
        elif message := _failing_pod(ctx):
            ctx.finished = ctx.condition(FAILURE_TARGET, "PodFailurePolicy", message)
    if ctx.finished is None:
        _check_limits(ctx)
    if not is_indexed(ctx.job):
        return
    ctx.succeeded_before = Indexes.parse(ctx.status.get("completedIndexes", ""), ctx.completions)
    ctx.succeeded_indexes = ctx.succeeded_before | Indexes.of(
        index
        for pod in ctx.pods
        if pod_phase(pod) == "Succeeded" and 0 <= (index := completion_index(pod)) < ctx.completions and is_tracked(pod)
    )
    ctx.succeeded = len(ctx.succeeded_indexes)
    if has_limit_per_index(ctx.job):
        _check_indexes(ctx)
    if ctx.finished is None:
        message = success_match(spec.get("successPolicy"), ctx.completions, ctx.succeeded_indexes)
        if message:
            ctx.finished = ctx.condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", message)


def _failing_pod(ctx: SyncJobContext) -> str:
    """Why the failure of one pod makes the job fail."""
    policy = ctx.spec.get("podFailurePolicy")
    if policy is None:
        return ""
    messages = (failure_match(policy, pod).message for pod in ctx.pods if is_failed(pod, ctx.job))
    return next((message for message in messages if message), "")


def _check_limits(ctx: SyncJobContext) -> None:
    spec = ctx.spec
    if ctx.failed > spec["backoffLimit"] or _past_backoff_on_failure(ctx):
        message = "Job has reached the specified backoff limit"
        ctx.finished = ctx.condition(FAILURE_TARGET, "BackoffLimitExceeded", message)
        return
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is None or is_suspended(ctx.job):
        return
    left = (seconds_of(ctx.status["startTime"]) or 0.0) + deadline - ctx.clock.now()
    if left <= 0:
        message = "Job was active longer than specified deadline"
        ctx.finished = ctx.condition(FAILURE_TARGET, "DeadlineExceeded", message)
    else:
        ctx.requeue_after(left)


def _past_backoff_on_failure(ctx: SyncJobContext) -> bool:
    """Reports whether container restarts exceed the limit; with restartPolicy OnFailure they are counted instead of pods."""
    if ctx.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        container.get("restartCount", 0)
        for pod in ctx.pods
        if pod_phase(pod) in ("Running", "Pending")
        for name in ("initContainerStatuses", "containerStatuses")
        for container in pod["status"].get(name) or ()
    )
    limit = ctx.spec["backoffLimit"]
    return bool(restarts > 0 if limit == 0 else restarts >= limit)


def _check_indexes(ctx: SyncJobContext) -> None:
    """Finds the failed indexes of a job with a limit per index."""
    spec = ctx.spec
    before = Indexes.parse(ctx.status.get("failedIndexes") or "", ctx.completions)
    failed = ctx.failed_indexes = before | Indexes.of(
        index
        for pod in ctx.pods
        if 0 <= (index := completion_index(pod)) < ctx.completions
        and is_tracked(pod)
        and _has_failed_its_index(ctx, pod)
    )
    if ctx.finished is None:
        limit = spec.get("maxFailedIndexes")
        if limit is not None and len(failed) > limit:
            message = "Job has exceeded the specified maximal number of failed indexes"
            ctx.finished = ctx.condition(FAILURE_TARGET, "MaxFailedIndexesExceeded", message)
        elif len(failed) and len(failed) + len(ctx.succeeded_indexes) >= ctx.completions:
            ctx.finished = ctx.condition(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes")
    active = ctx.indexes_of(ctx.active)
    for pod in ctx.uncounted_pods():
        index = completion_index(pod)
        if not is_failed(pod, ctx.job) or any(index in done for done in (ctx.succeeded_indexes, failed, active)):
            continue
        known = ctx.delayed.get(index)
        if known is None or (
            all_index_failures(known) <= all_index_failures(pod) and finished_at(pod) >= finished_at(known)
        ):
            ctx.delayed[index] = pod


def _has_failed_its_index(ctx: SyncJobContext, pod: Object) -> bool:
    failed, policy = is_failed(pod, ctx.job), ctx.spec.get("podFailurePolicy")
    match = failure_match(policy, pod)
    if failed and match.action == "FailIndex":
        return True
    return bool(failed and match.counts and index_failures(pod) >= ctx.spec["backoffLimitPerIndex"])
