"""Ranges of pod addresses for nodes."""

import asyncio
import ipaddress
from typing import Any

import pytest
from msgspec.structs import replace

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import kubeconfig, wait
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.component_helpers.configuration import KubeControllerManagerConfiguration
from fakeapiserver.controller_manager.clients import SimpleClientBuilder
from fakeapiserver.controller_manager.manager import ControllerManager
from fakeapiserver.controllers.node_ipam import CIDRSet, cidr_sets

NODES = GroupVersionResource("", "v1", "nodes")
SETTINGS = KubeControllerManagerConfiguration(allocate_node_cidrs=True, cluster_cidr="10.244.0.0/16")


def test_ranges_come_in_turn_and_again_when_they_were_given_back() -> None:
    found = CIDRSet(ipaddress.ip_network("10.0.0.0/22"), 24)
    found.occupy(ipaddress.ip_network("10.0.1.0/24"))
    assert [str(found.allocate_next()) for _ in range(3)] == ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"]
    assert found.allocate_next() is None
    found.release(ipaddress.ip_network("10.0.2.0/24"))
    assert str(found.allocate_next()) == "10.0.2.0/24"
    with pytest.raises(ValueError, match="out the range"):
        found.occupy(ipaddress.ip_network("192.168.0.0/24"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster_cidr": ""}, "--cluster-cidr must be one range or two"),
        ({"cluster_cidr": "10.0.0.0/16,10.1.0.0/16"}, "of which one is IPv4 and one is IPv6"),
        ({"cluster_cidr": "10.0.0.0/16,fd00::/48", "node_cidr_mask_size": 24}, "not for dual-stack clusters"),
        ({"cluster_cidr": "10.0.0.0/25"}, "is larger than the cluster's"),
        ({"cluster_cidr": "10.0.0.0/8", "node_cidr_mask_size": 25}, "New CIDR set failed"),
        ({"cidr_allocator_type": "CloudAllocator"}, "there is no cloud provider"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cidr_sets(replace(SETTINGS, **changes))


def test_services_addresses_are_nobodys() -> None:
    [found] = cidr_sets(replace(SETTINGS, service_cluster_ip_range="10.244.0.0/23"))
    assert str(found.allocate_next()) == "10.244.2.0/24"


def test_nodes_get_ranges_of_both_families() -> None:
    settings = replace(SETTINGS, cluster_cidr="10.244.0.0/16,fd00:1::/48")

    async def scenario(config: str) -> None:
        async with RESTClient(kubeconfig.load(config)) as rest:
            nodes = DynamicClient(rest).resource(NODES)
            await nodes.create(
                {"metadata": {"name": "own"}, "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]}}
            )
            await nodes.create({"metadata": {"name": "new"}})
            builder = SimpleClientBuilder(kubeconfig.load(config))
            manager = ControllerManager(builder, controllers=("nodeipam",), configuration=settings)
            running = asyncio.ensure_future(manager.run())
            try:
                found = await wait.until(nodes, lambda node: bool(node and node["spec"].get("podCIDRs")), name="new")
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            assert found is not None
            assert found["spec"]["podCIDRs"] == ["10.244.1.0/24", "fd00:1::/64"]

    with Cluster(controllers=("none",)) as cluster:
        asyncio.run(scenario(cluster.kubeconfig))
