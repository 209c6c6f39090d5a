"""A pod's table row: its state in one word, ready containers and restarts.

Upstream: pkg/printers/internalversion/printers.go (printPod).
"""

from collections.abc import Iterable

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.registry.generic.printing import translate_timestamp_since
from fakeapiserver.registry.generic.table_cells import age, or_none

_UNREACHABLE = "NodeLost"
_ENDED = {"Failed": "The pod failed.", "Succeeded": "The pod has completed successfully."}


class _Summary(Struct):
    reason: str
    ready: int = 0
    restarts: int = 0
    restarted_at: str = ""

    def count(self, status: Object) -> None:
        self.restarts += status.get("restartCount", 0)
        terminated = (status.get("lastState") or {}).get("terminated") or {}
        self.restarted_at = max(self.restarted_at, terminated.get("finishedAt") or "")


def pod_row(obj: Object, now: float, *, tells_errors: bool = True) -> list[object]:
    """The cells of name, ready, status, restarts, age, IP, node, nominated node and readiness gates. `tells_errors`: of
    containers that have failed beside one that has completed (since 1.35)."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    sidecars = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    summary = _summarize(spec, status, sidecars, tells_errors)
    restarts = str(summary.restarts)
    if summary.restarts and summary.restarted_at:
        restarts += f" ({translate_timestamp_since(summary.restarted_at, now)} ago)"
    addresses = status.get("podIPs") or ()
    return [
        metadata(obj).get("name", ""),
        f"{summary.ready}/{len(spec.get('containers') or ()) + len(sidecars)}",
        _ending(obj, status) or summary.reason,
        restarts,
        age(obj, now),
        or_none(addresses[0].get("ip") if addresses else ""),
        or_none(spec.get("nodeName")),
        or_none(status.get("nominatedNodeName")),
        _readiness_gates(spec, status),
    ]


def pod_conditions(obj: Object) -> list[Object]:
    """The conditions of the table row of a pod that has ended."""
    phase = (obj.get("status") or {}).get("phase", "")
    if phase not in _ENDED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}]


def _ending(obj: Object, status: Object) -> str:
    if not is_terminating(obj):
        return ""
    if status.get("reason") == _UNREACHABLE:
        return "Unknown"
    return "" if status.get("phase") in _ENDED else "Terminating"


def _summarize(spec: Object, status: Object, sidecars: set[str | None], tells_errors: bool) -> _Summary:
    reason = status.get("reason") or status.get("phase", "")
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in _conditions(status)):
        reason = "SchedulingGated"
    before, of_sidecars = _Summary(reason), _Summary(reason)
    initializing = _initialize(before, of_sidecars, spec, status, sidecars)
    if initializing and not _condition_is_true(status, "Initialized"):
        return before
    of_sidecars.reason, of_sidecars.ready = before.reason, before.ready
    _run(of_sidecars, status, tells_errors)
    return of_sidecars


def _initialize(
    all_of: _Summary, of_sidecars: _Summary, spec: Object, status: Object, sidecars: set[str | None]
) -> bool:
    """Goes through the init containers up to the first that isn't done; whether there is one."""
    for i, container in enumerate(status.get("initContainerStatuses") or ()):
        all_of.count(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            of_sidecars.count(container)
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            all_of.ready += bool(container.get("ready"))
            continue
        waiting = (state.get("waiting") or {}).get("reason", "")
        if terminated is not None:
            all_of.reason = f"Init:{_how_it_ended(terminated)}"
        elif waiting and waiting != "PodInitializing":
            all_of.reason = f"Init:{waiting}"
        else:
            all_of.reason = f"Init:{i}/{len(spec.get('initContainers') or ())}"
        return True
    return False


def _run(summary: _Summary, status: Object, tells_errors: bool) -> None:
    running, error = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        summary.count(container)
        state = container.get("state") or {}
        if waiting := (state.get("waiting") or {}).get("reason"):
            summary.reason = waiting
        elif (terminated := state.get("terminated")) is not None:
            summary.reason = _how_it_ended(terminated)
            error = summary.reason if terminated.get("exitCode") and tells_errors else error
        elif container.get("ready") and state.get("running") is not None:
            running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if running and any(c.get("type") == "Ready" and c.get("status") == "True" for c in _conditions(status)):
            summary.reason = "Running"
        elif error:
            summary.reason = error
        elif running:
            summary.reason = "NotReady"


def _how_it_ended(terminated: Object) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _readiness_gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return "<none>"
    return f"{sum(_condition_is_true(status, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"


def _conditions(status: Object) -> Iterable[Object]:
    return status.get("conditions") or ()


def _condition_is_true(status: Object, kind: str) -> bool:
    """Reports whether the first condition of the type is true."""
    return next((c.get("status") == "True" for c in _conditions(status) if c.get("type") == kind), False)
