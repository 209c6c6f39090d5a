"""A pod's quality of service, and the defaults of pod-level resources.

Upstream: pkg/apis/core/helper/qos/qos.go, pkg/apis/core/v1/defaults.go, k8s.io/component-helpers/resource/helpers.go.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.pod.options import DEFAULT_OPTIONS, PodOptions
from fakeapiserver.registry.core.resource_list import quantity, total

_COMPUTE: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"


def qos_class(spec: Object, options: PodOptions = DEFAULT_OPTIONS) -> str:
    """Guaranteed if all limits equal their requests, BestEffort if nothing is requested, else Burstable."""
    if "resources" in spec and options.pod_level_resources:
        owners = [spec["resources"]]
    else:
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        owners = [container.get("resources") or {} for container in containers]
    requests = _compute_sums(owner.get("requests") or {} for owner in owners)
    limits = _compute_sums(owner.get("limits") or {} for owner in owners)
    if not requests and not limits:
        return "BestEffort"
    all_limited = all(len(_compute_sums([owner.get("limits") or {}])) == len(_COMPUTE) for owner in owners)
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _compute_sums(lists: Iterable[Mapping[str, str]]) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for quantities in lists:
        for name in _COMPUTE:
            amount = quantity(quantities.get(name, "0"))
            if amount > 0:
                sums[name] = sums.get(name, Decimal(0)) + amount
    return sums


def default_pod_resources(spec: Object) -> None:
    """Completes pod-level resources from those of the containers, in place."""
    resources: Object | None = spec.get("resources")
    if resources is None:
        return
    if resources.get("limits") or resources.get("requests"):
        _default_huge_page_limits(spec, resources)
    if limits := resources.get("limits"):
        requests: dict[str, str] = dict(resources.get("requests") or {})
        for name, text in _aggregate(spec, "requests").items():
            if name in _COMPUTE:
                requests.setdefault(name, text)
        for name, text in limits.items():
            if _is_pod_level(name):
                requests.setdefault(name, text)
        if requests:
            resources["requests"] = requests


def complete_pod_resources(spec: Object) -> None:
    """Completes pod-level resources as 1.37 does, in place: requests from those of containers and from limits, limits where all containers
    have one.
    """
    resources: Object = spec.get("resources") or {}
    if not (resources.get("limits") or resources.get("requests")):
        return
    _default_huge_page_limits(spec, resources)
    requests: dict[str, str] = dict(resources.get("requests") or {})
    limits: dict[str, str] = dict(resources.get("limits") or {})
    for name, text in (*_aggregate(spec, "requests").items(), *limits.items()):
        if name in _COMPUTE or (name in limits and _is_pod_level(name)):
            requests.setdefault(name, text)
    of_all = _aggregate(spec, "limits")
    for name, request in requests.items():
        if _is_pod_level(name) and name not in limits and name in of_all and _all_limit(spec, name):
            limits[name] = max(request, of_all[name], key=quantity)
    resources |= {key: value for key, value in (("limits", limits), ("requests", requests)) if value}


def _all_limit(spec: Object, name: str) -> bool:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return all(name in _of(container, "limits") for container in containers)


def _default_huge_page_limits(spec: Object, resources: Object) -> None:
    limits: dict[str, str] = dict(resources.get("limits") or {})
    for name, text in _aggregate(spec, "limits").items():
        if name.startswith(_HUGE_PAGES) and name not in (resources.get("requests") or {}):
            limits.setdefault(name, text)
    if limits:
        resources["limits"] = limits


def _is_pod_level(name: str) -> bool:
    return name in _COMPUTE or name.startswith(_HUGE_PAGES)


def _aggregate(spec: Object, kind: str) -> dict[str, str]:
    """The resources of all containers together: the sum of the containers that keep running, or the largest init container's."""
    running: list[Mapping[str, str]] = [_of(container, kind) for container in spec.get("containers") or ()]
    before: list[Mapping[str, str]] = []
    sidecars: list[Mapping[str, str]] = []
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars.append(_of(container, kind))
            before.append(_sum(sidecars))
        else:
            before.append(_sum([*sidecars, _of(container, kind)]))
    sums = _sum([*running, *sidecars])
    for quantities in before:
        for name, text in quantities.items():
            if name not in sums or quantity(text) > quantity(sums[name]):
                sums[name] = text
    return sums


def _of(container: Object, kind: str) -> Mapping[str, str]:
    return (container.get("resources") or {}).get(kind) or {}


def _sum(lists: Iterable[Mapping[str, str]]) -> dict[str, str]:
    amounts: dict[str, list[str]] = {}
    for quantities in lists:
        for name, text in quantities.items():
            amounts.setdefault(name, []).append(text)
    return {name: texts[0] if len(texts) == 1 else total(texts) for name, texts in amounts.items()}
