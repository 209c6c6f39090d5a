"""Services of type LoadBalancer in a cluster that has such."""

from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.nodes.load_balancers import FINALIZER, LoadBalancers
from tests.plain_client import Client

SERVICES = "/api/v1/namespaces/default/services"
EVENTS = "/api/v1/namespaces/default/events"


def service(name: str, *, kind: str = "LoadBalancer", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}], **spec}}


def events(client: Client, name: str) -> list[str]:
    found = [row for row in client.ask("GET", EVENTS)["items"] if row["involvedObject"]["name"] == name]
    return [row["reason"] for row in sorted(found, key=lambda row: int(row["metadata"]["resourceVersion"]))]


def ingress(client: Client, name: str) -> Any:
    return client.ask("GET", f"{SERVICES}/{name}")["status"]["loadBalancer"].get("ingress")


def test_a_service_has_an_address_as_long_as_it_wants_one() -> None:
    with Cluster(nodes=1, load_balancers=True) as cluster:
        client = Client(cluster)
        cluster.settle()
        client.ask("POST", SERVICES, service("web"))
        cluster.settle()
        assert ingress(client, "web") == [{"ip": "172.18.128.1", "ipMode": "VIP"}]
        assert client.ask("GET", f"{SERVICES}/web")["metadata"]["finalizers"] == [FINALIZER]
        client.ask("PUT", f"{SERVICES}/web", client.ask("GET", f"{SERVICES}/web") | service("web", kind="ClusterIP"))
        cluster.settle()
        found = client.ask("GET", f"{SERVICES}/web")
        assert found["status"]["loadBalancer"] == {}
        assert "finalizers" not in found["metadata"]
        assert events(client, "web") == [
            "EnsuringLoadBalancer",
            "EnsuredLoadBalancer",
            "DeletingLoadBalancer",
            "DeletedLoadBalancer",
        ]


def test_a_deleted_service_goes_when_its_load_balancer_has_gone() -> None:
    with Cluster(load_balancers=True) as cluster:
        client = Client(cluster)
        client.ask("POST", SERVICES, service("web"))
        cluster.settle()
        assert events(client, "web") == ["EnsuringLoadBalancer", "UnAvailableLoadBalancer", "EnsuredLoadBalancer"]
        client.ask("DELETE", f"{SERVICES}/web")
        cluster.settle()
        assert [row["metadata"]["name"] for row in client.ask("GET", SERVICES)["items"]] == ["kubernetes"]
        assert events(client, "web")[3:] == ["DeletingLoadBalancer", "DeletedLoadBalancer"]


def test_new_nodes_are_added_to_load_balancers() -> None:
    with Cluster(nodes=1, load_balancers=True) as cluster:
        client = Client(cluster)
        cluster.settle()
        client.ask("POST", SERVICES, service("web"))
        cluster.settle()
        client.ask("POST", "/api/v1/nodes", {"metadata": {"name": "another"}})
        cluster.settle()
        assert events(client, "web") == ["EnsuringLoadBalancer", "EnsuredLoadBalancer", "UpdatedLoadBalancer"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"loadBalancerIP": "10.9.8.7"}, [{"ip": "10.9.8.7", "ipMode": "VIP"}]),
        ({"loadBalancerClass": "example.com/other"}, None),
        ({"kind": "NodePort"}, None),
    ],
)
def test_which_services_get_which_address(spec: dict[str, Any], expected: Any) -> None:
    with Cluster(load_balancers=True) as cluster:
        client = Client(cluster)
        client.ask("POST", SERVICES, service("web", **spec))
        cluster.settle()
        assert ingress(client, "web") == expected


def test_addresses_are_of_each_family_and_unique() -> None:
    balancers = LoadBalancers()
    both = {"metadata": {"namespace": "shop", "name": "a"}, "spec": {"ipFamilies": ["IPv4", "IPv6"]}}
    assert balancers.ensure(both) == ["172.18.128.1", "fc00:f853:ccd:e793:8000::1"]
    assert balancers.ensure(both) == ["172.18.128.1", "fc00:f853:ccd:e793:8000::1"]
    told = {
        "metadata": {"namespace": "shop", "name": "told"},
        "spec": {},
        "status": {"loadBalancer": {"ingress": [{"ip": "172.18.128.2"}]}},
    }
    assert balancers.ensure(told) == ["172.18.128.2"]
    balancers.delete(both)
    assert balancers.ensure({"metadata": {"namespace": "shop", "name": "b"}, "spec": {}}) == ["172.18.128.3"]
