"""The order of evictions under pressure, and their messages. Pure.

Upstream: pkg/kubelet/eviction/{eviction_manager,helpers}.go.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.component_helpers.scheduling import pod_requests

# One pod is evicted in each.
INTERVAL_SECONDS: Final = 10.0
# A condition stays true for so long after its cause.
TRANSITION_SECONDS: Final = 300.0
# Of a pod that is evicted: its grace period.
GRACE_SECONDS: Final = 1.0

# Containers' names, and what each uses: a quantity by the resource's name.
Usage = Mapping[str, Mapping[str, str]]


class Pressure(Struct, frozen=True):
    """A condition of a node, and the resource that is low. In a message: how much is left, and how little is too little."""

    resource: str
    condition: str
    reason: str
    message: str
    threshold: str
    available: str


PRESSURES: Final[Mapping[str, Pressure]] = {
    "memory": Pressure(
        "memory",
        "MemoryPressure",
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
        "100Mi",
        "64Mi",
    ),
    "ephemeral-storage": Pressure(
        "ephemeral-storage", "DiskPressure", "KubeletHasDiskPressure", "kubelet has disk pressure", "100Gi", "64Gi"
    ),
    "pids": Pressure(
        "pids", "PIDPressure", "KubeletHasInsufficientPID", "kubelet has insufficient PID available", "1k", "100"
    ),
}


def ranked(pods: Sequence[Object], pressure: Pressure, usage: Mapping[str, Usage]) -> list[Object]:
    """The first one goes first: who uses more than it asked for, by priority, by how much more. `usage`: of pods by their uids."""
    name = pressure.resource

    def key(pod: Object) -> tuple[bool, int, float]:
        used = sum(_amount(amounts.get(name)) for amounts in usage.get(pod["metadata"]["uid"], {}).values())
        wanted = 0 if name == "pids" else pod_requests(pod).get(name, 0)
        exceeds = name != "pids" and used > wanted
        return not exceeds, pod["spec"].get("priority") or 0, -(used - wanted)

    return sorted(pods, key=key)


def message(pod: Object, pressure: Pressure, usage: Usage) -> str:
    """Why it goes, and which of its containers use more than they asked for."""
    name = pressure.resource
    told = f"The node was low on resource: {name}. "
    told += f"Threshold quantity: {pressure.threshold}, available: {pressure.available}. "
    for spec in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
        used = usage.get(spec["name"], {}).get(name, "")
        wanted = ((spec.get("resources") or {}).get("requests") or {}).get(name, "0")
        if used and name != "pids" and _amount(used) > _amount(wanted):
            told += (
                f"Container {spec['name']} was using {used}, request is {wanted}, has larger consumption of {name}. "
            )
    return told


def _amount(text: str | None) -> int:
    return parse(text).value if text else 0
