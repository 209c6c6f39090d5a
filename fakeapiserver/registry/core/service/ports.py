"""The node ports that services hold.

Upstream: pkg/registry/core/service/portallocator/{allocator,operation}.go.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.registry.core.service.ips import AllocationError, FullError, candidates
from fakeapiserver.registry.core.service.port_record import MemoryPortRecord, PortRecord, Recorded

DEFAULT_RANGE: Final = range(30000, 32768)
_ALLOCATED: Final = "provided port is already allocated"
_NO_RECORD: Final = "cannot allocate resources of type servicenodeportallocations at this time"
_MISMATCHED: Final = "the provided range does not match the current range"
# A dry run counts on from here.
_BEFORE_DRY_RUN: Final = 32768
# Ports of one service that are searched from a random port on; further ones follow the last.
_MOST_RANDOM: Final = 64


class NodePorts:
    """The node ports of one server, from `ports` (--service-node-port-range). `record`: that of all servers; None: this one is alone."""

    def __init__(
        self, ports: range = DEFAULT_RANGE, chance: Chance = UNSEEDED, record: PortRecord | None = None
    ) -> None:
        self.range = ports
        self._chance = chance
        self._own = MemoryPortRecord()
        self._own.put(0, self.range_text)
        self.record = record or self._own
        self.is_shared = record is not None

    @property
    def range_text(self) -> str:
        """The range as upstream prints it; empty if there is no port in it."""
        return f"{self.range.start}-{self.range.stop - 1}" if self.range else ""

    def bits(self, ports: Iterable[int]) -> int:
        """The record's bits for those of the ports that are in the range."""
        return sum(1 << port - self.range.start for port in {*ports} if port in self.range)

    def holds(self, bits: int, port: int) -> bool:
        """Reports whether the port is in the range and its bit is set."""
        return port in self.range and bool(bits >> port - self.range.start & 1)

    def candidates(self) -> Iterator[int]:
        """The ports in the order in which they are tried for a service that asks for none."""
        first, last = self.range.start, self.range.stop - 1
        return candidates(first, first + _offset(len(self.range)), last, self._chance.source("node port"))

    async def hold(self, ports: Iterable[int]) -> None:
        """Marks ports as allocated, whether they are or not."""
        await self._change(held=self.bits(ports))

    async def release(self, ports: Iterable[int]) -> None:
        """Marks ports as free."""
        await self._change(released=self.bits(ports))

    async def _change(self, held: int = 0, released: int = 0) -> None:
        while True:
            recorded = await self.record.read()
            bits = recorded.bits & ~released | held
            if recorded.port_range != self.range_text or bits == recorded.bits:
                return
            if await self.record.replace(recorded, bits, self.range_text):
                return

    def restore(self, services: Iterable[Object]) -> None:
        """Holds the ports of these services, and no others, unless the record is shared: then it is in the storage, too."""
        if not self.is_shared:
            self._own.put(self.bits(port for service in services for port in held_ports(service)), self.range_text)


class PortOperation(Struct):
    """The ports of one write: planned by `allocate` and `allocate_next` from a state of the record, allocated by `take`, and
    released when the write ends. A dry run allocates nothing."""

    ports: NodePorts
    dry_run: bool
    recorded: Recorded = Recorded()
    taken: dict[int, None] = field(default_factory=dict)  # in order
    given_up: list[int] = field(default_factory=list)
    is_recorded: bool = False
    highest: int = 0
    following: Iterator[int] = iter(())

    async def begin(self) -> None:
        """Reads the record, and forgets what was planned before."""
        self.taken.clear()
        self.given_up.clear()
        self.highest = 0
        self.recorded = await self.ports.record.read()

    def allocate(self, port: int) -> None:
        """AllocationError."""
        if not self.dry_run:
            self._check()
            if port not in self.ports.range:
                valid = self.ports.range_text
                raise AllocationError(f"provided port is not in the valid range. The range of valid ports is {valid}")
        if self._is_taken(port):
            raise AllocationError(_ALLOCATED)
        self._add(port)

    def _add(self, port: int) -> None:
        self.taken[port] = None
        self.highest = max(self.highest, port)

    def allocate_next(self) -> int:
        """Allocates any free port; a dry run invents one. Raises AllocationError."""
        if self.dry_run:
            port = 1 + (self.highest if self.taken else _BEFORE_DRY_RUN)
        else:
            self._check()
            if len(self.taken) <= _MOST_RANDOM:
                self.following = self.ports.candidates()
            port = next((port for port in self.following if not self._is_taken(port)), 0)
            if not port:
                raise FullError
        self._add(port)
        return port

    def _check(self) -> None:
        if not self.recorded.revision:
            raise AllocationError(_NO_RECORD)
        if self.recorded.port_range != self.ports.range_text:
            raise AllocationError(_MISMATCHED)

    def _is_taken(self, port: int) -> bool:
        return port in self.taken or self.ports.holds(self.recorded.bits, port)

    async def take(self) -> bool:
        """Writes the planned ports to the record. Returns False if that has changed: the plan must be made again."""
        if self.dry_run or not self.taken:
            return True
        bits = self.recorded.bits | self.ports.bits(self.taken)
        self.is_recorded = await self.ports.record.replace(self.recorded, bits, self.ports.range_text)
        return self.is_recorded

    async def commit(self) -> None:
        if self.given_up and not self.dry_run:
            await self.ports.release(self.given_up)

    async def revert(self) -> None:
        if self.is_recorded:
            self.is_recorded = False
            await self.ports.release(self.taken)


def node_ports(spec: Object) -> list[int]:
    """The node ports of a service's ports, without those that have none."""
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def needs_health_check(spec: Object) -> bool:
    """Upstream: pkg/api/service/util.go, NeedsHealthCheck."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def held_ports(service: Object) -> list[int]:
    """All ports that a stored service holds."""
    spec = service.get("spec") or {}
    health_check = spec.get("healthCheckNodePort", 0) if needs_health_check(spec) else 0
    return [*node_ports(spec), *([health_check] if health_check else [])]


def _offset(size: int) -> int:
    """The size of the part of the range that is reserved for services that request a port (calculateRangeOffset)."""
    return 0 if size <= 16 else max(16, min(128, size // 32))
