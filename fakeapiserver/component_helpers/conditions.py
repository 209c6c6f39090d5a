"""Conditions of a status, set the way upstream sets them. What is given is never changed.

Upstream: k8s.io/apimachinery/pkg/api/meta/conditions.go, pkg/api/v1/pod/util.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339

Condition = Mapping[str, Any]


def find_condition(conditions: Iterable[Condition] | None, condition_type: str) -> Condition | None:
    """The first of this type."""
    return next((condition for condition in conditions or () if condition["type"] == condition_type), None)


def set_status_condition(
    conditions: Sequence[Condition] | None,
    condition_type: str,
    status: str,
    reason: str,
    now: float,
    *,
    message: str = "",
    observed_generation: int = 0,
) -> list[Condition]:
    """metav1.Condition: with it, in the place of the one of its type; it changed `now` only if its status did."""
    old = find_condition(conditions, condition_type)
    new: dict[str, Any] = {
        "type": condition_type,
        "status": status,
        "lastTransitionTime": rfc3339(now),
        "reason": reason,
        "message": message,
    }
    if observed_generation:
        new["observedGeneration"] = observed_generation
    if old is not None and old["status"] == status:
        new["lastTransitionTime"] = old["lastTransitionTime"]
    return _with(conditions, new)


def set_pod_condition(pod: Object, condition: Condition, now: float) -> tuple[list[Condition], bool]:
    """The conditions of the pod with this one, which is of the pod's generation; whether anything in it is new."""
    conditions = (pod.get("status") or {}).get("conditions")
    old = find_condition(conditions, condition["type"])
    new = {**condition, "lastTransitionTime": rfc3339(now)}
    if generation := pod["metadata"].get("generation"):
        new["observedGeneration"] = generation
    if old is not None and old["status"] == new["status"]:
        new["lastTransitionTime"] = old.get("lastTransitionTime")
    names = ("status", "reason", "message", "lastProbeTime", "lastTransitionTime")
    changed = old is None or any((old.get(name) or "") != (new.get(name) or "") for name in names)
    return _with(conditions, new), changed


def pod_condition_patch(pod: Object, condition: Condition, now: float) -> Object:
    """The status of a strategic merge patch that sets it; empty if nothing in it is new."""
    conditions, changed = set_pod_condition(pod, condition, now)
    if not changed:
        return {}
    return {
        "conditions": [find_condition(conditions, condition["type"])],
        # without it a new one would come first
        "$setElementOrder/conditions": [{"type": row["type"]} for row in conditions],
    }


def _with(conditions: Sequence[Condition] | None, new: Condition) -> list[Condition]:
    kept = list(conditions or ())
    for at, condition in enumerate(kept):
        if condition["type"] == new["type"]:
            kept[at] = new
            return kept
    return [*kept, new]
