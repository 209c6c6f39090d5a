"""The node ports that services hold.

Upstream: pkg/registry/core/service/portallocator/{allocator,operation}.go.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.registry.core.service.ips import AllocationError, FullError, candidates

DEFAULT_RANGE: Final = range(30000, 32768)
_ALLOCATED: Final = "provided port is already allocated"
# A dry run counts on from here.
_BEFORE_DRY_RUN: Final = 32768


class NodePorts:
    """The node ports of one server, from `ports` (--service-node-port-range).

    `stored`: the stored services, if other servers write some as well: what these hold is taken, too, as soon as it is seen.
    """

    def __init__(
        self,
        ports: range = DEFAULT_RANGE,
        chance: Chance = UNSEEDED,
        stored: Callable[[], list[Object]] | None = None,
    ) -> None:
        self._ports = ports
        self._chance = chance
        self._stored = stored
        # With other servers, only what is allocated and not stored yet.
        self._held: set[int] = set()
        self._seen: list[Object] | None = None
        self._of_seen: set[int] = set()

    def _taken(self) -> set[int]:
        if self._stored is None:
            return self._held
        services = self._stored()
        if services is not self._seen:  # the same list as long as no service is written
            self._seen, self._of_seen = services, {port for service in services for port in held_ports(service)}
        return self._held | self._of_seen

    def allocate(self, port: int) -> None:
        """Allocates a port. Raises AllocationError."""
        if port not in self._ports:
            valid = f"{self._ports.start}-{self._ports.stop - 1}" if self._ports else ""
            message = f"provided port is not in the valid range. The range of valid ports is {valid}"
            raise AllocationError(message)
        if port in self._taken():
            raise AllocationError(_ALLOCATED)
        self._held.add(port)

    def allocate_next(self) -> int:
        """Allocates any free port. Raises FullError."""
        first, last, taken = self._ports.start, self._ports.stop - 1, self._taken()
        for port in candidates(first, first + _offset(len(self._ports)), last, self._chance.source("node port")):
            if port not in taken:
                self._held.add(port)
                return port
        raise FullError

    def release(self, port: int) -> None:
        self._held.discard(port)

    def keep(self, port: int) -> None:
        """Takes note that the service of an allocated port is stored."""
        if self._stored is not None:
            self._held.discard(port)

    def has(self, port: int) -> bool:
        return port in self._taken()

    def restore(self, services: Iterable[Object]) -> None:
        """Holds the ports of these services, and no others."""
        if self._stored is None:
            self._held = {port for service in services for port in held_ports(service) if port in self._ports}


class PortOperation(Struct):
    """The ports of one write: allocated at once, released when the write ends. A dry run allocates nothing."""

    ports: NodePorts
    dry_run: bool
    taken: list[int] = field(default_factory=list)
    given_up: list[int] = field(default_factory=list)

    def allocate(self, port: int) -> None:
        """AllocationError."""
        if not self.dry_run:
            self.ports.allocate(port)
        elif self.ports.has(port) or port in self.taken:
            raise AllocationError(_ALLOCATED)
        self.taken.append(port)

    def allocate_next(self) -> int:
        """Allocates any free port; a dry run invents one. Raises FullError."""
        made_up = 1 + (max(0, *self.taken) if self.taken else _BEFORE_DRY_RUN)
        port = made_up if self.dry_run else self.ports.allocate_next()
        self.taken.append(port)
        return port

    def commit(self) -> None:
        self._release(self.given_up)
        if not self.dry_run:
            for port in self.taken:
                self.ports.keep(port)

    def revert(self) -> None:
        self._release(self.taken)

    def _release(self, ports: list[int]) -> None:
        if not self.dry_run:
            for port in ports:
                self.ports.release(port)


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
