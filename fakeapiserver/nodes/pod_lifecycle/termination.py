"""The end of a container: its preStop hook, the order of containers, and the grace period. Pure.

Upstream: pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer), kuberuntime_termination_order.go, pkg/kubelet/lifecycle/
handlers.go.
"""

from typing import Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.nodes.behaviour import ContainerBehaviour, Hook
from fakeapiserver.nodes.commands import hook_process, run_of

KILLED: Final = 137
# Whatever has become of the grace period, a container is given as much to end.
_LEAST_SECONDS: Final = 2.0


class Stop(Struct, frozen=True):
    """Why a node ends a pod, and since when (seconds since the epoch). `condition`: DisruptionTarget's message, "" for none."""

    begun: float
    grace: float
    reason: str
    message: str
    condition: str = ""


class Ending(NamedTuple):
    """The end of a container. `hook_failed`: when its preStop hook failed, or None."""

    at: float
    exit_code: int
    hook_failed: float | None = None


def hook_of(spec: Object, kind: str, scripted: Hook | None) -> Hook | None:
    """preStop or postStart, as scripted or as its handler plainly says; None: the container has none."""
    handler = (spec.get("lifecycle") or {}).get(kind)
    if handler is None:
        return None
    if scripted is not None:
        return scripted
    if (sleep := handler.get("sleep")) is not None:
        return Hook(float(sleep["seconds"]))
    run = run_of(hook_process(handler["exec"])) if "exec" in handler else None
    if run is None or not run.is_followed:
        return Hook()
    error = f"command '{' '.join(handler['exec']['command'])}' exited with {run.exit_code}: "
    return Hook(float("inf") if run.seconds is None else run.seconds, error if run.exit_code else "")


def ending(spec: Object, behaviour: ContainerBehaviour, begun: float, grace: float, turn: float = 0.0) -> Ending:
    """Returns the end of a container that is stopped at `begun`.

    `turn`: when the containers have ended that end before it.
    """
    at, left, failed = begun, grace, None
    hook = hook_of(spec, "preStop", behaviour.pre_stop)
    if hook is not None and left > 0:
        if hook.error and hook.seconds <= left:
            failed = at + hook.seconds
        took = min(hook.seconds, left)
        at, left = at + took, left - int(took)
    if left > 0 and turn > at:
        waited = min(turn - at, left)
        at, left = at + waited, left - int(waited)
    left = max(left, _LEAST_SECONDS)
    if behaviour.stops_after > left:
        return Ending(at + left, KILLED, failed)
    return Ending(at + behaviour.stops_after, behaviour.stop_exit_code, failed)
