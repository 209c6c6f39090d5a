"""The conditions of a pod, as its kubelet reports them. Pure.

Upstream: pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go (generateAPIPodStatus).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.nodes.pod_lifecycle import resizing
from fakeapiserver.nodes.pod_lifecycle.container_status import (
    Containers,
    are_initialized,
    is_removed,
    is_sidecar,
    may_restart_all,
)
from fakeapiserver.nodes.pod_lifecycle.termination import Stop

# Phases that a pod never leaves.
TERMINAL: Final = frozenset({"Succeeded", "Failed"})
# The conditions that a kubelet computes; all others stay as they are.
_OURS: Final = frozenset(
    {
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
        "AllContainersRestarting",
        resizing.PENDING,
        resizing.IN_PROGRESS,
    }
)


class _Condition(NamedTuple):
    kind: str
    holds: bool
    reason: str = ""
    message: str = ""


def pod_conditions(
    pod: Object,
    inits: Containers,
    mains: Containers,
    phase: str,
    now: float,
    *,
    resizes: Mapping[str, tuple[str, str]],
    stop: Stop | None,
) -> list[Object]:
    """status.conditions of a pod in its new `phase`, at `now` (seconds since the epoch).

    `resizes`: the conditions of a resize that is under way -> reason and message. `stop`: why the kubelet ends the pod."""
    old = {condition["type"]: condition for condition in (pod.get("status") or {}).get("conditions") or ()}
    made = [
        _Condition("PodReadyToStartContainers", phase not in TERMINAL),
        _initialized(inits, mains, phase, old),
        _ready(pod, inits, mains, phase, old),
        _containers_ready("ContainersReady", inits, mains, phase),
        _Condition("PodScheduled", True),
    ]
    if any(may_restart_all(spec) for spec, _ in (*inits, *mains)):
        made.append(_all_restarting((*inits, *mains), phase))
    if phase not in TERMINAL:
        made += [_Condition(kind, True, *why) for kind, why in resizes.items()]
    if stop is not None and stop.condition:
        made.append(_Condition("DisruptionTarget", True, "TerminationByKubelet", stop.condition))
    generation = pod["metadata"].get("generation")
    kinds = {condition.kind for condition in made} | _OURS
    return [
        *(_written(condition, old.get(condition.kind), generation, now) for condition in made),
        *(kept for kind, kept in old.items() if kind not in kinds),
    ]


def _written(condition: _Condition, old: Object | None, generation: int | None, now: float) -> Object:
    value = "True" if condition.holds else "False"
    since = old["lastTransitionTime"] if old and old["status"] == value else rfc3339(now)
    written: Object = {"type": condition.kind, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
    if generation:
        written["observedGeneration"] = generation
    if condition.reason:
        written["reason"] = condition.reason
    if condition.message:
        written["message"] = condition.message
    return written


def _initialized(inits: Containers, mains: Containers, phase: str, old: Mapping[str, Object]) -> _Condition:
    """A pod that was initialized once stays so."""
    if phase == "Succeeded":
        return _Condition("Initialized", True, "PodCompleted")
    names = [spec["name"] for spec, status in inits if not are_initialized([(spec, status)])]
    was = old.get("Initialized", {}).get("status") == "True"
    if not names or was or any("waiting" not in status["state"] for _, status in mains):
        return _Condition("Initialized", True)
    message = f"containers with incomplete status: [{' '.join(names)}]"
    return _Condition("Initialized", False, "ContainersNotInitialized", message)


def _all_restarting(containers: Containers, phase: str) -> _Condition:
    kind = "AllContainersRestarting"
    if phase in TERMINAL:
        return _Condition(kind, False, "PodCompleted" if phase == "Succeeded" else "PodFailed")
    if all(is_removed(status) for _, status in containers):
        return _Condition(kind, True, "RestartAllContainersStarted", "container exited with restart policy rule")
    return _Condition(kind, False)


def _containers_ready(kind: str, inits: Containers, mains: Containers, phase: str) -> _Condition:
    """Whether all sidecars and containers are ready; `kind` is ContainersReady or Ready."""
    if phase == "Succeeded":
        return _Condition(kind, False, "PodCompleted")
    if phase == "Failed":
        return _Condition(kind, False, "PodFailed")
    asked = [*((spec, status) for spec, status in inits if is_sidecar(spec)), *mains]
    names = [spec["name"] for spec, status in asked if not status["ready"]]
    if not names:
        return _Condition(kind, True)
    return _Condition(kind, False, "ContainersNotReady", f"containers with unready status: [{' '.join(names)}]")


def _ready(pod: Object, inits: Containers, mains: Containers, phase: str, old: Mapping[str, Object]) -> _Condition:
    condition = _containers_ready("Ready", inits, mains, phase)
    if not condition.holds:
        return condition
    problems = [*_gate_problems(pod["spec"].get("readinessGates") or (), old)]
    return _Condition("Ready", False, "ReadinessGatesNotReady", ", ".join(problems)) if problems else condition


def _gate_problems(gates: Iterable[Object], old: Mapping[str, Object]) -> Iterator[str]:
    for gate in gates:
        kind = gate["conditionType"]
        if kind not in old:
            yield f'corresponding condition of pod readiness gate "{kind}" does not exist.'
        elif old[kind]["status"] != "True":
            yield f'the status of pod readiness gate "{kind}" is not "True", but {old[kind]["status"]}'
