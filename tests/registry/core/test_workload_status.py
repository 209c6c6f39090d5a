"""Validation of the counters in the status of workloads."""

from typing import Any

import pytest

from fakeapiserver.registry.apps import RESOURCES

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("kind", "status", "before", "complaint"),
    [
        ("replicasets", {"replicas": 1, "readyReplicas": 2}, {}, "readyReplicas: Invalid value: 2: cannot be greater"),
        ("replicasets", {"replicas": 2, "availableReplicas": 1}, {}, "cannot be greater than readyReplicas"),
        ("replicasets", {"replicas": 2, "readyReplicas": 1, "availableReplicas": 1}, {}, ""),
        ("deployments", {"unavailableReplicas": -1}, {}, "must be greater than or equal to 0"),
        ("deployments", {}, {"collisionCount": 1}, "collisionCount: Invalid value: 0: cannot be decremented"),
        ("deployments", {"collisionCount": 2}, {"collisionCount": 1}, ""),
        ("statefulsets", {"replicas": 2, "availableReplicas": 1}, {}, "greater than status.readyReplicas"),
        ("statefulsets", {"currentReplicas": 1}, {}, "currentReplicas: Invalid value: 1: cannot be greater than"),
        ("daemonsets", {"numberUnavailable": -1}, {}, "status.numberUnavailable: Invalid value: -1"),
    ],
)
def test_counts(kind: str, status: Json, before: Json, complaint: str) -> None:
    strategy = RESOURCES[kind]
    errors = [
        *strategy.validate_status({"status": status}),
        *strategy.validate_status_update({"status": status}, {"status": before}),
    ]
    problems = "; ".join(map(str, errors))
    assert complaint in problems if complaint else not problems
