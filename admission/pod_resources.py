"""What a pod asks for and may use in all: its containers' requests and limits, added up.

Upstream: k8s.io/component-helpers/resource/helpers.go, and its twin in plugin/pkg/admission/limitranger/admission.go.
"""

from collections.abc import Mapping
from typing import Final, Literal

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import ZERO, Quantity, parse

ResourceList = dict[str, Quantity]
Which = Literal["requests", "limits"]
_POD_LEVEL: Final = frozenset({"cpu", "memory"})


def resource_list(values: Mapping[str, str] | None) -> ResourceList:
    return {name: parse(str(text)) for name, text in (values or {}).items()}


def add(total: ResourceList, other: ResourceList) -> None:
    """In place."""
    for name, quantity in other.items():
        total[name] = total.get(name, ZERO) + quantity


def raise_to(total: ResourceList, other: ResourceList) -> None:
    """The larger of each, in place."""
    for name, quantity in other.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity


def pod_resources(spec: Object, which: Which) -> ResourceList:
    """Init containers run one after the other, beside those of them that keep running; what the pod itself says goes before all."""
    total: ResourceList = {}
    for container in spec.get("containers") or ():
        add(total, _of(container, which))
    sidecars: ResourceList = {}
    start: ResourceList = {}
    for container in spec.get("initContainers") or ():
        needed = _of(container, which)
        if container.get("restartPolicy") == "Always":
            add(total, needed)
            add(sidecars, needed)
            needed = sidecars
        else:
            add(needed, sidecars)
        raise_to(start, needed)
    raise_to(total, start)
    own = resource_list((spec.get("resources") or {}).get(which))
    return total | {name: quantity for name, quantity in own.items() if name in _POD_LEVEL}


def _of(container: Object, which: Which) -> ResourceList:
    return resource_list((container.get("resources") or {}).get(which))


def is_best_effort(pod: Object) -> bool:
    """Nothing is asked for and nothing limited (upstream: qos.GetPodQOS)."""
    if known := (pod.get("status") or {}).get("qosClass"):
        return bool(known == "BestEffort")
    spec = pod["spec"]
    owners = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    owners = [spec] if spec.get("resources") else owners
    whiches: tuple[Which, Which] = ("requests", "limits")
    return not any(
        name in _POD_LEVEL and quantity > ZERO
        for owner in owners
        for which in whiches
        for name, quantity in _of(owner, which).items()
    )
