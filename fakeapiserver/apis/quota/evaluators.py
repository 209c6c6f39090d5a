"""The usage of quotas by an object: an evaluator for each resource that is more than counted.

Upstream: k8s.io/kubernetes/pkg/quota/v1/evaluator/core, k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.object_reader import ObjectLister
from fakeapiserver.apimachinery.quantity import ZERO, Quantity
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis.pod_resources import (
    ResourceList,
    add,
    charged_resources,
    has_pod_level,
    is_extended,
    resource_list,
)
from fakeapiserver.apis.quota.scopes import (
    claim_matches,
    nothing_matches,
    pod_matches,
)

ONE: Final = Quantity(Fraction(1))
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES: Final = frozenset(
    {"pods", "count/pods", *_COMPUTE, *(f"{which}.{name}" for which in ("requests", "limits") for name in _COMPUTE)}
)
# A quota of one of these obliges containers to say what they need of it. Upstream calls that a mistake that stays.
_OBLIGING: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
# Resources without quotas.
IGNORED: Final = frozenset(
    {
        *(GroupResource("", name) for name in ("bindings", "componentstatuses", "events")),
        GroupResource("events.k8s.io", "events"),
        *(GroupResource("authentication.k8s.io", name) for name in ("tokenreviews", "selfsubjectreviews")),
        *(
            GroupResource("authorization.k8s.io", name)
            for name in (
                "subjectaccessreviews",
                "selfsubjectaccessreviews",
                "localsubjectaccessreviews",
                "selfsubjectrulesreviews",
            )
        ),
    }
)
PODS: Final = GroupResource("", "pods")
SERVICES: Final = GroupResource("", "services")
CLAIMS: Final = GroupResource("", "persistentvolumeclaims")
RESOURCE_CLAIMS: Final = GroupResource("resource.k8s.io", "resourceclaims")
_CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
_MADE_FOR_POD: Final = "resource.kubernetes.io/extended-resource-claim"
_CLAIMS_PER_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES: Final = 32
_ALIASED: Final = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})


class Evaluator(Struct, frozen=True):
    """Evaluates one resource.

    `knows`: whether a quota's name concerns the resource. `usage`: of an object at a time (seconds since the
    epoch). `matches`: whether a
    scope selector matches an object. `complaint`: what an object must set for quotas of these names but does not;
    empty if nothing.
    """

    knows: Callable[[str], bool]
    usage: Callable[[Object, float], ResourceList]
    matches: Callable[[Object, Object], bool] = nothing_matches
    complaint: Callable[[Object, Iterable[str]], str] = lambda obj, names: ""


def evaluator_of(resource: GroupResource, getter: ObjectLister) -> Evaluator:
    """Returns the resource's evaluator; that of ResourceClaims reads other objects."""
    if resource == RESOURCE_CLAIMS:
        return _claims_evaluator(getter)
    return _EVALUATORS.get(resource) or _count(resource)


def _count(resource: GroupResource) -> Evaluator:
    names = {_count_name(resource)}
    if not resource.group and resource.resource in _ALIASED:
        names.add(resource.resource)
    return Evaluator(knows=names.__contains__, usage=lambda obj, now: dict.fromkeys(names, ONE))


def _count_name(resource: GroupResource) -> str:
    return f"count/{resource.resource}.{resource.group}" if resource.group else f"count/{resource.resource}"


# -------------------------------------------------------------------- pods


def _knows_pod(name: str) -> bool:
    return name in _POD_NAMES or name.startswith(("hugepages-", "requests.hugepages-")) or _is_extended_request(name)


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended_request(name: str) -> bool:
    asked = name.removeprefix("requests.")
    return asked != name and (asked.startswith(_DEVICE_CLASS) or not _is_native(name))


def _pod_usage(pod: Object, now: float) -> ResourceList:
    """Returns a pod's usage; one that has ended, or should have, is only counted."""
    used: ResourceList = {"count/pods": ONE}
    if has_ended(pod, now):
        return used
    return used | _compute_usage(charged_resources(pod, "requests"), charged_resources(pod, "limits"))


def has_ended(pod: Object, now: float) -> bool:
    """Reports whether the pod has ended or should have, and uses nothing any more (upstream: QuotaV1Pod)."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    meta = metadata(pod)
    since, grace = seconds_of(meta.get("deletionTimestamp") or ""), meta.get("deletionGracePeriodSeconds")
    return since is not None and grace is not None and now > since + grace


def _compute_usage(requests: ResourceList, limits: ResourceList) -> ResourceList:
    used: ResourceList = {"pods": ONE}
    for name, asked in requests.items():
        plain = name in _COMPUTE or name.startswith("hugepages-")
        if plain:
            used[name] = asked
        if plain or name.startswith(_DEVICE_CLASS) or is_extended(name):
            used[f"requests.{name}"] = asked
    return used | {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}


def _pod_complaint(pod: Object, names: Iterable[str]) -> str:
    """Containers that don't say what they need, unless the pod itself does."""
    spec = pod["spec"]
    if has_pod_level(spec):
        return ""
    obliging = _OBLIGING.intersection(names)
    missing = defaultdict[str, set[str]](set)
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources") or {}
            said = _compute_usage(resource_list(resources.get("requests")), resource_list(resources.get("limits")))
            for name in obliging - said.keys():
                missing[name].add(container["name"])
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


