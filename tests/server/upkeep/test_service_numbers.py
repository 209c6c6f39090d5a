"""Addresses and node ports of services, as a client sees them come and go."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.dynamic import DynamicClient, ResourceClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config

Json = dict[str, Any]


class Client:
    """The resources that this is about."""

    def __init__(self, client: DynamicClient, server: LocalServer) -> None:
        self.server = server
        self.services: ResourceClient = client.resource(GroupVersionResource("", "v1", "services"), "default")
        networking = ("networking.k8s.io", "v1")
        self.addresses = client.resource(GroupVersionResource(*networking, "ipaddresses"))
        self.ranges = client.resource(GroupVersionResource(*networking, "servicecidrs"))

    async def create(self, name: str, **spec: Any) -> Json:
        """The new service's spec."""
        spec = {"ports": [{"port": 80}], **spec}
        found: Json = (await self.services.create({"metadata": {"name": name}, "spec": spec}))["spec"]
        return found

    async def taken(self) -> set[str]:
        return {obj["metadata"]["name"] for obj in (await self.addresses.list())["items"]}


def run(scenario: Callable[[Client], Awaitable[None]], **config: Any) -> None:
    async def main() -> None:
        server = LocalServer(Config(**{"controllers": ("none",), **config}))
        await server.start()
        try:
            async with RESTClient(RESTConfig(host=server.url, ca_data=server.ca, token=server.admin_token)) as rest:
                await scenario(Client(DynamicClient(rest), server))
        finally:
            await server.stop()

    asyncio.run(main())


