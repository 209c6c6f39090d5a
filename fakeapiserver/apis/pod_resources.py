"""The total requests and limits of a pod.

Upstream: k8s.io/component-helpers/resource/helpers.go, and its twin in plugin/pkg/admission/limitranger/admission.go.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from fakeapiserver.apimachinery import names
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


def container_resources(spec: Object, which: Which, status: Object | None = None) -> ResourceList:
    """Init containers run one after the other, beside those of them that keep running. With a status, what the node has given
    counts where it is more than what is asked for (a resize on its way)."""
    given = _given(status or {}, which)
    total: ResourceList = {}
    for container in spec.get("containers") or ():
        add(total, given(container))
    sidecars: ResourceList = {}
    start: ResourceList = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            needed = given(container)
            add(total, needed)
            add(sidecars, needed)
            needed = sidecars
        else:
            needed = _of(container, which)
            add(needed, sidecars)
        raise_to(start, needed)
    raise_to(total, start)
    return total


def pod_resources(spec: Object, which: Which) -> ResourceList:
    """Returns the totals as LimitRanges count them:

    the pod's own CPU and memory take precedence over its containers'.
    """
    own = resource_list((spec.get("resources") or {}).get(which))
    resources = container_resources(spec, which)
    return resources | {name: quantity for name, quantity in own.items() if name in _POD_LEVEL}


def charged_resources(pod: Object, which: Which) -> ResourceList:
    """Returns the totals as quotas and schedulers count them.

    The pod's own values take precedence over those requested by and allocated to its containers; overhead is
    added, to limits only where
    there is a limit.
    """
    spec = pod["spec"]
    own = resource_list((spec.get("resources") or {}).get(which))
    resources = container_resources(spec, which, pod.get("status"))
    resources |= {name: quantity for name, quantity in own.items() if is_pod_level(name)}
    for name, quantity in resource_list(spec.get("overhead")).items():
        if which == "requests" or (name in resources and resources[name].amount):
            resources[name] = resources.get(name, ZERO) + quantity
    return resources


def is_extended(name: str) -> bool:
    """Reports whether the resource is of a domain outside of Kubernetes (upstream: IsExtendedResourceName)."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not names.is_qualified_name(f"requests.{name}")


def is_pod_level(name: str) -> bool:
    """Reports whether a pod can say it of itself."""
    return name in _POD_LEVEL or name.startswith("hugepages-")


def has_pod_level(spec: Object) -> bool:
    own = spec.get("resources") or {}
    return any(is_pod_level(name) for which in ("requests", "limits") for name in own.get(which) or ())


def _given(status: Object, which: Which) -> Callable[[Object], ResourceList]:
    """Returns a function for the amounts that a container counts for."""
    statuses = {
        status_row.get("name"): status_row
        for field in ("containerStatuses", "initContainerStatuses")
        for status_row in status.get(field) or ()
        if status_row.get("resources") is not None
    }
    pending = [c for c in status.get("conditions") or () if c.get("type") == "PodResizePending"]
    infeasible = bool(pending) and pending[0].get("reason") == "Infeasible"

    def given(container: Object) -> ResourceList:
        status_row = statuses.get(container.get("name"))
        if status_row is None:
            return _of(container, which)
        total: ResourceList = {} if infeasible else _of(container, which)
        raise_to(total, _of(status_row, which))
        if which == "requests":
            raise_to(total, resource_list(status_row.get("allocatedResources")))
        return total

    return given


def _of(container: Object, which: Which) -> ResourceList:
    return resource_list((container.get("resources") or {}).get(which))


def is_best_effort(pod: Object) -> bool:
    """Reports whether the pod has neither requests nor limits (upstream: qos.GetPodQOS)."""
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
