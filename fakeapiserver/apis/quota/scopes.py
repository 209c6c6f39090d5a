"""The objects that a quota covers: its scopes and its scope selector.

Upstream: podMatchesScopeFunc and pvcMatchesScopeFunc in k8s.io/kubernetes/pkg/quota/v1/evaluator/core.
"""

from collections.abc import Collection, Iterator
from typing import Any

from fakeapiserver.apimachinery.meta import Object


def selectors_of(quota: Object) -> list[Object]:
    """All that must match: plain scopes are selectors with the operator Exists."""
    spec = quota["spec"]
    plain = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return plain + ((spec.get("scopeSelector") or {}).get("matchExpressions") or [])


def pod_matches(selector: Object, pod: Object) -> bool:
    match selector["scopeName"]:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            name = pod["spec"].get("priorityClassName")
            return _selects(selector, [name] if name else [])
        case "CrossNamespacePodAffinity":
            return any(term.get("namespaces") or "namespaceSelector" in term for term in _affinity_terms(pod["spec"]))
    return False


def claim_matches(selector: Object, claim: Object) -> bool:
    return selector["scopeName"] == "VolumeAttributesClass" and _selects(selector, volume_attributes_classes(claim))


def nothing_matches(selector: Object, obj: Object) -> bool:
    return False


def is_terminating(pod: Object) -> bool:
    """Reports whether it is to end by itself."""
    return bool(pod["spec"].get("activeDeadlineSeconds", -1) >= 0)


def volume_attributes_classes(claim: Object) -> set[str]:
    """Returns the classes that the claim has, requests, or is being moved to."""
    status = claim.get("status") or {}
    names = {
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return {name for name in names if name}


def _selects(selector: Object, names: Collection[str]) -> bool:
    """Reports whether one of the names fits; an object without one has no such label."""
    values = selector.get("values") or ()
    match selector.get("operator"):
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in values for name in names)
        case "NotIn":
            return not names or any(name not in values for name in names)
    return False


def _is_best_effort(pod: Object) -> bool:
    return (pod.get("status") or {}).get("qosClass") == "BestEffort"


def _affinity_terms(spec: Object) -> Iterator[Any]:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(kind) or {}
        yield from affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted["podAffinityTerm"]
