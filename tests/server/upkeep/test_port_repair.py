"""The repair of a record of node ports that servers share."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.clock import SystemClock
from fakeapiserver.registry.core.service.port_record import MemoryPortRecord
from fakeapiserver.registry.core.service.ports import NodePorts
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep.port_repair import NodePortRepair, ports_of_service

_RANGE: Final = range(30000, 30010)
_SERVICES: Final = GroupResource("", "services")


def service(name: str, port: int) -> Object:
    ports = [{"port": 80, "nodePort": port}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"type": "NodePort", "ports": ports}}


@asynccontextmanager
async def api_server(ports: Sequence[int] = ()) -> AsyncIterator[APIServer]:
    """A server with services that have these ports, be they allocated or not."""
    api = APIServer(Config(controllers=(), service_node_port_range=range(30000, 30064)))
    await api.start()
    try:
        for i, port in enumerate(ports):
            api.scopes.services.allocations[_SERVICES].restore([])
            await api.writer.create("services", service(f"s{i}", port))
        yield api
    finally:
        await api.stop()


def repair_of(api: APIServer, record: MemoryPortRecord) -> NodePortRepair:
    return NodePortRepair(api.scopes, NodePorts(_RANGE, record=record), api.writer, SystemClock())


def record_of(*ports: int, port_range: str = "30000-30009") -> MemoryPortRecord:
    first, record = int(port_range.partition("-")[0]), MemoryPortRecord()
    record.put(sum(1 << port - first for port in ports), port_range)
    return record


async def ports_in(record: MemoryPortRecord) -> list[int]:
    recorded = await record.read()
    assert recorded.port_range == "30000-30009"
    return [30000 + i for i in range(64) if recorded.bits >> i & 1]


@pytest.mark.parametrize(
    ("ports", "recorded", "repaired", "reported"),
    [
        ([30001], [30001], [30001], []),
        ([30001], [], [30001], [("PortNotAllocated", "Port 30001 is not allocated; repairing")]),
        (
            [30002, 30002],
            [30002],
            [30002],
            [("PortAlreadyAllocated", "Port 30002 was assigned to multiple services; please recreate service")],
        ),
        (
            [30020],
            [],
            [],
            [("PortOutOfRange", "Port 30020 is not within the port range 30000-30009; please recreate service")],
        ),
    ],
)
def test_the_record_gets_the_ports_of_services(
    ports: list[int], recorded: list[int], repaired: list[int], reported: list[tuple[str, str]]
) -> None:
    async def scenario() -> None:
        async with api_server(ports) as api:
            record = record_of(*recorded)
            repair = repair_of(api, record)
            for _ in range(2):  # an event comes once
                await repair.repair()
                assert await ports_in(record) == repaired
            events = [event for event in api.objects.list("events") if event["reason"].startswith("Port")]
            assert [(event["reason"], event["message"]) for event in events] == reported

    asyncio.run(scenario())


def test_a_missing_record_is_made_and_one_of_another_range_is_changed() -> None:
    async def scenario() -> None:
        async with api_server([30005]) as api:
            for record in (MemoryPortRecord(), record_of(30005, port_range="29990-30020")):
                await repair_of(api, record).repair()
                assert await ports_in(record) == [30005]

    asyncio.run(scenario())


def test_a_port_of_no_service_is_free_after_three_looks() -> None:
    async def scenario() -> None:
        async with api_server() as api:
            record = record_of(30003)
            repair = repair_of(api, record)
            kept = []
            for _ in range(4):
                await repair.repair()
                kept.append(await ports_in(record))
            assert kept == [[30003], [30003], [30003], []]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("ports", "health_check", "expected"),
    [
        ([(30001, "TCP"), (30001, "UDP")], 0, [30001]),
        ([(30001, "TCP"), (30001, "TCP")], 0, [30001, 30001]),
        ([(0, "TCP"), (30002, "UDP")], 0, [30002]),
        ([(30001, "TCP")], 30003, [30001, 30003]),
        ([(30001, "TCP")], 30001, [30001, 30001]),
        ([(30001, "UDP")], 30001, [30001]),
    ],
)
def test_ports_are_counted_by_protocol(ports: list[tuple[int, str]], health_check: int, expected: list[int]) -> None:
    spec = {
        "ports": [{"port": 80, "nodePort": port, "protocol": protocol} for port, protocol in ports],
        "healthCheckNodePort": health_check,
    }
    assert [*ports_of_service({"spec": spec})] == expected
