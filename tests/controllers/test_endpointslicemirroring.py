"""Endpoints that people write for services without a selector, and the slices that mirror them."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.component_helpers.objects import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from tests.controllers.harness import Harness, Object
from tests.controllers.harness import run as run_with
from tests.controllers.services import create_service, endpoints, slices


def run(scenario: Callable[[Harness], Awaitable[None]]) -> None:
    run_with(scenario, "endpointslice-mirroring-controller")


def written(*subsets: Object, **metadata: Any) -> Object:
    return {"metadata": {"name": "web", **metadata}, "subsets": [*subsets]}


SUBSET: Object = {
    "addresses": [{"ip": "10.1.0.1", "hostname": "a", "nodeName": "n"}, {"ip": "fd00::1"}],
    "notReadyAddresses": [{"ip": "10.1.0.2"}],
    "ports": [{"port": 80}],
}


def test_endpoints_are_mirrored_in_both_families() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster, selector=None)
        metadata = {
            "labels": {"a": "b"},
            "annotations": {"c": "d", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        }
        created = await cluster.create(ENDPOINTS, written(SUBSET, **metadata))
        (found,) = await slices(cluster)
        assert found["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
        assert found["metadata"]["labels"] == {
            "a": "b",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
            "kubernetes.io/service-name": "web",
        }
        assert found["metadata"]["annotations"] == {"c": "d"}
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Endpoints", created["metadata"]["uid"])
        assert await endpoints(cluster) == [
            {"addresses": ["10.1.0.1"], "conditions": {"ready": True}, "hostname": "a", "nodeName": "n"},
            {"addresses": ["10.1.0.2"], "conditions": {"ready": False}},
        ]
        assert [each["addresses"] for each in await endpoints(cluster, "IPv6")] == [["fd00::1"]]

    run(scenario)


def test_a_mirror_follows() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster, selector=None)
        await cluster.create(ENDPOINTS, written(SUBSET))
        (before,) = await slices(cluster)
        await cluster.of(ENDPOINTS).update(written({"addresses": [{"ip": "10.1.0.9"}], "ports": [{"port": 81}]}))
        await cluster.settle()
        (found,) = await slices(cluster)
        assert found["metadata"]["name"] == before["metadata"]["name"]  # overwritten, not created again
        assert [each["addresses"] for each in await endpoints(cluster)] == [["10.1.0.9"]]
        assert await slices(cluster, "IPv6") == []
        await cluster.of(ENDPOINT_SLICES).delete(found["metadata"]["name"])
        await cluster.settle()
        assert [each["addresses"] for each in await endpoints(cluster)] == [["10.1.0.9"]]
        await cluster.of(ENDPOINTS).delete("web")
        await cluster.settle()
        assert await slices(cluster) == []

    run(scenario)


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        ({}, {}),  # a service with a selector has slices of its own
        ({"selector": None}, {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}),
        ({"selector": None}, {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}),
    ],
)
def test_some_endpoints_are_not_mirrored(spec: dict[str, Any], metadata: Object) -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster, **spec)
        await cluster.create(ENDPOINTS, written(SUBSET, **metadata))
        assert await slices(cluster) == []

    run(scenario)


def test_a_service_that_gets_a_selector_loses_its_mirrors() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster, selector=None)
        await cluster.create(ENDPOINTS, written(SUBSET))
        await cluster.of(SERVICES).patch("web", {"spec": {"selector": {"app": "web"}}})
        await cluster.settle()
        assert await slices(cluster) == []

    run(scenario)


def test_a_thousand_addresses_of_a_subset_are_mirrored() -> None:
    async def scenario(cluster: Harness) -> None:
        await create_service(cluster, selector=None)
        many = [{"ip": f"10.2.{i // 250}.{i % 250 + 1}"} for i in range(1001)]
        await cluster.create(ENDPOINTS, written({"addresses": many, "ports": [{"port": 80}]}))
        assert len(await endpoints(cluster)) == 1000
        assert (
            "TooManyAddressesToMirror",
            "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped",
        ) in await cluster.events()

    run(scenario)
