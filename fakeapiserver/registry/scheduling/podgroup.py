"""Groups of pods that are scheduled together. Groups of such groups are in `compositepodgroup.py`.

Upstream: pkg/registry/scheduling/podgroup/strategy.go, pkg/apis/scheduling/v1alpha3/defaults.go,
pkg/apis/scheduling/validation/validation.go. What is valid is in `declared.py`, and until 1.36 in `podgroup_v1alpha2.py`.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.registry.declared.rules import (
    long_name,
    map_list_errors,
    optional_text_errors,
    unchanged_errors,
)
from fakeapiserver.registry.declared.types import declared_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy, copy_field
from fakeapiserver.registry.generic.table_cells import NONE, age
from fakeapiserver.registry.scheduling.declared import POD_GROUP
from fakeapiserver.registry.scheduling.podgroup_v1alpha2 import GROUP_FIELDS, MAX_CLAIMS, pod_group_errors

# The version in which these kinds' rules became declared ones, and some of their fields others.
DECLARED_SINCE: Final = "v1.37"
_SPEC: Final = Path("spec")
CONDITIONS: Final = Path("status.conditions")


def gated_group_fields(*holder: str) -> dict[str, list[FieldPath]]:
    """Feature gate -> fields of a pod group, or of its template, which is at `holder`."""
    return {
        "TopologyAwareWorkloadScheduling": [(*holder, "schedulingConstraints")],
        "DRAWorkloadResourceClaims": [(*holder, "resourceClaims")],
        "WorkloadAwarePreemption": [(*holder, name) for name in ("disruptionMode", "priorityClassName", "priority")],
        "PodGroupPreemptionPolicy": [(*holder, "preemptionPolicy")],
    }


class GroupStrategy(Strategy, kw_only=True):
    """The common behaviour of groups of pods and of groups of groups."""

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        copy_field("status", old, obj)

    def default(self, obj: Object, version: str) -> None:
        if self.features.enabled("PodGroupPreemptionPolicy"):
            obj["spec"].setdefault("preemptionPolicy", "PreemptLowerPriority")


class PodGroupStrategy(GroupStrategy, kw_only=True):
    def canonicalize(self, obj: Object) -> None:
        """Sets a mode that was dropped with its gate, as upstream does when it reads the object."""
        if not self.features.at_least(DECLARED_SINCE):
            obj["spec"].setdefault("disruptionMode", "Pod")

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        """Until 1.36 upstream's storage doesn't ask the strategy: the sender of a status owns it, though it isn't kept."""
        is_kept = not subresource and not self.features.at_least(DECLARED_SINCE)
        return () if is_kept else super().reset_paths(subresource)

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        if not self.features.at_least(DECLARED_SINCE):
            return pod_group_errors(spec, self.features)
        errors = declared_errors(POD_GROUP, obj, None, self.features, Path())
        if spec.get("parentCompositePodGroupName") is not None and spec.get("workloadRef") is None:
            detail = "must be set when parentCompositePodGroupName is set"
            return [field.required(_SPEC.child("workloadRef"), detail), *errors]
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if self.features.at_least(DECLARED_SINCE):
            return declared_errors(POD_GROUP, obj, old, self.features, Path())
        return unchanged_errors(obj["spec"], old["spec"], GROUP_FIELDS, _SPEC)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        is_on = self.features.enabled("DRAWorkloadResourceClaims") or not self.features.at_least(DECLARED_SINCE)
        if not is_on and not old["spec"].get("resourceClaims"):
            (obj.get("status") or {}).pop("resourceClaimStatuses", None)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, before = obj.get("status") or {}, old.get("status") or {}
        errors = conditions_errors(status.get("conditions") or (), CONDITIONS)
        statuses, at = status.get("resourceClaimStatuses") or [], Path("status.resourceClaimStatuses")
        claims = {claim.get("name", "") for claim in obj["spec"].get("resourceClaims") or ()}
        detail = "must match the name of an entry in `spec.resourceClaims`"
        for i, row in enumerate(statuses):
            if row.get("name", "") not in claims:
                errors.append(field.invalid(at.index(i).child("name"), row.get("name", ""), detail))
        if self.features.at_least(DECLARED_SINCE):
            return errors + self.validate_update(obj, old)
        if statuses == (before.get("resourceClaimStatuses") or []):
            return errors
        return errors + map_list_errors(statuses, MAX_CLAIMS, _claim_status_errors, at, lambda item: item)

    def table_row(self, obj: Object, now: float) -> Cells:
        scheduled = "PodGroupInitiallyScheduled" if self.features.at_least(DECLARED_SINCE) else "PodGroupScheduled"
        return [*first_cells(obj), _state(obj, scheduled), age(obj, now)]


def _claim_status_errors(status: Object, path: Path) -> ErrorList:
    return optional_text_errors(status, "resourceClaimName", long_name, path)


def first_cells(obj: Object) -> list[object]:
    """The name, the policy, and the workload that the group belongs to."""
    spec = obj.get("spec") or {}
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    reference = spec.get("workloadRef") or (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    return [metadata(obj).get("name", ""), policy, reference.get("workloadName", NONE)]


def _state(obj: Object, scheduled: str) -> str:
    """The progress of the group; `scheduled` is the type of the condition for it."""
    conditions = {row.get("type"): row for row in (obj.get("status") or {}).get("conditions") or ()}
    if (disrupted := conditions.get("DisruptionTarget")) is not None:
        return str(disrupted.get("reason", ""))
    condition = conditions.get(scheduled)
    if condition is None:
        return "Pending"
    return "Scheduled" if condition.get("status") == "True" else "Unschedulable"
