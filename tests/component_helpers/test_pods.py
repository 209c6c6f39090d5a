"""Tests the helpers of controllers for pods, and the order in which pods are deleted."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers import pods

NOW = 1_800_000_000.0
HOUR_AGO = "2027-01-15T07:00:00Z"
MINUTE_AGO = "2027-01-15T07:59:00Z"


def pod(
    name: str = "a",
    *,
    ready: str | None = None,
    node: str = "n1",
    phase: str = "Running",
    deleted: bool = False,
    restarts: int = 0,
    created: str = HOUR_AGO,
    annotations: dict[str, str] | None = None,
) -> Object:
    """`ready` since that time, if at all."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created}
    if deleted:
        metadata["deletionTimestamp"] = HOUR_AGO
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    status = {"phase": phase, "conditions": conditions, "containerStatuses": [{"name": "c", "restartCount": restarts}]}
    return {"metadata": {**metadata, "annotations": annotations or {}}, "spec": {"nodeName": node}, "status": status}


@pytest.mark.parametrize(
    ("found", "active", "terminating"),
    [
        (pod(), True, False),
        (pod(phase="Pending"), True, False),
        (pod(phase="Failed"), False, False),
        (pod(deleted=True), False, True),
        (pod(deleted=True, phase="Succeeded"), False, False),
    ],
)
def test_a_pod_is_active_until_it_ends_or_is_deleted(found: Object, active: bool, terminating: bool) -> None:
    assert (pods.is_pod_active(found), pods.is_pod_terminating(found)) == (active, terminating)


@pytest.mark.parametrize(
    ("ready", "min_ready_seconds", "available"),
    [(None, 0, False), (MINUTE_AGO, 0, True), (MINUTE_AGO, 60, True), (MINUTE_AGO, 61, False)],
)
def test_a_pod_is_available_when_it_was_ready_for_long_enough(
    ready: str | None, min_ready_seconds: int, available: bool
) -> None:
    assert pods.is_pod_available(pod(ready=ready), min_ready_seconds, NOW) == available


def test_the_next_availability_check_is_that_of_the_pod_that_is_due_first() -> None:
    found = [pod(ready=HOUR_AGO), pod(ready=MINUTE_AGO), pod()]
    assert pods.next_availability_check(found, 90, NOW, NOW) == 30.0
    assert pods.next_availability_check(found, 90, NOW, NOW + 40) == 0.0  # its time came meanwhile
    assert pods.next_availability_check(found, 30, NOW, NOW) is None
    assert pods.next_availability_check(found, 0, NOW, NOW) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod(node=""), pod(phase="Pending")),  # no node yet
        (pod(phase="Pending"), pod()),
        (pod(phase="Unknown"), pod()),
        (pod(), pod(ready=HOUR_AGO)),
        (pod(annotations={pods.DELETION_COST: "-1"}), pod()),
        (pod(annotations={pods.DELETION_COST: "nonsense"}), pod(annotations={pods.DELETION_COST: "1"})),
        (pod(node="crowded"), pod()),  # others of its kind are there
        (pod(ready=MINUTE_AGO), pod(ready=HOUR_AGO)),  # was ready for less time
        (pod(restarts=2), pod(restarts=1)),
        (pod(created=MINUTE_AGO), pod(created=HOUR_AGO)),
        (pod("a", ready="2027-01-15T06:59:00Z"), pod("b", ready="2027-01-15T07:01:00Z")),  # of about one age: by uid
    ],
)
def test_who_goes_first(first: Object, second: Object) -> None:
    ranks = {"crowded": 3, "n1": 1}
    assert pods.sort_for_deletion([second, first], ranks, NOW) == [first, second]
    assert pods.sort_for_deletion([first, second], ranks, NOW) == [first, second]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod(node=""), pod(phase="Pending")),
        (pod(phase="Pending"), pod()),
        (pod(), pod(ready=HOUR_AGO)),
        (pod(ready="2027-01-15T07:01:00Z"), pod(ready="2027-01-15T06:59:00Z")),  # a minute is a minute, also long ago
        (pod(restarts=2), pod(restarts=1)),
        (pod(created=MINUTE_AGO), pod(created=HOUR_AGO)),
    ],
)
def test_who_goes_first_where_neither_costs_nor_nodes_matter(first: Object, second: Object) -> None:
    assert pods.sort_active([second, first]) == [first, second]
    assert pods.sort_active([first, second]) == [first, second]


def test_a_cost_does_not_matter_there() -> None:
    found = [pod(), pod(annotations={pods.DELETION_COST: "-1"})]
    assert pods.sort_active(found) == found
