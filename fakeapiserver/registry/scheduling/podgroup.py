"""Groups of pods that are scheduled together.

Upstream: pkg/registry/scheduling/podgroup/strategy.go, pkg/apis/scheduling/v1alpha2/zz_generated.validations.go,
pkg/apis/scheduling/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.declarative import (
    list_errors,
    long_name,
    map_list_errors,
    maximum_errors,
    minimum_errors,
    optional_text_errors,
    required_text_errors,
    short_name,
    unchanged_errors,
    union_errors,
)
from fakeapiserver.registry.generic.strategy import Cells, Strategy, copy_field
from fakeapiserver.registry.generic.table_cells import NONE, age

_SPEC: Final = Path("spec")
_MAX_CLAIMS: Final = 4
_MAX_TOPOLOGY: Final = 1
_HIGHEST: Final = 1_000_000_000
_MODES: Final = ("Pod", "PodGroup")
# Fields of a pod group's spec, in the order of the errors for changes.
GROUP_FIELDS: Final = (
    *("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims"),
    *("disruptionMode", "priorityClassName", "priority"),
)


def gated_group_fields(*holder: str) -> dict[str, list[FieldPath]]:
    """Feature gate -> fields of a pod group, or of its template, which is at `holder`."""
    return {
        "TopologyAwareWorkloadScheduling": [(*holder, "schedulingConstraints")],
        "DRAWorkloadResourceClaims": [(*holder, "resourceClaims")],
        "WorkloadAwarePreemption": [(*holder, name) for name in ("disruptionMode", "priorityClassName", "priority")],
    }


class PodGroupStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        copy_field("status", old, obj)

    def canonicalize(self, obj: Object) -> None:
        """Sets a mode that was dropped with its gate, as upstream does when it reads the object."""
        obj["spec"].setdefault("disruptionMode", "Pod")

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        errors: ErrorList = []
        if (reference := spec.get("podGroupTemplateRef")) is not None:
            path = _SPEC.child("podGroupTemplateRef")
            errors += union_errors(reference, ("workload",), path)
            if (workload := reference.get("workload")) is not None:
                at = path.child("workload")
                errors += required_text_errors(workload, "workloadName", long_name, at)
                errors += required_text_errors(workload, "podGroupTemplateName", short_name, at)
        errors += group_errors(spec, _SPEC)
        if self.features.enabled("WorkloadAwarePreemption") and spec.get("disruptionMode") is None:
            errors.append(field.required(_SPEC.child("disruptionMode")))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return unchanged_errors(obj["spec"], old["spec"], GROUP_FIELDS, _SPEC)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, path = obj.get("status") or {}, Path("status")
        errors = conditions_errors(status.get("conditions") or (), path.child("conditions"))
        statuses, at = status.get("resourceClaimStatuses") or [], path.child("resourceClaimStatuses")
        claims = {claim.get("name", "") for claim in obj["spec"].get("resourceClaims") or ()}
        detail = "must match the name of an entry in `spec.resourceClaims`"
        for i, row in enumerate(statuses):
            if row.get("name", "") not in claims:
                errors.append(field.invalid(at.index(i).child("name"), row.get("name", ""), detail))
        if statuses == ((old.get("status") or {}).get("resourceClaimStatuses") or []):
            return errors
        return errors + map_list_errors(statuses, _MAX_CLAIMS, _claim_status_errors, at, lambda item: item)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
        workload = ((spec.get("podGroupTemplateRef") or {}).get("workload") or {}).get("workloadName", NONE)
        return [metadata(obj).get("name", ""), policy, workload, _state(obj), age(obj, now)]


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
    errors += map_list_errors(claims, _MAX_CLAIMS, _claim_errors, path.child("resourceClaims"), lambda item: item)
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


def _claim_status_errors(status: Object, path: Path) -> ErrorList:
    return optional_text_errors(status, "resourceClaimName", long_name, path)


def _state(obj: Object) -> str:
    conditions = {row.get("type"): row for row in (obj.get("status") or {}).get("conditions") or ()}
    if (disrupted := conditions.get("DisruptionTarget")) is not None:
        return str(disrupted.get("reason", ""))
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
