"""The addresses of services: ServiceCIDR objects have the ranges, IPAddress objects the owner of each address.

Upstream: pkg/registry/core/service/ipallocator/{cidrallocator,ipallocator}.go, pkg/api/servicecidr/servicecidr.go.
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from random import Random
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.ip_addresses import canonical_ip, unzoned_address
from fakeapiserver.apimachinery.meta import Object, is_terminating
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.chance import UNSEEDED, Chance

SERVICE_CIDRS: Final = "servicecidrs.networking.k8s.io"
IP_ADDRESSES: Final = "ipaddresses.networking.k8s.io"
FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
_MISMATCHED: Final = "the provided network does not match the current range"
_ALLOCATED: Final = "provided IP is already allocated"
_NOT_READY: Final = "allocator not ready"
_LONGEST_IPV6_HOST: Final = 64  # bits


class AllocationError(Exception):
    """The reason why a number can't be allocated, as clients read it."""


class FullError(AllocationError):
    """No number is free."""

    def __init__(self) -> None:
        super().__init__("range is full")


class Range(Struct, frozen=True):
    """The addresses `first..last` of a network `cidr`; those from `upper` on are handed out first. `ready`: any of its
    ServiceCIDRs is."""

    cidr: str
    family: str
    network: int
    first: int
    upper: int
    last: int
    ready: bool

    def contains(self, number: int) -> bool:
        """Reports whether a number can be allocated: not the network's own address, nor the broadcast address of IPv4."""
        return self.first <= number <= self.last

    def text(self, number: int) -> str:
        return str(IPv4Address(number) if self.family == "IPv4" else IPv6Address(number))


class ClusterIPs:
    """The addresses of one server's services. An address is taken when it has an IPAddress, or is promised to a write that is
    still on its way."""

    def __init__(self, objects: ObjectReader, chance: Chance = UNSEEDED) -> None:
        self._objects = objects
        self._chance = chance
        self._promised: set[str] = set()
        self._cidrs: list[Object] | None = None
        self._ranges: list[Range] = []

    def ranges(self, family: str) -> list[Range]:
        cidrs = self._objects.list(SERVICE_CIDRS)
        if cidrs is not self._cidrs:
            self._cidrs, self._ranges = cidrs, _ranges(cidrs)
        return [ip_range for ip_range in self._ranges if ip_range.family == family]

    def promise(self, family: str, ip: str) -> None:
        """Promises an address to a write. Raises AllocationError."""
        number, name = int(ip_address(ip)), canonical_ip(ip)
        if not any(ip_range.ready and ip_range.contains(number) for ip_range in self.ranges(family)):
            raise AllocationError(_MISMATCHED)
        if self._is_taken(name):
            raise AllocationError(_ALLOCATED)
        self._promised.add(name)

    def promise_next(self, family: str) -> str:
        """Promises a random free address of a random range, as upstream does. Raises FullError."""
        ranges, source = self.ranges(family), self._chance.source("address", family)
        for ip_range in source.sample(ranges, len(ranges)):
            if not ip_range.ready:
                continue
            for number in candidates(ip_range.first, ip_range.upper, ip_range.last, source):
                ip = ip_range.text(number)
                if not self._is_taken(ip):
                    self._promised.add(ip)
                    return ip
        raise FullError

    def keep(self, ip: str) -> None:
        """Ends a promise: the address has its IPAddress now, or isn't needed any more."""
        self._promised.discard(canonical_ip(ip))

    def try_out(self, family: str, ip: str) -> None:
        """For a dry run: checks that the address is in a range, but not whether it is allocated. AllocationError."""
        ip_range = self._any(family)
        if not ip_range.contains(int(ip_address(ip))):
            message = f"the provided IP ({canonical_ip(ip)}) is not in the valid range. The range of valid IPs is {ip_range.cidr}"
            raise AllocationError(message)

    def try_out_next(self, family: str) -> str:
        """For a dry run: the address of a network itself, which is never allocated. AllocationError."""
        ip_range = self._any(family)
        return ip_range.text(ip_range.network)

    def is_in_range(self, ip: str) -> bool:
        number, family = int(ip_address(ip)), family_of(ip)
        return any(ip_range.contains(number) for ip_range in self.ranges(family))

    def _any(self, family: str) -> Range:
        ranges = self.ranges(family)
        if not ranges or not ranges[0].ready:
            raise AllocationError(_NOT_READY)
        return ranges[0]

    def _is_taken(self, name: str) -> bool:
        return name in self._promised or self._objects.get(IP_ADDRESSES, "", name) is not None


def family_of(ip: str) -> str:
    """`IPv4` or `IPv6`; `unknown` if the text isn't an address."""
    try:
        return f"IPv{unzoned_address(ip).version}"
    except ValueError:
        return "unknown"


def candidates(first: int, upper: int, last: int, source: Random) -> Iterator[int]:
    """The numbers from `first` to `last` in the order in which they are tried: the upper part, then the lower part, which is left as
    long as possible for services that request a number; each part begins at a random number."""
    for low, high in ((upper, last), (first, upper - 1)):
        size = high - low + 1
        if size > 0:
            start = source.randrange(size)
            yield from range(low + start, high + 1)
            yield from range(low, low + start)


def new_ip_address(ip: str, namespace: str, service: str) -> Object:
    """The IPAddress that says that a service has this address."""
    labels = {FAMILY: family_of(ip), MANAGED_BY: ALLOCATOR}
    parent = {"resource": "services", "namespace": namespace, "name": service}
    return {"metadata": {"name": canonical_ip(ip), "labels": labels}, "spec": {"parentRef": parent}}


def _ranges(cidrs: Sequence[Object]) -> list[Range]:
    """Each network once, in the order of the objects' names."""
    ready: dict[str, bool] = {}
    for obj in cidrs:
        for cidr in obj["spec"].get("cidrs") or ():
            ready[cidr] = ready.get(cidr, False) or _is_ready(obj)
    return [ip_range for cidr, is_ready in ready.items() if (ip_range := _range(cidr, is_ready)) is not None]


def _range(cidr: str, ready: bool) -> Range | None:
    network = ip_network(cidr, strict=False)
    if isinstance(network, IPv6Network) and network.max_prefixlen - network.prefixlen > _LONGEST_IPV6_HOST:
        return None
    base, last = int(network.network_address), int(network.broadcast_address)
    if network.version == 4:
        last -= 1
    upper = base + 1 + _offset(network.num_addresses)
    return Range(cidr, f"IPv{network.version}", base, base + 1, upper, last, ready)


def _is_ready(obj: Object) -> bool:
    """Reports whether the Ready condition is true; without the condition the range is ready, because maybe no controller runs."""
    if is_terminating(obj):
        return False
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return all(condition["status"] == "True" for condition in conditions if condition["type"] == "Ready")


def _offset(size: int) -> int:
    """The size of the part of a range that is reserved for services that request an address (calculateRangeOffset)."""
    return 0 if size <= 16 else max(16, min(256, size // 16))
