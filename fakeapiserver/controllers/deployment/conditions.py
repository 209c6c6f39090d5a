"""A deployment's status and conditions: pure (upstream: pkg/controller/deployment/{sync,progress}.go, util/deployment_util.go)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.component_helpers.conditions import Condition, find_condition
from fakeapiserver.controllers.deployment import counts

_NEVER: Final = 2**31 - 1

# Reasons of the condition Progressing.
REPLICA_SET_UPDATED: Final = "ReplicaSetUpdated"
FAILED_CREATE: Final = "ReplicaSetCreateError"
NEW_REPLICA_SET: Final = "NewReplicaSetCreated"
FOUND_NEW: Final = "FoundNewReplicaSet"
NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"


def new_condition(condition_type: str, status: str, reason: str, message: str, now: float) -> dict[str, Any]:
    time = rfc3339(now)
    return {
        "type": condition_type,
        "status": status,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
    }


def with_condition(status: Object, condition: Condition) -> Object:
    """The status with the condition, unless it has it with the same status and reason."""
    known = find_condition(status.get("conditions"), condition["type"])
    if known is not None and known["status"] == condition["status"]:
        if known.get("reason", "") == condition.get("reason", ""):
            return status
        if "lastTransitionTime" in known:
            condition = {**condition, "lastTransitionTime": known["lastTransitionTime"]}
    without = without_condition(status, condition["type"])
    return {**without, "conditions": [*(without.get("conditions") or ()), condition]}


def without_condition(status: Object, condition_type: str) -> Object:
    kept = [row for row in status.get("conditions") or () if row["type"] != condition_type]
    rest = {key: value for key, value in status.items() if key != "conditions"}
    return {**rest, "conditions": kept} if kept else rest


def has_progress_deadline(deployment: Object) -> bool:
    seconds: int = deployment["spec"].get("progressDeadlineSeconds", _NEVER)
    return seconds != _NEVER


def deadline(deployment: Object, condition: Condition) -> float:
    """When it is over, if nothing has happened since the condition was written; seconds since the epoch."""
    since = seconds_of(condition.get("lastUpdateTime") or "") or 0.0
    seconds: int = deployment["spec"]["progressDeadlineSeconds"]
    return since + seconds


def calculate_status(deployment: Object, replica_sets: Sequence[Object], new: Object | None, now: float) -> Object:
    """Returns the status that follows from the replica sets, `new` among them.

    Zeroes are left out as Go leaves them out.
    """
    available = counts.total_count(replica_sets, "availableReplicas")
    status: Object = {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": counts.total_count(replica_sets, "replicas"),
        "updatedReplicas": counts.status_count(new, "replicas") if new is not None else 0,
        "readyReplicas": counts.total_count(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, counts.total_replicas(replica_sets) - available),
    }
    status = {name: count for name, count in status.items() if count}
    optional = {
        "terminatingReplicas": counts.total_terminating(replica_sets),
        "collisionCount": deployment["status"].get("collisionCount"),
        "conditions": deployment["status"].get("conditions"),
    }
    status |= {name: value for name, value in optional.items() if value is not None}
    if available >= counts.spec_replicas(deployment) - counts.max_unavailable(deployment):
        availability = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        availability = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return with_condition(status, new_condition("Available", *availability, now))


def is_complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    """All pods are there, new and available, and no others."""
    desired = counts.spec_replicas(deployment)
    everywhere = all(status.get(name, 0) == desired for name in ("updatedReplicas", "replicas", "availableReplicas"))
    generation: int = deployment["metadata"]["generation"]
    return everywhere and int(status.get("observedGeneration", 0)) >= generation


def is_progressing(deployment: Object, status: Mapping[str, Any]) -> bool:
    """There are more new pods, or fewer old ones, or more that are of use than the deployment knows of."""

    def old_pods(replica_set: Mapping[str, Any]) -> int:
        count: int = replica_set.get("replicas", 0) - replica_set.get("updatedReplicas", 0)
        return count

    known = deployment["status"]
    return old_pods(status) < old_pods(known) or any(
        status.get(name, 0) > known.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def is_timed_out(deployment: Object, status: Mapping[str, Any], now: float) -> bool:
    """Reports whether there was no progress for longer than the deadline."""
    condition = find_condition(status.get("conditions"), "Progressing")
    if condition is None or condition.get("reason") == NEW_AVAILABLE:
        return False
    return condition.get("reason") == TIMED_OUT or deadline(deployment, condition) < now


def rollout_status(deployment: Object, replica_sets: Sequence[Object], new: Object | None, now: float) -> Object:
    """Returns `calculate_status` with the conditions for a rollout's progress and failures."""
    status = calculate_status(deployment, replica_sets, new, now)
    if not has_progress_deadline(deployment):
        status = without_condition(status, "Progressing")
    else:
        status = _with_progress(deployment, status, new, now)
    failure = _failure(replica_sets, new)
    return with_condition(status, failure) if failure is not None else without_condition(status, "ReplicaFailure")


def _with_progress(deployment: Object, status: Object, new: Object | None, now: float) -> Object:
    current = find_condition(deployment["status"].get("conditions"), "Progressing")
    if (
        current is not None
        and current.get("reason") == NEW_AVAILABLE
        and status.get("replicas", 0) == status.get("updatedReplicas", 0)
    ):
        return status  # the rollout was over before: it is a resync
    subject = f'Deployment "{deployment["metadata"]["name"]}"'
    if new is not None:
        subject = f'ReplicaSet "{new["metadata"]["name"]}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_condition(status, new_condition("Progressing", "True", NEW_AVAILABLE, message, now))
    if is_progressing(deployment, status):
        condition = new_condition("Progressing", "True", REPLICA_SET_UPDATED, f"{subject} is progressing.", now)
        if current is not None:
            # The time of the update changes with each progress.
            if current["status"] == "True" and "lastTransitionTime" in current:
                condition["lastTransitionTime"] = current["lastTransitionTime"]
            status = without_condition(status, "Progressing")
        return with_condition(status, condition)
    if is_timed_out(deployment, status, now):
        message = f"{subject} has timed out progressing."
        return with_condition(status, new_condition("Progressing", "False", TIMED_OUT, message, now))
    return status


def _failure(replica_sets: Sequence[Object], new: Object | None) -> Condition | None:
    """A replica set's failure as the deployment's; the new one's before others'."""
    for replica_set in [*([new] if new is not None else []), *replica_sets]:
        condition = find_condition(replica_set["status"].get("conditions"), "ReplicaFailure")
        if condition is not None:
            times = {"lastUpdateTime": condition["lastTransitionTime"]} if "lastTransitionTime" in condition else {}
            return {**condition, **times}
    return None
