"""Ends a pod: the order in which its containers end, and its last status (upstream: kuberuntime, killContainersWithSyncResult)."""

from collections.abc import Mapping, Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.nodes.pod_lifecycle import pod_status
from fakeapiserver.nodes.pod_lifecycle.container_status import (
    ended_at,
    exit_code,
    is_sidecar,
    lost,
    new_status,
)
from fakeapiserver.nodes.pod_lifecycle.context import KINDS, PodContext, StatusUpdate
from fakeapiserver.nodes.pod_lifecycle.events import NORMAL, PodEvent
from fakeapiserver.nodes.pod_lifecycle.termination import Ending, Stop, ending


def without_sidecars(
    ctx: PodContext, inits: list[tuple[Object, Object]], mains: list[tuple[Object, Object]]
) -> tuple[list[tuple[Object, Object]], float]:
    """Stops the sidecars after all containers have ended. Returns the init containers and the seconds until they
    have ended, too.
    """
    over = max((at for _, status in (*inits, *mains) if (at := ended_at(status)) is not None), default=ctx.now)
    ends = _endings(ctx, over, ctx.grace, [spec for spec, status in inits if "running" in status["state"]])
    left = max((end.at - ctx.now for end in ends.values()), default=0.0)
    if left > 0:
        return inits, left
    return [(spec, _stopped_status(ctx, status, ends)) for spec, status in inits], 0.0


def _endings(ctx: PodContext, begun_at: float, grace: float, specs: Sequence[Object]) -> dict[str, Ending]:
    """Returns when and how the running containers end if they are stopped at `begun_at`: sidecars after all
    others, the last one first.
    """
    endings: dict[str, Ending] = {}
    sidecars = [spec for spec in specs if ctx.kinds[spec["name"]] == "initContainers" and is_sidecar(spec)]
    turn = 0.0
    for spec in (*(spec for spec in specs if spec not in sidecars), *reversed(sidecars)):
        name = spec["name"]
        if spec in sidecars:
            turn = max([turn, *(end.at for other, end in endings.items() if ctx.kinds[other] == "containers")])
        behaviour = ctx.behaviour_of(name, not ctx.is_init(spec))
        end = ending(spec, behaviour, begun_at, grace, turn)
        status = ctx.known.get(name)
        if status is not None and behaviour.runs_for is not None and "running" in status["state"]:
            own = ctx.started(status) + behaviour.runs_for
            if begun_at < own < end.at:
                end = Ending(own, behaviour.exit_code(status["restartCount"]), end.hook_failed)
        if spec in sidecars:
            turn = end.at
        endings[name] = end
        ctx.happens(begun_at, PodEvent(NORMAL, "Killing", f"Stopping container {name}", ctx.path(spec)))
        ctx.hook_fails(spec, end)
    return endings


def stop_of(ctx: PodContext, since: float) -> Stop | None:
    """Why the pod has to end now: it was deleted, its deadline has passed, or its node stops it. None: it goes on."""
    metadata = ctx.pod["metadata"]
    stops = [] if ctx.state.stop is None else [ctx.state.stop]
    deadline = ctx.spec.get("activeDeadlineSeconds")
    if deadline is not None:
        message = "Pod was active on the node longer than the specified deadline"
        stops.append(Stop(since + deadline, ctx.grace, "DeadlineExceeded", message))
        ctx.happens(since + deadline, PodEvent(NORMAL, "DeadlineExceeded", message))
    if (at := metadata.get("deletionTimestamp")) is not None:
        grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
        stops.append(Stop((seconds_of(at) or ctx.now) - grace, grace, "", ""))
    begun_ = (stop for stop in stops if stop.begun <= ctx.now)
    return min(begun_, key=lambda stop: stop.begun + stop.grace, default=None)


def stopped(ctx: PodContext, stop: Stop, started: str) -> StatusUpdate:
    """Returns the next status of a pod that is stopping: its containers end, each in its time, and then it may be removed."""
    deleted = bool(ctx.pod["metadata"].get("deletionTimestamp"))
    kinds = {kind: [*(ctx.spec.get(kind) or ())] for kind in KINDS}
    running = [
        spec
        for specs in kinds.values()
        for spec in specs
        if "running" in ctx.known.get(spec["name"], {}).get("state", {})
    ]
    ends = _endings(ctx, stop.begun, stop.grace, running)
    left = max((end.at - ctx.now for end in ends.values()), default=0.0)
    if left > 0:
        return StatusUpdate(None, left)
    if not ctx.known and not stop.reason:
        return StatusUpdate(None, gone=deleted)
    state = {
        kind: [(spec, _stopped_status(ctx, ctx.known.get(spec["name"]) or new_status(spec), ends)) for spec in specs]
        for kind, specs in kinds.items()
    }
    inits, mains = state["initContainers"], state["containers"]
    has_begun = not inits or any("waiting" not in status["state"] for _, status in mains)
    if has_begun:
        mains = [(spec, lost(status) if "waiting" in status["state"] else status) for spec, status in mains]
    ctx.ephemerals = [status for _, status in state["ephemeralContainers"]]
    succeeded = not stop.reason and all(exit_code(status) == 0 for _, status in mains)
    shown = pod_status.pod_status_of(ctx, inits, mains, started, "Succeeded" if succeeded else "Failed", stop)
    return StatusUpdate(shown.status, gone=deleted)


def _stopped_status(ctx: PodContext, status: Object, ends: Mapping[str, Ending]) -> Object:
    """The status of a container in a stopped pod. One that was waiting to restart shows the end of its last run."""
    if "running" in status["state"]:
        end = ends[status["name"]]
        return ctx.ended(status, end.exit_code, at=end.at)
    if "waiting" in status["state"] and status.get("lastState"):
        return {**status, "state": status["lastState"], "lastState": {}, "ready": False, "started": False}
    return status
