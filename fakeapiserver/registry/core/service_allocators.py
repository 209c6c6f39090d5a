"""The cluster IPs and node ports that services hold; one set of allocators a server.

Upstream: pkg/registry/core/service/{ipallocator,portallocator}, pkg/registry/core/service/allocator/bitmap.go.

A number is held from the moment a service with it is stored. What is handed out for a write that is still on its way is kept
from others for a while: a write that fails or was a dry run never comes back to give it up.
"""

import random
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object, uid

NODE_PORTS: Final = range(30000, 32768)
_OUTSIDE: Final = "the provided network does not match the current range"
_PENDING: Final = 128
_ATTEMPTS: Final = 32


class FullError(Exception):
    """No number is free."""


class Allocator(Struct):
    """Numbers `first..last`, handed out at random from `dynamic` on, from below only when nothing else is left.
    `outside` words the refusal of a number that isn't in the range, `taken` that of one that is held."""

    first: int
    last: int
    dynamic: int
    outside: str
    taken: str
    full: str = "range is full"
    _random: random.Random = field(default_factory=random.Random)
    _held: dict[int, str] = field(default_factory=dict)
    _pending: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def check(self, number: int) -> str:
        """Why this number can't be had; empty if it can."""
        if not self.first <= number <= self.last:
            return self.outside
        return self.taken if number in self._held else ""

    def pick(self) -> int:
        """A number nobody holds."""
        for low, high in ((self.dynamic, self.last), (self.first, self.dynamic - 1)):
            if low <= high and (number := self._free_between(low, high)) is not None:
                self._pending[number] = None
                while len(self._pending) > _PENDING:
                    self._pending.popitem(last=False)
                return number
        raise FullError(self.full)

    def _free_between(self, low: int, high: int) -> int | None:
        for _ in range(_ATTEMPTS):
            number = self._random.randint(low, high)
            if number not in self._held and number not in self._pending:
                return number
        free = [number for number in range(low, min(high, low + 65536) + 1) if number not in self._held]
        unasked = [number for number in free if number not in self._pending] or free
        return self._random.choice(unasked) if unasked else None

    def hold(self, number: int, owner: str) -> None:
        """After a commit. The first owner stays the owner."""
        self._pending.pop(number, None)
        self._held.setdefault(number, owner)

    def release(self, number: int, owner: str) -> None:
        if self._held.get(number) == owner:
            del self._held[number]

    def release_all(self) -> None:
        self._held.clear()


class Allocators:
    """The ranges of one server, in the order of --service-cluster-ip-range: the first one's family is the default."""

    def __init__(self, service_ranges: Sequence[str]) -> None:
        networks = [ip_network(text, strict=False) for text in service_ranges]
        self.addresses = {family_of(str(network.network_address)): _addresses(network) for network in networks}
        self.default_family = next(iter(self.addresses))
        self.ports = _ports()

    def hold(self, service: Object) -> None:
        """A stored service keeps its numbers from others."""
        for allocator, number in self._numbers(service):
            allocator.hold(number, uid(service))

    def release(self, service: Object) -> None:
        """A removed service gives its numbers back."""
        for allocator, number in self._numbers(service):
            allocator.release(number, uid(service))

    def release_all(self) -> None:
        for allocator in (*self.addresses.values(), self.ports):
            allocator.release_all()

    def _numbers(self, service: Object) -> Iterator[tuple[Allocator, int]]:
        spec = service.get("spec") or {}
        for ip in spec.get("clusterIPs") or ():
            if allocator := self.addresses.get(family_of(ip)):
                yield allocator, int(ip_address(ip))
        for number in node_ports(spec):
            yield self.ports, number
        if spec.get("healthCheckNodePort"):
            yield self.ports, spec["healthCheckNodePort"]


def node_ports(spec: Object) -> list[int]:
    """The node ports of a service's ports, without those that have none."""
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def family_of(ip: str) -> str:
    """`IPv4` or `IPv6`; `unknown` for what is no address."""
    try:
        return f"IPv{ip_address(ip).version}"
    except ValueError:
        return "unknown"


def _addresses(network: IPv4Network | IPv6Network) -> Allocator:
    first, last = int(network.network_address) + 1, int(network.broadcast_address)
    if network.version == 4:
        last -= 1  # the broadcast address

    return Allocator(first, last, first + _offset(network.num_addresses), _OUTSIDE, "provided IP is already allocated")


def _ports() -> Allocator:
    first, last = NODE_PORTS[0], NODE_PORTS[-1]
    text = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
    taken = "provided port is already allocated"
    return Allocator(first, last, first + _port_offset(len(NODE_PORTS)), text, taken)


def _offset(size: int) -> int:
    """How much of a range of addresses is left to those who ask for a number (calculateRangeOffset)."""
    return 0 if size <= 16 else max(16, min(256, size // 16))


def _port_offset(size: int) -> int:
    return 0 if size <= 16 else max(16, min(128, size // 32))
