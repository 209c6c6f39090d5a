"""Resizes the containers of a running pod (upstream: pkg/kubelet/allocation, pkg/kubelet/kuberuntime/kuberuntime_manager.go)."""

from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.nodes.pod_lifecycle import resizing
from fakeapiserver.nodes.pod_lifecycle.context import PodContext
from fakeapiserver.nodes.pod_lifecycle.events import NORMAL, WARNING, PodEvent


def resize(ctx: PodContext) -> None:
    """Allocates what the pod requests if there is room, and resizes its containers some time later."""
    state, asked = ctx.state, resizing.wanted(ctx.pod)
    state.allocated = state.allocated or resizing.known_allocation(ctx.pod, ctx.known)
    started = resizing.condition_of(ctx.pod, resizing.IN_PROGRESS)
    if asked != state.allocated:
        refusal = _refusal(ctx)
        if refusal is not None:
            _defer(ctx, *refusal)
        else:
            state.allocated, started = asked, None
            _report(ctx, NORMAL, "ResizeStarted", "Pod resize started")
    running = {name: status for name, status in ctx.known.items() if "running" in status["state"]}
    late = [name for name, status in running.items() if status.get("resources", {}) != state.allocated.get(name, {})]
    late = [name for name in late if name in state.allocated and "resources" in running[name]]
    if not late:
        if started is not None:
            _report(ctx, NORMAL, "ResizeCompleted", "Pod resize completed")
        return
    behaviours = [ctx.behaviour_of(name, True) for name in late]
    error = next((behaviour.resize_error for behaviour in behaviours if behaviour.resize_error), "")
    since = ctx.now if started is None else seconds_of(started["lastTransitionTime"]) or ctx.now
    left = since + max(behaviour.resizes_after for behaviour in behaviours) - ctx.now
    if started is None or left > 0:
        ctx.waits.append(max(left, 0.0))
        ctx.resizing[resizing.IN_PROGRESS] = ("", "")
        return
    if error:
        ctx.resizing[resizing.IN_PROGRESS] = ("Error", error)
        if not started.get("reason"):
            _report(ctx, WARNING, "ResizeError", "Pod resize error", error)
        return
    ctx.resizes = True
    _report(ctx, NORMAL, "ResizeCompleted", "Pod resize completed")


def _refusal(ctx: PodContext) -> tuple[str, str] | None:
    """The reason and message why the pod can't be resized now; None if it can."""
    messages = (ctx.behaviour_of(name, True).resize_infeasible for name in ctx.kinds)
    infeasible = next((message for message in messages if message), "")
    return ("Infeasible", infeasible) if infeasible else ctx.place.room_for(ctx.pod)


def _defer(ctx: PodContext, reason: str, message: str) -> None:
    shown = "Infeasible" if reason == "Infeasible" else "Deferred"
    ctx.resizing[resizing.PENDING] = (shown, message)
    old = resizing.condition_of(ctx.pod, resizing.PENDING) or {}
    if (old.get("reason"), old.get("observedGeneration")) != (shown, ctx.pod["metadata"].get("generation")):
        _report(ctx, WARNING, f"Resize{shown}", f"Pod resize {reason}", message)
    if shown == "Deferred":
        ctx.waits.append(resizing.RETRY_SECONDS)


def _report(ctx: PodContext, kind: str, reason: str, prefix: str, error: str = "") -> None:
    ctx.happens(ctx.now, PodEvent(kind, reason, resizing.summary(ctx.pod, prefix, error)))