# ---------------------------------------------------------------- services


def _service_usage(service: Object, now: float) -> ResourceList:
    spec = service["spec"]
    ports = spec.get("ports") or ()
    node_ports = balancers = 0
    if spec.get("type") == "NodePort":
        node_ports = len(ports)
    elif spec.get("type") == "LoadBalancer":
        balancers = 1
        # Ports are allocated later, so what counts is what is wanted.
        explicit = spec.get("allocateLoadBalancerNodePorts") is False
        node_ports = sum(1 for port in ports if port.get("nodePort")) if explicit else len(ports)
    return {
        "count/services": ONE,
        "services": ONE,
        "services.loadbalancers": Quantity(Fraction(balancers)),
        "services.nodeports": Quantity(Fraction(node_ports)),
    }


# ------------------------------------------------------------------ claims


def _allocated(claim: Object) -> Quantity:
    return resource_list((claim.get("status") or {}).get("allocatedResources")).get("storage", ZERO)


def _knows_claim(name: str) -> bool:
    plain = ("persistentvolumeclaims", "requests.storage")
    return name in ("count/persistentvolumeclaims", *plain) or name.endswith(
        tuple(_STORAGE_CLASS + end for end in plain)
    )


def _claim_usage(claim: Object, now: float) -> ResourceList:
    used: ResourceList = {"persistentvolumeclaims": ONE}
    spec = claim["spec"]
    asked = resource_list((spec.get("resources") or {}).get("requests")).get("storage")
    if asked is not None:
        larger = max(asked, _allocated(claim))
        used["requests.storage"] = (
            larger if larger.amount.denominator == 1 else Quantity(Fraction(larger.value), larger.family)
        )
    annotations = metadata(claim).get("annotations") or {}
    name = annotations.get("volume.beta.kubernetes.io/storage-class", spec.get("storageClassName"))
    if name:
        used |= {f"{name}{_STORAGE_CLASS}{resource}": quantity for resource, quantity in used.items()}
    return used | {"count/persistentvolumeclaims": ONE}


def _claims_evaluator(getter: ObjectLister) -> Evaluator:
    extended = {
        str(metadata(class_object)["name"]): str(class_object["spec"]["extendedResourceName"])
        for class_object in getter.list("deviceclasses.resource.k8s.io")
        if (class_object.get("spec") or {}).get("extendedResourceName")
    }

    def knows(name: str) -> bool:
        asked = name.removeprefix("requests.")
        by_extension = asked != name and (
            asked.removeprefix(_DEVICE_CLASS) in extended
            if asked.startswith(_DEVICE_CLASS)
            else asked in extended.values()
        )
        return name == _CLAIM_COUNT or name.endswith(_CLAIMS_PER_CLASS) or by_extension

    def usage(claim: Object, now: float) -> ResourceList:
        used = _resource_claim_usage(claim)
        in_pod = _asked_by_pod(claim, getter, now)
        for name, quantity in list(used.items()):
            device_class = name.removesuffix(_CLAIMS_PER_CLASS)
            if device_class == name:
                continue
            for asked in (_DEVICE_CLASS + device_class, extended.get(device_class, "")):
                left = quantity - in_pod.get(f"requests.{asked}", ZERO)
                if asked and left > ZERO:
                    used[f"requests.{asked}"] = left
        return used

    return Evaluator(knows, usage)


def _asked_by_pod(claim: Object, getter: ObjectLister, now: float) -> ResourceList:
    """Returns what the pod was charged already, through its extended resources, if this claim was made for it."""
    meta = metadata(claim)
    if (meta.get("annotations") or {}).get(_MADE_FOR_POD) != "true":
        return {}
    owners = [reference for reference in meta.get("ownerReferences") or () if reference.get("controller")]
    owner: Object = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind")) != ("v1", "Pod"):
        return {}
    pod = getter.get("pods", meta.get("namespace", ""), owner["name"])
    if pod is None or metadata(pod).get("uid") != owner.get("uid"):
        return {}
    claimed = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if claimed is not None and claimed.get("resourceClaimName") != meta.get("name"):
        return {}
    return _pod_usage(pod, now)


def _resource_claim_usage(claim: Object) -> ResourceList:
    """Returns a claim's usage; of alternatives the largest counts, for each class."""
    used: ResourceList = {_CLAIM_COUNT: ONE}
    for request in ((claim["spec"].get("devices") or {}).get("requests")) or ():
        exactly = request.get("exactly")
        worst: ResourceList = {}
        for wanted in request.get("firstAvailable") or ([exactly] if exactly else ()):
            name, devices = wanted["deviceClassName"] + _CLAIMS_PER_CLASS, _devices(wanted)
            worst[name] = max(worst.get(name, ZERO), devices)
        add(used, worst)
    return used


def _devices(request: Object) -> Quantity:
    mode = request.get("allocationMode")
    count = request.get("count", 0) if mode == "ExactCount" else _MOST_DEVICES if mode == "All" else 0
    return Quantity(Fraction(count))


_EVALUATORS: Final = {
    PODS: Evaluator(_knows_pod, _pod_usage, pod_matches, _pod_complaint),
    SERVICES: Evaluator(
        frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"}).__contains__,
        _service_usage,
    ),
    CLAIMS: Evaluator(_knows_claim, _claim_usage, claim_matches),
}
