"""The phase and the status of a pod, made of those of its containers (upstream: pkg/kubelet/kubelet_pods.go, getPhase)."""

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.nodes.pod_lifecycle.container_status import (
    Containers,
    exit_code,
    is_removed,
    is_sidecar,
    last_exit_code,
)
from fakeapiserver.nodes.pod_lifecycle.context import PodContext, StatusUpdate
from fakeapiserver.nodes.pod_lifecycle.pod_conditions import pod_conditions
from fakeapiserver.nodes.pod_lifecycle.termination import Stop


def phase_of(ctx: PodContext, inits: Containers, mains: Containers) -> str:
    """The pod's phase (upstream: getPhase)."""
    pending = late = False
    for spec, status in inits:
        state, last = status["state"], last_exit_code(status)
        if is_sidecar(spec):
            late |= ("running" in state and not status.get("started")) or ("waiting" in state and last is None)
        elif "terminated" in state or ("waiting" in state and last is not None):
            code = exit_code(status) if "terminated" in state else last
            if code and not ctx.restarts(spec, code) and not is_removed(status):
                return "Failed"
        else:
            pending = True
    unborn = any("waiting" in status["state"] and last_exit_code(status) is None for _, status in mains)
    begun_ = any("waiting" not in status["state"] or last_exit_code(status) is not None for _, status in mains)
    if pending or unborn or (late and not begun_):
        return "Pending"
    if any("running" in status["state"] for _, status in (*inits, *mains)):
        return "Running"
    codes = [
        (spec, exit_code(status) if "terminated" in status["state"] else last_exit_code(status), status)
        for spec, status in mains
    ]
    if any(ctx.restarts(spec, code) or is_removed(status) for spec, code, status in codes):
        return "Running"
    return "Succeeded" if all(exit_code(status) == 0 for _, status in mains) else "Failed"


def pod_status_of(
    ctx: PodContext,
    inits: Containers,
    mains: Containers,
    started: str,
    phase: str,
    stop: Stop | None = None,
) -> StatusUpdate:
    status: Object = {
        "phase": phase,
        "startTime": started,
        "hostIP": ctx.place.host_ips[0],
        "hostIPs": [{"ip": ip} for ip in ctx.place.host_ips],
        "podIP": next(iter(ctx.place.pod_ips), ""),
        "podIPs": [{"ip": ip} for ip in ctx.place.pod_ips],
        "qosClass": ctx.old.get("qosClass", "BestEffort"),
        "conditions": pod_conditions(ctx.pod, inits, mains, phase, ctx.now, resizes=ctx.resizing, stop=stop),
        "containerStatuses": sorted(
            (container_status for _, container_status in mains),
            key=lambda container_status: str(container_status["name"]),
        ),
    }
    if stop is not None and stop.reason:
        status |= {"reason": stop.reason, "message": stop.message}
    if generation := ctx.pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    if inits:
        status["initContainerStatuses"] = [container_status for _, container_status in inits]
    if ctx.ephemerals:
        status["ephemeralContainerStatuses"] = ctx.ephemerals
    same = all(ctx.old.get(key) == value for key, value in status.items())
    after = min(ctx.waits, default=None)
    return StatusUpdate(None if same else status, after)
