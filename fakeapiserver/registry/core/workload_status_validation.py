"""Validation of the counters in the status of workloads.

Upstream: pkg/apis/core/validation/validation.go (ValidateReplicationControllerStatus), pkg/apis/apps/validation/validation.go
(Validate…Status).
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import non_negative_errors

_STATUS: Final = Path("status")
_OF_REPLICA_SETS: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def count_errors(status: Object, counts: Sequence[str]) -> ErrorList:
    """The errors for negative counters."""
    return [error for name in counts for error in non_negative_errors(status.get(name) or 0, _STATUS.child(name))]


def replica_errors(status: Object, of_replicas: Sequence[str], ready: str = "readyReplicas") -> ErrorList:
    """The errors for counters that are larger than the count that they are part of. `ready` is the message's
    name for the ready replicas."""
    replicas, available = status.get("replicas", 0), status.get("availableReplicas", 0)
    errors = [
        field.invalid(_STATUS.child(name), status.get(name, 0), "cannot be greater than status.replicas")
        for name in of_replicas
        if status.get(name, 0) > replicas
    ]
    if available > status.get("readyReplicas", 0):
        errors.append(field.invalid(_STATUS.child("availableReplicas"), available, f"cannot be greater than {ready}"))
    return errors


def collision_errors(status: Object, old: Object) -> ErrorList:
    """The errors for a collisionCount that decreases."""
    now, then = status.get("collisionCount"), old.get("collisionCount")
    if then is None or (now is not None and now >= then):
        return []
    return [field.invalid(_STATUS.child("collisionCount"), now or 0, "cannot be decremented")]


def replica_set_status_errors(status: Object) -> ErrorList:
    """The errors in the status of a replica set or replication controller."""
    errors = count_errors(status, ("replicas", *_OF_REPLICA_SETS, "observedGeneration", "terminatingReplicas"))
    return errors + replica_errors(status, _OF_REPLICA_SETS)
