"""Tests the objects of a fresh server: the endpoints of the service `kubernetes`."""

import asyncio
from typing import Any

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config


def started(**flags: Any) -> APIServer:
    async def start() -> APIServer:
        server = APIServer(Config(secure_port=7560, **flags))
        await server.start()
        await server.stop()
        return server

    return asyncio.run(start())


@pytest.mark.parametrize(("address", "family"), [("10.77.0.1", "IPv4"), ("fd00::1", "IPv6")])
def test_the_service_leads_to_the_advertised_address(address: str, family: str) -> None:
    objects = started(advertise_address=address).objects
    endpoints = objects.get("endpoints", "default", "kubernetes")
    assert endpoints is not None
    assert endpoints["metadata"]["labels"] == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    ports = [{"name": "https", "port": 7560, "protocol": "TCP"}]
    assert endpoints["subsets"] == [{"addresses": [{"ip": address}], "ports": ports}]
    found = objects.get("endpointslices.discovery.k8s.io", "default", "kubernetes")
    assert found is not None
    assert found["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    assert (found["addressType"], found["ports"]) == (family, ports)
    assert found["endpoints"] == [{"addresses": [address], "conditions": {"ready": True}}]


@pytest.mark.parametrize("address", ["", "127.0.0.1", "::1"])
def test_it_leads_nowhere_without_one_or_to_loopback(address: str) -> None:
    assert started(advertise_address=address).objects.list("endpoints", "default") == []


def test_the_service_has_the_node_port_that_is_asked_for() -> None:
    server = started(kubernetes_service_node_port=30443)
    service = server.objects.get("services", "default", "kubernetes")
    assert service is not None
    assert (service["spec"]["type"], service["spec"]["externalTrafficPolicy"]) == ("NodePort", "Cluster")
    assert [port["nodePort"] for port in service["spec"]["ports"]] == [30443]
    allocation = server.scopes.services.allocations[GroupResource("", "services")]
    wanted = {"metadata": {"name": "x"}, "spec": {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30443}]}}

    async def create() -> None:
        async with allocation.creating(wanted, dry_run=True):
            pass

    with pytest.raises(StatusError, match="provided port is already allocated"):
        asyncio.run(create())
