"""Nodes that look after themselves: they refuse pods, evict them, end them all; and addresses of both IP families."""

import asyncio
import json
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import wait
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.nodes.node import pod_ranges
from fakeapiserver.nodes.pod_lifecycle.eviction import PRESSURES, message, ranked
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config
from tests.plain_client import Client

PODS = "/api/v1/namespaces/default/pods"
Object = dict[str, Any]


class PodClient(Client):
    def pod(self, name: str, memory: str = "", **spec: Any) -> None:
        requests = {"resources": {"requests": {"memory": memory}}} if memory else {}
        containers = [{"name": "c", "image": "x", **requests}]
        body = {"metadata": {"name": name}, "spec": {"nodeName": "node-1", "containers": containers, **spec}}
        self.ask("POST", PODS, body)

    def phases(self) -> dict[str, str]:
        return {
            pod["metadata"]["name"]: " ".join(filter(None, (pod["status"]["phase"], pod["status"].get("reason"))))
            for pod in self.ask("GET", PODS)["items"]
        }

    def condition(self, kind: str) -> str:
        rows = self.ask("GET", "/api/v1/nodes/node-1")["status"]["conditions"]
        return next(f"{row['status']} {row['reason']}" for row in rows if row["type"] == kind)

    def events(self) -> set[str]:
        return {event["reason"] for event in self.ask("GET", "/api/v1/namespaces/default/events")["items"]}


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({"memory": "1Ei"}, "OutOfmemory: Node didn't have enough resource: memory, requested: 1152921504606846976,"),
        ({"nodeSelector": {"disk": "ssd"}}, "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's"),
        ({"os": {"name": "windows"}}, "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS"),
    ],
)
def test_a_node_refuses_what_it_can_not_run(spec: Object, refused: str) -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        cluster.settle()
        client.pod("p", **spec)
        cluster.settle()
        status = client.ask("GET", f"{PODS}/p")["status"]
        told = f"{status['reason']}: {status['message'].removeprefix('Pod was rejected: ')}"
        assert (status["phase"], told[: len(refused)]) == ("Failed", refused)
        assert status["reason"] in client.events()


def test_a_node_evicts_under_pressure() -> None:
    with Cluster(nodes=1, controllers=("node-lifecycle-controller",)) as cluster:
        client = PodClient(cluster)
        cluster.clock.stop()
        cluster.nodes.script(name="greedy", usage={"memory": "2Gi"})
        client.pod("modest", "1Gi")
        client.pod("greedy", "1Gi")
        cluster.settle()
        cluster.nodes.press("node-1", "memory", evicts=1)
        cluster.settle()
        cluster.clock.advance("20s")
        assert client.condition("MemoryPressure") == "True KubeletHasInsufficientMemory"
        assert client.phases() == {"modest": "Running", "greedy": "Failed Evicted"}
        status = client.ask("GET", f"{PODS}/greedy")["status"]
        assert "Container c was using 2Gi, request is 1Gi, has larger consumption of memory. " in status["message"]
        [target] = [row for row in status["conditions"] if row["type"] == "DisruptionTarget"]
        assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
        assert {"Evicted", "Killing"} <= client.events()
        taints = client.ask("GET", "/api/v1/nodes/node-1")["spec"].get("taints") or []
        assert "node.kubernetes.io/memory-pressure" in [taint["key"] for taint in taints]
        client.pod("late")
        cluster.settle()
        assert client.phases()["late"] == "Failed Evicted"
        cluster.clock.advance("6m")
        assert client.condition("MemoryPressure") == "False KubeletHasSufficientMemory"


