"""Slices of a service: which pods are in them, in what state, and how they are packed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import ENDPOINT_SLICES, NODES, PODS, SERVICES
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with
from tests.controllers.services import create_node, create_pods, create_service, endpoints, pod, running, slices

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    run_with(scenario, "endpointslice-controller")


def test_a_service_without_pods_has_an_empty_slice() -> None:
    async def scenario(cluster: Harness) -> None:
        created = await create_service(cluster)
        (found,) = await slices(cluster)
        metadata = found["metadata"]
        assert metadata["labels"] == {
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "kubernetes.io/service-name": "web",
        }
        assert metadata["annotations"] == {TRIGGER_TIME: created["metadata"]["creationTimestamp"]}
        (owner,) = metadata["ownerReferences"]
        assert owner["uid"] == created["metadata"]["uid"]
        assert (found["endpoints"], found["ports"]) == (None, None)

    run(scenario)


@pytest.mark.parametrize(
    "spec",
    [{"type": "ExternalName", "externalName": "example.com", "ports": None}, {"selector": None}],
)
def test_some_services_have_no_slices(spec: dict[str, Any]) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster, **spec)
        assert await slices(cluster) == []

    run(scenario)


@pytest.mark.parametrize(
    ("status", "publishes", "deleted", "conditions"),
    [
        (running("10.1.0.1"), False, False, (True, True, False)),
        (running("10.1.0.1", ready=False), False, False, (False, False, False)),
        (running("10.1.0.1", ready=False), True, False, (True, False, False)),
        (running("10.1.0.1"), False, True, (False, True, True)),
        (running("10.1.0.1"), True, True, (True, True, True)),
        ({"phase": "Running"}, False, False, None),
        ({**running("10.1.0.1"), "phase": "Failed"}, False, False, None),
        (running("fd00::1"), False, False, None),
    ],
)
def test_an_endpoint_reports_its_pods_conditions(
    status: Object, publishes: bool, deleted: bool, conditions: tuple[bool, bool, bool] | None
) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster, zone="a")
        await create_service(cluster, publishNotReadyAddresses=publishes)
        await create_pods(cluster, {**pod("one"), "status": status})
        if deleted:
            await cluster.of(PODS).delete("one")
            await cluster.settle()
        found = await endpoints(cluster)
        if conditions is None:
            assert found == []
            return
        (endpoint,) = found
        assert endpoint["conditions"] == dict(zip(("ready", "serving", "terminating"), conditions, strict=True))
        assert (endpoint["nodeName"], endpoint["zone"]) == ("here", "a")
        assert endpoint["targetRef"]["name"] == "one"

    run(scenario)


def test_a_slice_follows_its_pods_and_its_service() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster)
        await create_service(cluster)
        await create_pods(cluster, {**pod("one"), "status": running("10.1.0.1", since="2027-01-01T00:00:00Z")})
        (found,) = await slices(cluster)
        assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
        assert found["metadata"]["annotations"] == {TRIGGER_TIME: "2027-01-01T00:00:00Z"}
        await cluster.of(SERVICES).patch("web", {"metadata": {"labels": {"tier": "front"}}})
        await cluster.settle()
        (found,) = await slices(cluster)
        assert found["metadata"]["labels"]["tier"] == "front"
        assert TRIGGER_TIME not in found["metadata"].get("annotations", {})  # nothing happened to its endpoints
        await cluster.of(PODS).patch("one", {"metadata": {"labels": {"app": "other"}}})
        await cluster.settle()
        (found,) = await slices(cluster)
        assert not found["endpoints"]

    run(scenario)


def test_named_ports_make_a_slice_each() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster)
        await create_service(cluster, ports=[{"port": 80, "targetPort": "http"}])
        other = pod("two")
        other["spec"]["containers"][0]["ports"][0]["containerPort"] = 9090
        await create_pods(
            cluster,
            {**pod("one"), "status": running("10.1.0.1")},
            {**other, "status": running("10.1.0.2")},
        )
        found = {each["ports"][0]["port"]: len(each["endpoints"]) for each in await slices(cluster)}
        assert found == {8080: 1, 9090: 1}

    run(scenario)


def test_only_addresses_of_the_services_family_count() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster)
        await create_service(cluster, clusterIP="None")
        await create_pods(cluster, {**pod("one"), "status": running("fd00::1", "10.1.0.1")})
        assert [each["addresses"] for each in await endpoints(cluster)] == [["10.1.0.1"]]
        assert await slices(cluster, "IPv6") == []
        (found,) = await slices(cluster)
        assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""

    run(scenario)


def test_a_hostname_counts_in_its_own_domain() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster)
        await create_service(cluster, clusterIP="None", ports=None)
        await create_pods(
            cluster,
            {**pod("one", hostname="a", subdomain="web"), "status": running("10.1.0.1")},
            {**pod("two", hostname="b", subdomain="other"), "status": running("10.1.0.2")},
        )
        assert [each.get("hostname") for each in await endpoints(cluster)] == ["a", None]

    run(scenario)


def test_a_slice_holds_a_hundred_endpoints() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster)
        await create_pods(
            cluster, *({**pod(f"p{i}"), "status": running(f"10.1.{i // 200}.{i % 200 + 1}")} for i in range(250))
        )
        await create_service(cluster)
        assert sorted(len(each["endpoints"]) for each in await slices(cluster)) == [50, 100, 100]
        before = {each["metadata"]["name"] for each in await slices(cluster)}
        for i in range(60):
            await cluster.of(PODS).delete(f"p{i}", grace_period_seconds=0)
        await cluster.settle()
        found = await slices(cluster)
        assert {each["metadata"]["name"] for each in found} <= before
        assert sum(len(each["endpoints"]) for each in found) == 190
        # the fullest one with room enough is filled up
        room = max(len(each["endpoints"]) for each in found if len(each["endpoints"]) < 100)
        await create_pods(cluster, {**pod("more"), "status": running("10.2.0.1")})
        assert room + 1 in [len(each["endpoints"]) for each in await slices(cluster)]

    run(scenario)


def test_what_others_make_of_a_slice_does_not_stay() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster)
        await create_service(cluster)
        await create_pods(cluster, {**pod("one"), "status": running("10.1.0.1")})
        (found,) = await slices(cluster)
        await cluster.of(ENDPOINT_SLICES).patch(found["metadata"]["name"], {"endpoints": []})
        await cluster.advance(1.0)
        assert [each["addresses"] for each in await endpoints(cluster)] == [["10.1.0.1"]]
        await cluster.of(ENDPOINT_SLICES).delete(found["metadata"]["name"])
        await cluster.advance(1.0)
        assert [each["addresses"] for each in await endpoints(cluster)] == [["10.1.0.1"]]

    run(scenario)


def test_a_pod_on_an_unknown_node_waits_for_it() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster)
        await create_pods(cluster, {**pod("one", node="later"), "status": running("10.1.0.1")})
        assert await endpoints(cluster) == []
        assert (
            "FailedToUpdateEndpointSlices",
            "Error updating Endpoint Slices for Service default/web: skipping Pod one for Service default/web: "
            "Node later Not Found",
        ) in await cluster.events()
        await create_node(cluster, "later")
        await cluster.advance(60.0)
        assert [each["addresses"] for each in await endpoints(cluster)] == [["10.1.0.1"]]

    run(scenario)


@pytest.mark.parametrize(
    ("distribution", "hints"),
    [
        ("PreferClose", {"forZones": [{"name": "a"}]}),
        ("PreferSameZone", {"forZones": [{"name": "a"}]}),
        ("PreferSameNode", {"forZones": [{"name": "a"}], "forNodes": [{"name": "here"}]}),
        (None, None),
    ],
)
def test_traffic_stays_near_where_that_is_wanted(distribution: str | None, hints: Object | None) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster, zone="a")
        await create_service(cluster, trafficDistribution=distribution)
        await create_pods(cluster, {**pod("one"), "status": running("10.1.0.1")})
        (endpoint,) = await endpoints(cluster)
        assert endpoint.get("hints") == hints
        await cluster.of(SERVICES).patch("web", {"spec": {"trafficDistribution": None}})
        await cluster.settle()
        (endpoint,) = await endpoints(cluster)
        assert "hints" not in endpoint

    run(scenario)


def test_zones_get_endpoints_by_their_share_of_cpus() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster, "here", zone="a", cpu="4")
        await create_node(cluster, "there", zone="b", cpu="4")
        await create_service_with_topology(cluster)
        zones = [each["hints"]["forZones"][0]["name"] for each in await endpoints(cluster)]
        assert sorted(zones) == ["a"] * 3 + ["b"] * 3
        message = "Topology Aware Hints has been enabled, addressType: IPv4"
        assert ("TopologyAwareHintsEnabled", message) in await cluster.events()
        await cluster.of(NODES, "").patch("there", {"metadata": {"labels": {"topology.kubernetes.io/zone": None}}})
        await cluster.settle()
        assert [each.get("hints") for each in await endpoints(cluster)] == [None] * 6
        assert (await cluster.events())[-1] == (
            "TopologyAwareHintsDisabled",
            "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4",
        )

    run(scenario)


async def create_service_with_topology(cluster: Harness) -> None:
    """With six pods on the node `here`."""
    for i in range(6):
        await create_pods(cluster, {**pod(f"p{i}", node="here"), "status": running(f"10.1.0.{i + 1}")})
    created = {**service_with_topology(), "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    await cluster.create(SERVICES, created)


def service_with_topology() -> Object:
    return {"metadata": {"name": "web", "annotations": {"service.kubernetes.io/topology-mode": "Auto"}}}


@pytest.mark.parametrize(
    ("change", "subresource"),
    [
        ({"metadata": {"labels": {"topology.kubernetes.io/zone": "b"}}}, ""),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "status"),
        (None, ""),
    ],
    ids=["gets a zone", "is not ready", "is deleted"],
)
def test_a_node_without_zone_prevents_hints_until_it_changes(change: Object | None, subresource: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_node(cluster, "without", cpu="4")
        await create_node(cluster, "here", zone="a", cpu="4")
        await create_node(cluster, "there", zone="b", cpu="4")
        await create_service_with_topology(cluster)
        assert not any("hints" in each for each in await endpoints(cluster))
        nodes = cluster.of(NODES, "")
        await (nodes.delete("without") if change is None else nodes.patch("without", change, subresource))
        await cluster.settle()
        await create_pods(cluster, {**pod("p6", node="here"), "status": running("10.1.0.7")})
        assert {each["hints"]["forZones"][0]["name"] for each in await endpoints(cluster)} == {"a", "b"}

    run(scenario)