def test_an_address_is_an_object_as_long_as_its_service_has_it() -> None:
    async def scenario(client: Client) -> None:
        ip = (await client.create("a"))["clusterIP"]
        made = await client.addresses.get(ip)
        assert made["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "a"}
        assert made["metadata"]["labels"]["ipaddress.kubernetes.io/managed-by"] == "ipallocator.k8s.io"
        with pytest.raises(StatusError, match="provided IP is already allocated"):
            await client.create("b", clusterIP=ip)
        await client.services.delete("a")
        assert await client.taken() == {"10.0.0.1"}
        assert (await client.create("b", clusterIP=ip))["clusterIPs"] == [ip]

    run(scenario)


def test_what_a_refused_service_was_promised_is_free_again() -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(StatusError, match="appProtocol"):
            await client.create("a", type="NodePort", ports=[{"port": 80, "nodePort": 30001, "appProtocol": "a b"}])
        assert await client.taken() == {"10.0.0.1"}
        spec = await client.create("a", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
        assert spec["ports"][0]["nodePort"] == 30001

    run(scenario)


def test_changes_of_type_give_up_what_the_new_one_has_not() -> None:
    async def scenario(client: Client) -> None:
        await client.create("a", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
        await client.services.patch("a", {"spec": {"type": "ClusterIP"}})
        await client.create("b", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
        await client.services.patch("b", {"spec": {"type": "ExternalName", "externalName": "a.b"}})
        assert len(await client.taken()) == 2  # and the one of the service kubernetes
        assert (await client.services.patch("b", {"spec": {"type": "ClusterIP"}}))["spec"]["clusterIP"]

    run(scenario)


def test_a_dry_run_returns_made_up_numbers() -> None:
    async def scenario(client: Client) -> None:
        body = {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        spec = (await client.services.create(body, dry_run=True))["spec"]
        assert (spec["clusterIP"], spec["ports"][0]["nodePort"]) == ("10.0.0.0", 32769)
        assert await client.taken() == {"10.0.0.1"}

    run(scenario)


def test_a_full_range_says_so_until_there_is_another() -> None:
    async def scenario(client: Client) -> None:
        for i in range(5):
            await client.create(f"s{i}")
        with pytest.raises(StatusError, match='failed to allocate a serviceIP for Service "more": range is full'):
            await client.create("more")
        await client.ranges.create({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.9.0.0/30"]}})
        assert {(await client.create(name))["clusterIP"] for name in ("x", "y")} == {"10.9.0.1", "10.9.0.2"}
        await client.services.delete("x")
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": "",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await client.ranges.patch("more", {"status": {"conditions": [condition]}}, "status")
        with pytest.raises(StatusError, match="range is full"):
            await client.create("x")

    run(scenario, service_cluster_ip_range="10.0.0.0/29")


def test_two_families() -> None:
    async def scenario(client: Client) -> None:
        spec = await client.create("a", ipFamilyPolicy="PreferDualStack", clusterIP="fd00::5")
        assert spec["ipFamilies"] == ["IPv6", "IPv4"]
        assert await client.taken() == {"fd00::1", *spec["clusterIPs"]}
        await client.services.patch("a", {"spec": {"ipFamilyPolicy": "SingleStack"}})
        assert await client.taken() == {"fd00::1", "fd00::5"}
        own = (await client.services.get("kubernetes"))["spec"]
        assert (own["clusterIPs"], own["ipFamilies"]) == (["fd00::1"], ["IPv6"])
        assert (await client.ranges.get("kubernetes"))["spec"]["cidrs"] == ["fd00::/112", "10.0.0.0/24"]

    run(scenario, service_cluster_ip_range="fd00::/112,10.0.0.0/24")


def test_ports_come_from_the_range_of_the_flag() -> None:
    async def scenario(client: Client) -> None:
        ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
        spec = await client.create("a", type="NodePort", ports=ports)
        assert {port["nodePort"] for port in spec["ports"]} == {100, 101}
        with pytest.raises(StatusError, match="failed to allocate a nodePort: range is full"):
            await client.create("b", type="NodePort")
        with pytest.raises(StatusError, match="The range of valid ports is 100-101"):
            await client.create("b", type="NodePort", ports=[{"port": 80, "nodePort": 102}])

    run(scenario, service_node_port_range=range(100, 102))


def test_a_state_that_is_brought_back_holds_what_it_held() -> None:
    async def scenario(client: Client) -> None:
        await client.create("a", type="NodePort", clusterIP="10.0.0.7", ports=[{"port": 80, "nodePort": 30001}])
        api = client.server.api
        assert api is not None
        state = api.snapshot()
        await client.services.delete("a")
        await client.create("b", type="NodePort", ports=[{"port": 80, "nodePort": 30002}])
        await api.restore(state)
        for spec in ({"clusterIP": "10.0.0.7"}, {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}]}):
            with pytest.raises(StatusError, match="already allocated"):
                await client.create("c", **spec)
        await client.create("c", type="NodePort", ports=[{"port": 80, "nodePort": 30002}])

    run(scenario)


def test_addresses_and_services_that_lost_each_other_are_repaired() -> None:
    async def scenario(client: Client) -> None:
        api = client.server.api
        assert api is not None
        assert isinstance(api.clock, AdjustableClock)
        await client.create("a", clusterIP="10.0.0.7")
        await client.addresses.delete("10.0.0.7")
        labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
        parent = {"resource": "services", "namespace": "default", "name": "nobody"}
        await client.addresses.create(
            {"metadata": {"name": "10.0.0.9", "labels": labels}, "spec": {"parentRef": parent}}
        )
        await api.advance(50)
        assert await client.taken() == {"10.0.0.1", "10.0.0.9"}
        await api.advance(150)
        assert await client.taken() == {"10.0.0.1", "10.0.0.7"}

    run(scenario)


def test_a_deleted_range_gives_no_more_addresses_and_waits_for_its_allocated_ones() -> None:
    async def scenario(client: Client) -> None:
        api = client.server.api
        assert api is not None
        await client.ranges.create({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.9.0.0/30"]}})
        await api.advance(1)
        await client.create("a", clusterIP="10.9.0.1")
        await client.ranges.delete("more")
        await api.advance(15)
        [condition] = (await client.ranges.get("more"))["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "Terminating")
        with pytest.raises(StatusError, match="the provided network does not match the current range"):
            await client.create("b", clusterIP="10.9.0.2")
        await client.services.delete("a")
        await api.advance(15)
        assert [obj["metadata"]["name"] for obj in (await client.ranges.list())["items"]] == ["kubernetes"]

    run(scenario, controllers=("service-cidr-controller",))


def test_the_first_range_comes_back() -> None:
    async def scenario(client: Client) -> None:
        api = client.server.api
        assert api is not None
        await client.ranges.delete("kubernetes")
        with pytest.raises(StatusError, match="range is full"):
            await client.create("a")
        await api.advance(11)
        found = await client.ranges.get("kubernetes")
        assert [condition["status"] for condition in found["status"]["conditions"]] == ["True"]
        await client.create("a")

    run(scenario)
