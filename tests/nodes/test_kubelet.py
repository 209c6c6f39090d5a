"""Simulated nodes in a cluster: they are there, their pods live, and a plug can be pulled."""

from datetime import datetime
from typing import Any

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

PODS = "/api/v1/namespaces/default/pods"


class PodClient(Client):
    def pod(self, name: str, node: str = "node-1", **spec: Any) -> None:
        containers = [{"name": "c", "image": "x"}]
        body = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers, **spec}}
        self.ask("POST", PODS, body)

    def pod_status(self, name: str) -> Any:
        return self.ask("GET", f"{PODS}/{name}")["status"]


def time_of(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def test_nodes_register_and_renew_their_leases() -> None:
    with Cluster(nodes=3) as cluster:
        client = PodClient(cluster)
        cluster.clock.stop()
        cluster.settle()
        nodes = client.ask("GET", "/api/v1/nodes")["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2", "node-3"]
        ready = [row for node in nodes for row in node["status"]["conditions"] if row["type"] == "Ready"]
        assert [row["status"] for row in ready] == ["True"] * 3

        def renewed() -> str:
            leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
            found: str = client.ask("GET", f"{leases}/node-2")["spec"]["renewTime"]
            return found

        times = {renewed()}  # who knows how long before the clock was stopped
        for _ in range(30):
            cluster.clock.advance("1s")
            times.add(renewed())
        _, before, after, *_ = sorted(times)
        assert time_of(after) - time_of(before) == pytest.approx(10)
        after = max(times)
        cluster.nodes.stop("node-2")
        cluster.clock.advance("1m")
        assert renewed() == after
        cluster.nodes.start("node-2")
        cluster.settle()
        assert renewed() > after


def test_pods_run_and_go_and_addresses_are_their_own() -> None:
    with Cluster(nodes=2) as cluster:
        client = PodClient(cluster)
        for number in range(4):
            client.pod(f"p{number}", f"node-{number % 2 + 1}")
        cluster.settle()
        found = [client.pod_status(f"p{number}") for number in range(4)]
        assert {status["phase"] for status in found} == {"Running"}
        assert len({status["podIP"] for status in found}) == 4
        client.ask("DELETE", f"{PODS}/p0")
        cluster.settle()
        assert [pod["metadata"]["name"] for pod in client.ask("GET", PODS)["items"]] == ["p1", "p2", "p3"]


def test_a_script_changes_what_is_there_already() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        client.pod("p", restartPolicy="Never")
        cluster.settle()
        assert client.pod_status("p")["phase"] == "Running"
        cluster.nodes.script(name="p", runs_for=0.0, exit_codes=(2,))
        cluster.settle()
        assert client.pod_status("p")["phase"] == "Failed"


def test_a_container_that_needed_too_much_memory() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        cluster.nodes.script(name="p", runs_for=0.0, exit_codes=(137,), reason="OOMKilled")
        client.pod("p", restartPolicy="Never")
        cluster.settle()
        ended = client.pod_status("p")["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_a_status_of_a_test_needs_no_times() -> None:
    """The kubelet goes on from whatever the status says."""
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        client.pod("p")
        cluster.settle()
        (was,) = client.pod_status("p")["containerStatuses"]
        cluster.patch("pod/p", {"status": {"containerStatuses": [{**was, "state": ended}]}}, subresource="status")
        cluster.settle()
        cluster.clock.advance("1m")
        (status,) = client.pod_status("p")["containerStatuses"]
        assert status["restartCount"] == 1
        assert status["lastState"]["terminated"]["reason"] == "OOMKilled"


def test_commands_for_a_dead_node_wait_for_it() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        client.pod("p")
        cluster.settle()
        cluster.nodes.stop("node-1")
        client.ask("DELETE", f"{PODS}/p")
        cluster.settle()
        assert client.ask("GET", f"{PODS}/p")["metadata"]["deletionTimestamp"]
        cluster.nodes.start("node-1")
        cluster.settle()
        assert client.ask("GET", PODS)["items"] == []


def test_a_namespace_with_running_pods_goes_without_time_passing() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        cluster.settle()
        cluster.clock.stop()
        client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        cluster.settle()
        for name in ("a", "b", "c"):
            body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
            client.ask("POST", "/api/v1/namespaces/shop/pods", body)
        cluster.settle()
        client.ask("DELETE", "/api/v1/namespaces/shop")
        cluster.settle()
        assert "shop" not in [item["metadata"]["name"] for item in client.ask("GET", "/api/v1/namespaces")["items"]]


def test_missing_nodes_are_reported() -> None:
    with Cluster(nodes=1) as cluster, pytest.raises(ValueError, match="there is no simulated node node-2"):
        cluster.nodes.stop("node-2")
    with Cluster() as cluster, pytest.raises(ValueError, match="this cluster has no simulated nodes"):
        _ = cluster.nodes


def test_a_condition_that_becomes_true_has_no_reason_left() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.nodes.script(ready_after=60)
        client = PodClient(cluster)
        client.pod("db")
        cluster.settle()
        reasons = []
        for seconds in (0, 60):
            cluster.clock.advance(seconds)
            cluster.settle()
            conditions = client.pod_status("db")["conditions"]
            reasons.append([row.get("reason") for row in conditions if row["type"] in ("Ready", "ContainersReady")])
        assert reasons == [["ContainersNotReady"] * 2, [None] * 2]


@pytest.mark.parametrize("capacities", [["4"], ["4", "6"]], ids=["added", "changed"])
def test_extended_resources_of_a_nodes_capacity_can_be_allocated(capacities: list[str]) -> None:
    with Cluster(nodes=1) as cluster:
        cluster.settle()
        for capacity in capacities:
            status = {"status": {"capacity": {"example.com/dongle": capacity}}}
            cluster.patch("nodes/node-1", status, subresource="status")
            cluster.clock.advance("11s")
        allocatable = cluster.get("nodes/node-1")["status"]["allocatable"]
        assert allocatable["example.com/dongle"] == capacities[-1]
        assert "cpu" in allocatable
