"""Tests where a pod may run, and what it needs there."""

from typing import Any

import pytest

from fakeapiserver.component_helpers.scheduling import (
    matches_node_affinity,
    matches_term,
    pod_requests,
    tolerates,
    untolerated_taint,
)

Object = dict[str, Any]
NODE: Object = {"metadata": {"name": "node-1", "labels": {"zone": "a", "cores": "8"}}}


@pytest.mark.parametrize(
    ("toleration", "holds"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "value": "8", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "9"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"value": "8"}, False),
        ({"key": "gpu", "operator": "Lt", "value": "9"}, True),
        ({"key": "gpu", "operator": "Gt", "value": "9"}, False),
    ],
)
def test_a_toleration_tolerates(toleration: Object, holds: bool) -> None:
    assert tolerates([toleration], {"key": "gpu", "value": "8", "effect": "NoSchedule"}) == holds


def test_the_first_taint_that_is_not_tolerated_counts() -> None:
    taints = [{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "NoSchedule"}]
    assert untolerated_taint(taints, [], ("NoSchedule", "NoExecute")) == taints[1]
    assert untolerated_taint(taints, [{"key": "b", "operator": "Exists"}], ("NoSchedule",)) is None


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "other", "operator": "NotIn", "values": ["a"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
        ({"key": "cores", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "cores", "operator": "Lt", "values": ["7"]}, False),
        ({"key": "zone", "operator": "Gt", "values": ["7"]}, False),
    ],
)
def test_a_node_selector_requirement_holds(expression: Object, holds: bool) -> None:
    assert matches_term({"matchExpressions": [expression]}, NODE) == holds


def test_a_pod_may_run_where_its_selector_and_its_affinity_say() -> None:
    required = {
        "nodeSelectorTerms": [{}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    }
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert matches_node_affinity({"spec": {"nodeSelector": {"zone": "a"}, "affinity": affinity}}, NODE)
    assert not matches_node_affinity({"spec": {"nodeSelector": {"zone": "b"}, "affinity": affinity}}, NODE)
    required["nodeSelectorTerms"].pop()
    assert not matches_node_affinity({"spec": {"affinity": affinity}}, NODE)


def container(cpu: str, **more: Any) -> Object:
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("100m"), container("1")]}, 1100),
        ({"containers": [container("1")], "initContainers": [container("3"), container("2")]}, 3000),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("2")],
            },
            4000,
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}}, 5000),
    ],
)
def test_a_pod_needs_what_its_containers_need(spec: Object, cpu: int) -> None:
    assert pod_requests({"spec": spec})["cpu"] == cpu
