"""A single sync of a job (upstream: pkg/controller/job/job_controller.go, syncJob)."""

from functools import partial
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.component_helpers.pods import pod_phase
from fakeapiserver.controllers.job import accounting, outcome, pod_management
from fakeapiserver.controllers.job.context import SUCCESS_CRITERIA_MET, SyncJobContext
from fakeapiserver.controllers.job.pods import (
    is_failed,
    is_suspended,
)
from fakeapiserver.controllers.job.policies import failure_match

_SUSPENDED: Final = "Suspended"


async def sync_job(ctx: SyncJobContext) -> float | None:
    """Does one sync. Returns the seconds until the next one; None: when something changes. Raises what a failed request raised."""
    succeeded_pods, failed_pods = _newly_ended(ctx)
    ctx.succeeded = ctx.count("succeeded") + len(succeeded_pods)
    ctx.failed = ctx.count("failed") + sum(
        failure_match(ctx.spec.get("podFailurePolicy"), pod).counts for pod in failed_pods
    )
    if not ctx.status.get("startTime") and not is_suspended(ctx.job):
        ctx.status["startTime"] = ctx.now()
    ctx.backoff = ctx.backoff.with_pods(succeeded_pods, failed_pods)
    outcome.decide(ctx)
    changed, failure = await (_finish(ctx) if ctx.finished is not None else _continue(ctx))
    status = ctx.status
    ready, terminating, active = ctx.ready, ctx.terminating, ctx.active_count
    changed |= (active, ready, terminating) != (
        status.get("active", 0),
        status.get("ready"),
        status.get("terminating"),
    )
    status.update(active=active, ready=ready, terminating=terminating)
    await accounting.track(ctx, changed)
    if failure is not None:
        raise failure
    return ctx.wait


def _newly_ended(ctx: SyncJobContext) -> tuple[list[Object], list[Object]]:
    """Returns the succeeded and the failed pods that are not counted yet."""
    succeeded = [pod for pod in ctx.uncounted_pods(ctx.uncounted_before["succeeded"]) if pod_phase(pod) == "Succeeded"]
    failed = [pod for pod in ctx.uncounted_pods(ctx.uncounted_before["failed"]) if is_failed(pod, ctx.job)]
    return succeeded, failed


async def _finish(ctx: SyncJobContext) -> tuple[bool, Exception | None]:
    """Deletes the active pods, which keep their finalizers until they are counted. Returns False, for the status, and the first failure."""
    deleted, failure = await pod_management.delete(ctx, ctx.active, partial(pod_management.delete_pod, ctx))
    ctx.active_count = len(ctx.active) - deleted
    if ctx.active_count or not ctx.satisfied:
        # There are pods left, or pods that the informer has not seen yet.
        ctx.finished = None
    return False, failure


async def _continue(ctx: SyncJobContext) -> tuple[bool, Exception | None]:
    """Creates or deletes pods, unless enough have succeeded. Returns whether the status changed, and the first failure."""
    manages = ctx.satisfied and not is_terminating(ctx.job)
    if manages:
        ctx.action = "tracking"
    failure = await pod_management.manage(ctx) if manages else None
    completions = ctx.spec.get("completions")
    enough = ctx.succeeded > 0 if completions is None else ctx.succeeded >= completions
    if enough and not ctx.active_count:
        message = "Reached expected number of succeeded pods"
        ctx.finished = ctx.condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message)
        return False, failure
    return manages and _update_suspension(ctx), failure


def _update_suspension(ctx: SyncJobContext) -> bool:
    """Sets the condition Suspended, with an event if it changed. Returns whether it did."""
    if is_suspended(ctx.job):
        changed = ctx.ensure(_SUSPENDED, "True", "JobSuspended", "Job suspended")
        if changed:
            ctx.event("Normal", "Suspended", "Job suspended")
            ctx.status.pop("startTime", None)
    else:
        changed = ctx.ensure(_SUSPENDED, "False", "JobResumed", "Job resumed")
        if changed:
            ctx.event("Normal", "Resumed", "Job resumed")
            ctx.status["startTime"] = ctx.now()
    return changed
