"""Nodes that are lost: their conditions and taints, their pods' readiness and eviction, by a turned clock."""

from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.controllers.node_lifecycle.health import Zones, conditions_unknown, zone_of
from tests.nodes.test_kubelet import PODS, PodClient

CONTROLLERS = ("node-lifecycle-controller", "taint-eviction-controller")


def taints(client: PodClient, name: str) -> list[str]:
    spec = client.ask("GET", f"/api/v1/nodes/{name}")["spec"]
    return [f"{taint['key']}:{taint['effect']}" for taint in spec.get("taints", ())]


def ready(obj: Any) -> str:
    found: str = next(row["status"] for row in obj["status"]["conditions"] if row["type"] == "Ready")
    return found


def test_a_lost_node_is_tainted_and_its_pods_are_evicted_and_it_comes_back() -> None:
    with Cluster(controllers=CONTROLLERS, nodes=3) as cluster:
        client = PodClient(cluster)
        cluster.clock.stop()
        cluster.settle()
        assert [taints(client, f"node-{number}") for number in (1, 2, 3)] == [[], [], []]
        for name, seconds in (("patient", 600), ("short", 60)):
            tolerations = [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ]
            client.pod(name, "node-1", tolerations=tolerations)
        cluster.settle()
        cluster.nodes.stop("node-1")
        cluster.clock.advance("70s")
        assert ready(client.ask("GET", "/api/v1/nodes/node-1")) == "Unknown"
        assert taints(client, "node-1") == [
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute",
        ]
        assert ready(client.ask("GET", f"{PODS}/patient")) == "False"
        assert taints(client, "node-2") == []
        cluster.clock.advance("60s")
        deleted = {
            pod["metadata"]["name"]: "deletionTimestamp" in pod["metadata"] for pod in client.ask("GET", PODS)["items"]
        }
        assert deleted == {"patient": False, "short": True}
        cluster.nodes.start("node-1")
        cluster.clock.advance("20s")
        assert taints(client, "node-1") == []
        assert [pod["metadata"]["name"] for pod in client.ask("GET", PODS)["items"]] == ["patient"]
        assert ready(client.ask("GET", f"{PODS}/patient")) == "True"
        events = [event["reason"] for event in client.ask("GET", "/api/v1/namespaces/default/events")["items"]]
        assert {"RegisteredNode", "NodeNotReady", "TaintManagerEviction"} <= set(events)


def test_when_no_node_is_ready_no_pod_is_evicted() -> None:
    with Cluster(controllers=CONTROLLERS, nodes=2) as cluster:
        client = PodClient(cluster)
        cluster.clock.stop()
        cluster.settle()
        client.pod("p", "node-1")
        cluster.settle()
        for name in ("node-1", "node-2"):
            cluster.nodes.stop(name)
        cluster.clock.advance("10m")
        assert taints(client, "node-1") == ["node.kubernetes.io/unreachable:NoSchedule"]
        assert "deletionTimestamp" not in client.ask("GET", f"{PODS}/p")["metadata"]


def test_a_cordoned_node_is_tainted() -> None:
    with Cluster(controllers=CONTROLLERS, nodes=1) as cluster:
        client = PodClient(cluster)
        cluster.settle()
        node = client.ask("GET", "/api/v1/nodes/node-1")
        client.ask("PUT", "/api/v1/nodes/node-1", {**node, "spec": {**node["spec"], "unschedulable": True}})
        cluster.settle()
        assert taints(client, "node-1") == ["node.kubernetes.io/unschedulable:NoSchedule"]


@pytest.mark.parametrize(
    ("nodes", "rate"),
    [
        ([True, False], 0.1),
        ([True, True, False, False, False], 0.0),  # a small zone, mostly lost
        ([True] * 20 + [False] * 40, 0.01),  # a large one
        ([True] * 40 + [False] * 20, 0.1),
    ],
)
def test_a_zone_that_is_mostly_lost_is_evicted_slowly_or_not_at_all(nodes: list[bool], rate: float) -> None:
    zones = Zones(KubeControllerManagerConfiguration())
    zones.look({"a": nodes, "b": [True]})
    limiter = zones.zones["a"].limiter
    assert (limiter is None) == (rate == 0.0)
    if limiter is not None:
        limiter.reserve(0.0)
        assert limiter.reserve(0.0) == pytest.approx(1 / rate)


def test_a_node_that_never_reported_its_status_is_unknown() -> None:
    node = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {}}
    found = conditions_unknown(node, 0.0)
    assert found is not None
    assert {row["reason"] for row in found} == {"NodeStatusNeverUpdated"}
    assert conditions_unknown({**node, "status": {"conditions": found}}, 9.0) is None


def test_a_zone_is_named_after_region_and_zone() -> None:
    labels = {"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "a"}
    assert zone_of({"metadata": {"labels": labels}}) == "eu:\0:a"
    assert zone_of({"metadata": {}}) == ""
