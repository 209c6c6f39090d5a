"""The rules of a pod group and its template in scheduling.k8s.io/v1alpha2, until 1.36.

Upstream: pkg/apis/scheduling/v1alpha2/zz_generated.validations.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.registry.declared.rules import (
    list_errors,
    long_name,
    map_list_errors,
    maximum_errors,
    minimum_errors,
    optional_text_errors,
    required_text_errors,
    short_name,
    union_errors,
)

_SPEC: Final = Path("spec")
MAX_CLAIMS: Final = 4
_MAX_TOPOLOGY: Final = 1
_HIGHEST: Final = 1_000_000_000
_MODES: Final = ("Pod", "PodGroup")
# Fields of a pod group's spec, in the order of the errors for changes.
GROUP_FIELDS: Final = (
    *("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims"),
    *("disruptionMode", "priorityClassName", "priority"),
)


def pod_group_errors(spec: Object, features: FeatureGates) -> ErrorList:
    """The errors in the spec of a new pod group."""
    errors: ErrorList = []
    if (reference := spec.get("podGroupTemplateRef")) is not None:
        path = _SPEC.child("podGroupTemplateRef")
        errors += union_errors(reference, ("workload",), path)
        if (workload := reference.get("workload")) is not None:
            at = path.child("workload")
            errors += required_text_errors(workload, "workloadName", long_name, at)
            errors += required_text_errors(workload, "podGroupTemplateName", short_name, at)
    errors += group_errors(spec, _SPEC)
    if features.enabled("WorkloadAwarePreemption") and spec.get("disruptionMode") is None:
        errors.append(field.required(_SPEC.child("disruptionMode")))
    return errors


def group_errors(group: Object, path: Path) -> ErrorList:
    """The errors in the fields that a pod group and its template share."""
    policy, at = group.get("schedulingPolicy") or {}, path.child("schedulingPolicy")
    errors = union_errors(policy, ("basic", "gang"), at)
    if (gang := policy.get("gang")) is not None:
        count, count_path = gang.get("minCount", 0), at.child("gang", "minCount")
        errors += minimum_errors(count, 1, count_path) if count else [field.required(count_path)]
    topology = (group.get("schedulingConstraints") or {}).get("topology") or ()
    errors += list_errors(topology, _MAX_TOPOLOGY, _topology_errors, path.child("schedulingConstraints", "topology"))
    claims = group.get("resourceClaims") or ()
    errors += map_list_errors(claims, MAX_CLAIMS, _claim_errors, path.child("resourceClaims"), lambda item: item)
    mode = group.get("disruptionMode")
    if mode is not None and mode not in _MODES:
        errors.append(field.not_supported(path.child("disruptionMode"), mode, _MODES))
    if group.get("priorityClassName"):
        errors += optional_text_errors(group, "priorityClassName", long_name, path)
    return errors + maximum_errors(group.get("priority") or 0, _HIGHEST, path.child("priority"))


def _topology_errors(constraint: Object, path: Path) -> ErrorList:
    return required_text_errors(constraint, "key", names.is_qualified_name, path)


def _claim_errors(claim: Object, path: Path) -> ErrorList:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    errors = union_errors(claim, sources, path) + required_text_errors(claim, "name", short_name, path)
    return errors + [error for name in sources for error in optional_text_errors(claim, name, long_name, path)]
