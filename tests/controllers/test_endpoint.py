"""Endpoints of a service: subsets of addresses that serve the same ports."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import ENDPOINTS, NAMESPACES, PODS, SERVICES
from tests.controllers.harness import EVENTS, Harness, Object
from tests.controllers.harness import run as run_with
from tests.controllers.services import create_pods, create_service, pod, running

OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    run_with(scenario, "endpoints-controller")


async def shown(cluster: Harness) -> list[tuple[list[str], list[str], list[int]]]:
    """(ready, not ready, ports) of each subset."""
    found = await cluster.get(ENDPOINTS, "web")
    return [
        (
            [address["ip"] for address in subset.get("addresses", ())],
            [address["ip"] for address in subset.get("notReadyAddresses", ())],
            sorted(port["port"] for port in subset.get("ports", ())),
        )
        for subset in found.get("subsets", ())
    ]


def test_endpoints_follow_their_service_and_its_pods() -> None:
    async def scenario(cluster: Harness) -> None:
        created = await create_service(cluster)
        found = await cluster.get(ENDPOINTS, "web")
        assert "subsets" not in found
        assert found["metadata"]["labels"] == {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        assert found["metadata"]["annotations"] == {
            "endpoints.kubernetes.io/last-change-trigger-time": created["metadata"]["creationTimestamp"]
        }
        await create_pods(
            cluster,
            {**pod("one"), "status": running("10.1.0.1")},
            {**pod("two", node="there"), "status": running("10.1.0.2", ready=False)},
            {**pod("alien", app="other"), "status": running("10.1.0.3")},
        )
        assert await shown(cluster) == [(["10.1.0.1"], ["10.1.0.2"], [8080])]
        (subset,) = (await cluster.get(ENDPOINTS, "web"))["subsets"]
        assert subset["addresses"][0]["nodeName"] == "here"
        assert subset["notReadyAddresses"][0]["targetRef"]["name"] == "two"
        await cluster.of(PODS).delete("one")
        await cluster.settle()
        assert await shown(cluster) == [([], ["10.1.0.2"], [8080])]
        await cluster.of(SERVICES).delete("web")
        await cluster.settle()
        assert "web" not in await cluster.names(ENDPOINTS)

    run(scenario)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, [(["10.1.0.1"], ["10.1.0.2"], [8080])]),
        ({"publishNotReadyAddresses": True}, [(["10.1.0.1", "10.1.0.2"], [], [8080])]),
        ({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}, [(["10.1.0.1"], ["10.1.0.2"], [80, 81])]),
        ({"ports": [{"port": 80, "targetPort": "nowhere"}]}, []),
        ({"clusterIP": "None", "ports": None}, [(["10.1.0.1"], ["10.1.0.2"], [])]),
    ],
)
def test_what_a_service_says_decides_who_is_in(spec: dict[str, Any], expected: list[object]) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_pods(
            cluster,
            {**pod("one"), "status": running("10.1.0.1")},
            {**pod("two"), "status": running("10.1.0.2", ready=False)},
        )
        await create_service(cluster, **spec)
        assert await shown(cluster) == expected

    run(scenario)


@pytest.mark.parametrize("spec", [{"selector": None}, {"type": "ExternalName", "externalName": "a.b", "ports": None}])
def test_some_services_have_no_endpoints(spec: dict[str, Any]) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster, **spec)
        assert "web" not in await cluster.names(ENDPOINTS)

    run(scenario)


def test_what_others_make_of_endpoints_stays_until_something_happens_or_they_are_deleted() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster)
        await create_pods(cluster, {**pod("one"), "status": running("10.1.0.1")})
        await cluster.of(ENDPOINTS).patch("web", {"subsets": None})
        await cluster.settle()
        assert await shown(cluster) == []
        await cluster.of(ENDPOINTS).delete("web")
        await cluster.settle()
        assert await shown(cluster) == [(["10.1.0.1"], [], [8080])]

    run(scenario)


def test_of_more_than_a_thousand_addresses_the_ready_ones_stay() -> None:
    async def scenario(cluster: Harness) -> None:
        ready: list[Object] = [{"ip": f"10.2.{i // 250}.{i % 250 + 1}"} for i in range(900)]
        unready: list[Object] = [{"ip": f"10.3.{i // 250}.{i % 250 + 1}"} for i in range(200)]
        from fakeapiserver.controllers.endpoint import _truncated

        (found,) = _truncated([{"addresses": ready, "notReadyAddresses": unready}])
        assert (len(found["addresses"]), len(found["notReadyAddresses"])) == (900, 100)
        found, other = _truncated([{"addresses": ready}, {"addresses": unready, "notReadyAddresses": ready}])
        assert (len(found["addresses"]), len(other["addresses"]), "notReadyAddresses" in other) == (819, 181, False)
        assert _truncated([{"addresses": ready}]) == [{"addresses": ready}]

    run(scenario)


def test_a_namespace_that_ends_gets_no_endpoints() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(NAMESPACES, {"metadata": {"name": "shop"}}, "")
        await cluster.of(NAMESPACES, "").delete("shop")
        await cluster.settle()
        assert await cluster.names(ENDPOINTS, "shop") == []

    run(scenario)


def test_the_event_of_a_refused_create_is_in_the_default_namespace() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_pods(cluster, {**pod("one", node=""), "status": running("10.1.0.1")})
        await create_service(cluster)
        assert "web" not in await cluster.names(ENDPOINTS)
        events = await cluster.client.resource(EVENTS, "default").list()
        (event,) = [event for event in events["items"] if event["reason"] == "FailedToCreateEndpoint"]
        assert event["involvedObject"] == {"kind": "Endpoints", "name": "web", "apiVersion": "v1"}
        assert "nodeName: Invalid value" in event["message"]

    run(scenario)
