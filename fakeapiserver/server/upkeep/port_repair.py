"""The record of node ports that servers share has the ports of all services, and no others for long.

Upstream: pkg/registry/core/service/portallocator/controller/repair.go.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.clock import Timers
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.core.service.port_record import Recorded
from fakeapiserver.registry.core.service.ports import NodePorts
from fakeapiserver.server.upkeep.loopback_writer import LoopbackWriter
from fakeapiserver.server.upkeep.repair_events import RepairEvents
from fakeapiserver.storage.interface import StorageError

_SERVICES: Final = GroupResource("", "services")
_INTERVAL: Final = 180.0  # seconds
# A port that no service has is looked at so often before it is free: its service may be about to be stored.
_LOOKS: Final = 3
_ACTION: Final = "PortAllocation"
log = logging.getLogger(__name__)


class NodePortRepair:
    def __init__(self, scopes: RequestScopes, ports: NodePorts, writer: LoopbackWriter, clock: Timers) -> None:
        self._scopes = scopes
        self._ports = ports
        self._events = RepairEvents("portallocator-repair-controller", writer, clock)
        # A port that no service has -> how often it is still looked at.
        self._leaks: dict[int, int] = {}

    async def run(self) -> None:
        """Repairs the record each interval, until it is cancelled. The interval is the machine's, as other servers have theirs."""
        while True:
            await asyncio.sleep(_INTERVAL)
            try:
                await self.repair()
            except (StorageError, StatusError) as error:
                log.warning("the record of node ports was not repaired: %s", error)

    async def repair(self) -> None:
        """Writes what the record should be. Raises StorageError, StatusError."""
        while True:
            recorded = await self._ports.record.read()
            used = await self._used(set(_ports_of(recorded)))
            if await self._ports.record.replace(recorded, self._ports.bits(used), self._ports.range_text):
                return

    async def _used(self, recorded: set[int]) -> set[int]:
        """The ports of all services, and those that may be about to be a service's."""
        store = self._scopes.store_for(_SERVICES)
        if store is None:
            return recorded
        used: set[int] = set()
        for item in (await store.storage.list(store.prefix)).items:
            service = store.decode(item.value)
            for port in ports_of_service(service):
                problem = self._problem(port, used, recorded)
                if problem is not None:
                    await self._events.warn(service, problem[0], _ACTION, problem[1])
                used.add(port)
                self._leaks.pop(port, None)
        for port in recorded - used:
            left = self._leaks.get(port, _LOOKS)
            if left > 0:
                self._leaks[port] = left - 1
                used.add(port)
            else:
                log.warning("the node port %d appears to have leaked: cleaning up", port)
                del self._leaks[port]
        return used

    def _problem(self, port: int, used: set[int], recorded: set[int]) -> tuple[str, str] | None:
        """The reason and the note of an event about the port of a service, if something is wrong with it."""
        if port not in self._ports.range:
            valid = self._ports.range_text
            return (
                "PortOutOfRange",
                f"Port {port} is not within the port range {valid}; please recreate service",
            )
        if port in used:
            return "PortAlreadyAllocated", f"Port {port} was assigned to multiple services; please recreate service"
        if port not in recorded:
            return "PortNotAllocated", f"Port {port} is not allocated; repairing"
        return None


def _ports_of(recorded: Recorded) -> Iterator[int]:
    """The ports of a record, whose range may be another server's."""
    first = int(recorded.port_range.partition("-")[0] or 0)
    return (first + i for i in range(recorded.bits.bit_length()) if recorded.bits >> i & 1)


def ports_of_service(service: Object) -> Iterator[int]:
    """The ports of a service: one that several protocols share once, one that a protocol has twice also twice."""
    spec = service["spec"]
    pairs = [(port.get("nodePort", 0), port.get("protocol", "TCP")) for port in spec.get("ports") or ()]
    pairs.append((spec.get("healthCheckNodePort", 0), "TCP"))
    seen: dict[int, set[str]] = {}
    for port, protocol in pairs:
        protocols = seen.setdefault(port, set())
        if port and (not protocols or protocol in protocols):
            yield port
        protocols.add(protocol)
