"""The admission of pods that were bound to a node. Pure.

Upstream: pkg/kubelet/lifecycle/predicate.go, pkg/scheduler (AdmissionCheck), pkg/kubelet/eviction/eviction_manager.go (Admit),
pkg/kubelet/nodeshutdown.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.scheduling import (
    Amounts,
    amounts_of,
    matches_node_affinity,
    pod_requests,
    tolerates,
    untolerated_taint,
)

CRITICAL_PRIORITY: Final = 2_000_000_000
_MEMORY_TAINT: Final = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
_Port = tuple[str, str, int]


class Refusal(NamedTuple):
    """Why a node doesn't take a pod."""

    reason: str
    message: str


class Room:
    """The resources that the pods of a node hold."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[Amounts, frozenset[_Port]]] = {}
        self._used: Amounts = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def take(self, pod: Object) -> None:
        """Adds a pod with its requests."""
        uid = pod["metadata"]["uid"]
        self.give_back(uid)
        requests = pod_requests(pod)
        self._pods[uid] = requests, frozenset(_host_ports(pod))
        for name, amount in requests.items():
            self._used[name] = self._used.get(name, 0) + amount

    def give_back(self, uid: str) -> None:
        """The pod isn't there any more."""
        requests, _ = self._pods.pop(uid, ({}, frozenset()))
        for name, amount in requests.items():
            self._used[name] -= amount

    def lacks(self, pod: Object, node: Object) -> Refusal | None:
        """Returns the refusal for a resource that is short for this pod next to the others, or None."""
        uid = pod["metadata"]["uid"]
        mine = self._pods[uid][0] if uid in self._pods else {}
        allocatable = amounts_of((node.get("status") or {}).get("allocatable"))
        others, most = len(self._pods) - (uid in self._pods), allocatable.get("pods", 0)
        if others + 1 > most:
            return _too_little("pods", 1, others, most)
        wanted = pod_requests(pod)
        for name in ("cpu", "memory", "ephemeral-storage", *sorted(wanted)):
            used = self._used.get(name, 0) - mine.get(name, 0)
            if name in allocatable and wanted.get(name, 0) > 0 and used + wanted[name] > allocatable[name]:
                return _too_little(name, wanted[name], used, allocatable[name])
        return None

    def has_port_of(self, pod: Object) -> bool:
        """Reports whether another pod has one of the pod's host ports."""
        wanted = [*_host_ports(pod)]
        return any(
            protocol == taken[1] and number == taken[2] and (address == taken[0] or "0.0.0.0" in (address, taken[0]))
            for address, protocol, number in wanted
            for _, ports in self._pods.values()
            for taken in ports
        )


def refusal(
    pod: Object, node: Object, room: Room, *, pressures: Collection[str] = (), shuts_down: bool = False
) -> Refusal | None:
    """Returns why the node refuses the pod, or None. `pressures`: the node's conditions that are true."""
    spec = pod["spec"]
    if pressures and not _bears(pod, pressures):
        return Refusal("Evicted", f"The node had condition: [{' '.join(pressures)}]. ")
    if (spec.get("os") or {}).get("name", "linux") != "linux":
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    if (lacking := room.lacks(pod, node)) is not None:
        return lacking
    if not matches_node_affinity(pod, node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if room.has_port_of(pod):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    taints = (node.get("spec") or {}).get("taints") or ()
    if untolerated_taint(taints, spec.get("tolerations") or (), ("NoExecute",)):
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    if shuts_down:
        return Refusal("NodeShutdown", "Pod was rejected as the node is shutting down.")
    return None


def is_critical(pod: Object) -> bool:
    """Reports whether the pod is never evicted."""
    return bool((pod["spec"].get("priority") or 0) >= CRITICAL_PRIORITY)


def _bears(pod: Object, pressures: Collection[str]) -> bool:
    if is_critical(pod):
        return True
    if {*pressures} != {"MemoryPressure"}:
        return False
    best_effort = (pod.get("status") or {}).get("qosClass", "BestEffort") == "BestEffort"
    return not best_effort or tolerates(pod["spec"].get("tolerations") or (), _MEMORY_TAINT)


def _too_little(name: str, wanted: int, used: int, capacity: int) -> Refusal:
    amounts = f"requested: {wanted}, used: {used}, capacity: {capacity}"
    return Refusal(f"OutOf{name}", f"Node didn't have enough resource: {name}, {amounts}")


def _predicate(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")


def _host_ports(pod: Object) -> Iterator[_Port]:
    spec: Mapping[str, Any] = pod["spec"]
    for container in spec["containers"]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"]
