"""Addresses and node ports that several servers on one etcd hand out."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import httpx
import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from tests.server.etcd.ours import ask, eventually, server

SERVICES: Final = "/api/v1/namespaces/default/services"
CLIENTS: Final = 16
PORTS: Final = range(30000, 30020)


def service(name: str, port: int = 0) -> Object:
    ports = [{"port": 80, **({"nodePort": port} if port else {})}]
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}}


async def created(servers: Sequence[httpx.AsyncClient], number: int, port: int = 0) -> list[Any]:
    """The answers to so many services that are created at once, through each of the servers in turn."""
    requests = [
        servers[i % len(servers)].post(SERVICES, json=service(f"s{i}", port), timeout=60) for i in range(number)
    ]
    return [response.json() for response in await asyncio.gather(*requests)]


def ports_of(services: Sequence[Any]) -> list[int]:
    return [port["nodePort"] for each in services for port in each["spec"]["ports"] if port.get("nodePort")]


def test_clients_of_two_servers_get_addresses_and_ports_of_their_own(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario() -> None:
        options: dict[str, Any] = {"prefix": prefix, "config": {"service_node_port_range": PORTS}}
        async with server(shared_etcd.url, **options) as first, server(shared_etcd.url, **options) as second:
            for _ in range(3):
                services = await created((first, second), CLIENTS)
                assert [each["kind"] for each in services] == ["Service"] * CLIENTS, services
                assert len(set(ports_of(services))) == CLIENTS
                assert len({each["spec"]["clusterIP"] for each in services}) == CLIENTS
                await asyncio.gather(*(ask(second, "DELETE", f"{SERVICES}/s{i}") for i in range(CLIENTS)))
            services = await created((first, second), len(PORTS) + 4)
            assert sorted(ports_of([each for each in services if each["kind"] == "Service"])) == [*PORTS]
            refused = {each["message"] for each in services if each["kind"] == "Status"}
            assert refused == {"Internal error occurred: failed to allocate a nodePort: range is full"}

    asyncio.run(scenario())


@pytest.mark.parametrize("media_type", ["application/vnd.kubernetes.protobuf", "application/json"])
def test_one_of_several_clients_gets_a_port_that_all_ask_for(
    shared_etcd: EtcdProcess, prefix: str, media_type: str
) -> None:
    async def scenario() -> None:
        options: dict[str, Any] = {"prefix": prefix, "media_type": media_type}
        async with server(shared_etcd.url, **options) as first, server(shared_etcd.url, **options) as second:
            services = await created((first, second), 6, port=30007)
            assert sorted(each["kind"] for each in services) == ["Service"] + ["Status"] * 5
            (refused,) = {each["message"].partition(": ")[2] for each in services if each["kind"] == "Status"}
            assert refused == ("Invalid value: 30007: provided port is already allocated") or refused.endswith(
                "provided port is already allocated"
            )

    asyncio.run(scenario())


def test_clients_of_two_servers_never_exceed_a_quota(shared_etcd: EtcdProcess, prefix: str) -> None:
    quotas, config_maps = "/api/v1/namespaces/default/resourcequotas", "/api/v1/namespaces/default/configmaps"
    quota: Object = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "10"}}}

    async def scenario() -> None:
        async with server(shared_etcd.url, prefix=prefix) as first, server(shared_etcd.url, prefix=prefix) as second:
            await ask(first, "POST", quotas, quota)
            for used in ("0", "3"):
                status = {"hard": {"configmaps": "10"}, "used": {"configmaps": used}}
                await ask(second, "PUT", f"{quotas}/q/status", {**quota, "status": status})
                await eventually(lambda used=used: has_used(first, f"{quotas}/q", used))
                requests = [
                    (first, second)[i % 2].post(config_maps, json={"metadata": {"name": f"c{used}-{i}"}}, timeout=60)
                    for i in range(CLIENTS)
                ]
                created = [response.status_code for response in await asyncio.gather(*requests)]
                assert sorted(created) == [201] * (10 - int(used)) + [403] * (CLIENTS - 10 + int(used))
                await has_used(second, f"{quotas}/q", "10")

    asyncio.run(scenario())


async def has_used(client: httpx.AsyncClient, path: str, used: str) -> None:
    assert (await ask(client, "GET", path))["status"]["used"] == {"configmaps": used}
