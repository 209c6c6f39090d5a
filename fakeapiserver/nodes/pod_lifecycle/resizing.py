"""The resize of a pod in place. Pure.

Upstream: pkg/kubelet/allocation/allocation_manager.go, pkg/kubelet/events/resize.go, pkg/kubelet/kuberuntime/kuberuntime_manager.go
(computePodResizeAction).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
RETRY_SECONDS: Final = 180.0
_KINDS: Final = ("initContainers", "containers")

# By containers' names, their resources.
Allocation = Mapping[str, Mapping[str, Any]]


def wanted(pod: Object) -> Allocation:
    """Returns the resources in the pod's spec."""
    return {spec["name"]: spec.get("resources") or {} for kind in _KINDS for spec in pod["spec"].get(kind) or ()}


def known_allocation(pod: Object, statuses: Mapping[str, Object]) -> Allocation:
    """Returns the resources that the node has allocated, by the pod's status; a resize in progress was allocated."""
    asked = wanted(pod)
    if condition_of(pod, IN_PROGRESS) is not None:
        return asked
    return {name: statuses.get(name, {}).get("resources", resources) for name, resources in asked.items()}


def condition_of(pod: Object, kind: str) -> Object | None:
    """Returns the condition of this type, or None."""
    rows = (pod.get("status") or {}).get("conditions") or ()
    return next((row for row in rows if row["type"] == kind), None)


def restarts_for(spec: Object, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Reports whether its resizePolicy wants the container to begin again for that."""
    policies = {row["resourceName"]: row["restartPolicy"] for row in spec.get("resizePolicy") or ()}
    return any(
        policy == "RestartContainer"
        and any(
            (before.get(part) or {}).get(name) != (after.get(part) or {}).get(name) for part in ("limits", "requests")
        )
        for name, policy in policies.items()
    )


def summary(pod: Object, prefix: str, error: str = "") -> str:
    """Returns the message about a resize: the resources in the pod's spec."""
    shown: Object = {}
    for kind in _KINDS:
        if specs := pod["spec"].get(kind):
            shown[kind] = [{"name": spec["name"], "resources": _sorted(spec.get("resources") or {})} for spec in specs]
    shown["generation"] = pod["metadata"].get("generation", 0)
    if error:
        shown["error"] = error
    return f"{prefix}: {json.dumps(shown, separators=(',', ':'))}"


def _sorted(resources: Mapping[str, Any]) -> Object:
    parts = (name for name in ("limits", "requests") if resources.get(name))
    return {name: dict(sorted(resources[name].items())) for name in parts}
