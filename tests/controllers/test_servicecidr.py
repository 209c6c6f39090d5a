"""Ranges of service addresses: ready, and there as long as addresses need them."""

from fakeapiserver.component_helpers.objects import IP_ADDRESSES, SERVICE_CIDRS
from tests.controllers.harness import Harness, Object, run


def cidr(name: str, network: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"cidrs": [network]}}


def address(ip: str) -> Object:
    labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": "IPv4"}
    reference = {"resource": "services", "namespace": "default", "name": "web"}
    return {"metadata": {"name": ip, "labels": labels}, "spec": {"parentRef": reference}}


async def ready(cluster: Harness, name: str) -> tuple[str, str]:
    found = await cluster.get(SERVICE_CIDRS, name, "")
    assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
    (condition,) = found["status"]["conditions"]
    return condition["status"], condition["reason"]


def test_a_range_stays_until_its_addresses_are_gone() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(SERVICE_CIDRS, cidr("more", "10.77.0.0/24"), "")
        assert await ready(cluster, "more") == ("True", "")
        await cluster.create(IP_ADDRESSES, address("10.77.0.9"), "")
        await cluster.of(SERVICE_CIDRS, "").delete("more")
        await cluster.advance(60)
        assert await ready(cluster, "more") == ("False", "Terminating")
        await cluster.of(IP_ADDRESSES, "").delete("10.77.0.9")
        await cluster.advance(15)
        assert "more" not in await cluster.names(SERVICE_CIDRS, "")

    run(scenario, "service-cidr-controller")


def test_a_range_inside_another_goes_after_ten_seconds() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(SERVICE_CIDRS, cidr("wide", "10.77.0.0/24"), "")
        await cluster.create(SERVICE_CIDRS, cidr("narrow", "10.77.0.0/26"), "")
        await cluster.create(IP_ADDRESSES, address("10.77.0.9"), "")
        await cluster.of(SERVICE_CIDRS, "").delete("narrow")
        await cluster.advance(5)
        assert await ready(cluster, "narrow") == ("True", "")
        await cluster.advance(6)
        assert "narrow" not in await cluster.names(SERVICE_CIDRS, "")

    run(scenario, "service-cidr-controller")