def test_a_node_shuts_down_gracefully() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        cluster.clock.stop()
        cluster.nodes.script(stops_after=5.0)
        client.pod("plain")
        client.pod("critical", priorityClassName="system-node-critical")
        cluster.settle()
        cluster.nodes.shut_down("node-1")
        cluster.settle()
        assert client.condition("Ready") == "False KubeletNotReady"
        cluster.clock.advance("6s")
        assert client.phases() == {"plain": "Failed Terminated", "critical": "Running"}
        cluster.clock.advance("6s")
        assert client.phases() == {"plain": "Failed Terminated", "critical": "Failed Terminated"}
        assert not client.ask("GET", "/fakeapiserver/nodes")[0]["runs"]


def pod(name: str, priority: int = 0, request: str = "0") -> Object:
    resources = {"requests": {"memory": request}}
    spec = {"priority": priority, "containers": [{"name": "c", "resources": resources}]}
    return {"metadata": {"uid": name}, "spec": spec}


def test_who_goes_first() -> None:
    pods = [pod("within", 0, "4Gi"), pod("important", 9, "1Gi"), pod("much", 0, "1Gi"), pod("little", 0, "1Gi")]
    usage = {"within": "3Gi", "important": "3Gi", "much": "3Gi", "little": "2Gi"}
    found = ranked(pods, PRESSURES["memory"], {name: {"c": {"memory": text}} for name, text in usage.items()})
    assert [one["metadata"]["uid"] for one in found] == ["much", "little", "important", "within"]
    assert message(pods[0], PRESSURES["memory"], {}) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 64Mi. "
    )


def test_a_resize_reaches_the_container() -> None:
    with Cluster(nodes=1) as cluster:
        client = PodClient(cluster)
        client.pod("p", "1Gi")
        client.pod("other", "200Gi")
        cluster.settle()

        def resize(memory: str) -> Object:
            obj = client.ask("GET", f"{PODS}/p")
            obj["spec"]["containers"][0]["resources"] = {"requests": {"memory": memory}}
            client.ask("PUT", f"{PODS}/p/resize", obj)
            cluster.settle()
            found: Object = client.ask("GET", f"{PODS}/p")["status"]
            return found

        [status] = resize("2Gi")["containerStatuses"]
        assert (status["allocatedResources"], status["resources"]) == (
            {"memory": "2Gi"},
            {"requests": {"memory": "2Gi"}},
        )
        found = resize("100Gi")
        assert found["containerStatuses"][0]["allocatedResources"] == {"memory": "2Gi"}
        [pending] = [row for row in found["conditions"] if row["type"] == "PodResizePending"]
        assert (pending["reason"], pending["message"].split(":")[0]) == ("Deferred", "Node didn't have enough resource")
        client.ask("DELETE", f"{PODS}/other")
        cluster.settle()
        found = client.ask("GET", f"{PODS}/p")["status"]
        assert found["containerStatuses"][0]["allocatedResources"] == {"memory": "100Gi"}
        assert "PodResize" not in json.dumps(found["conditions"])
        assert {"ResizeStarted", "ResizeCompleted", "ResizeDeferred"} <= client.events()


def test_pods_have_an_address_of_each_family_that_services_have() -> None:
    async def living() -> Object:
        server = LocalServer(Config(nodes=1, service_cluster_ip_range="10.0.0.0/24,fd00::/112"))
        await server.start()
        config = RESTConfig(host=server.url, ca_data=server.ca, token=server.admin_token)
        try:
            async with RESTClient(config) as rest:
                pods = DynamicClient(rest).resource(GroupVersionResource("", "v1", "pods"), "default")
                spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "x"}]}
                await pods.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
                found = await wait.until(pods, lambda pod: "podIPs" in (pod or {}).get("status", {}), name="p")
                assert found is not None
                return found["status"]
        finally:
            await server.stop()

    status = asyncio.run(living())
    assert [ip_address(row["ip"]).version for row in status["podIPs"]] == [4, 6]
    assert [ip_address(row["ip"]).version for row in status["hostIPs"]] == [4, 6]
    assert all(
        ip_address(row["ip"]) in ip_network(text)
        for row, text in zip(status["podIPs"], pod_ranges(1, dual_stack=True), strict=True)
    )
