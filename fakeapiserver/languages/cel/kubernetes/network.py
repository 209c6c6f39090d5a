"""IP addresses and CIDRs (upstream: k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go)."""

import ipaddress
from typing import ClassVar, Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.address import address_problem
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.languages.cel.errors import CelError, no_such_overload
from fakeapiserver.languages.cel.kubernetes.shared import Function, is_parsable
from fakeapiserver.languages.cel.types import Type, struct


class IP(Struct, frozen=True):
    cel_type: ClassVar[Type] = struct("net.IP")
    address: ipaddress.IPv4Address | ipaddress.IPv6Address

    def cel_size(self) -> int:
        """Bytes, as upstream's Sizer."""
        return self.address.max_prefixlen // 8


class CIDR(Struct, frozen=True):
    cel_type: ClassVar[Type] = struct("net.CIDR")
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    bits: int

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.bits), strict=False)

    def cel_size(self) -> int:
        """Whole bytes of the prefix."""
        return -(-self.bits // 8)


def _ip(text: str) -> IP:
    if problem := address_problem(text):
        shown = go_quote(text)
        raise CelError(f"IP Address {shown} parse error during conversion from string: ParseAddr({shown}): {problem}")
    if "%" in text:
        raise CelError(f"IP address {go_quote(text)} with zone value is not allowed")
    address = ipaddress.ip_address(text)
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IP(address)


def _is_mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


_CIDR_ERROR: Final = "network address parse error during conversion from string: "


def _cidr(text: str) -> CIDR:
    if problem := _prefix_problem(text):
        raise CelError(f"{_CIDR_ERROR}{_CIDR_ERROR}netip.ParsePrefix({go_quote(text)}): {problem}")
    host, _, bits = text.rpartition("/")
    address = ipaddress.ip_address(host)
    if _is_mapped(address):
        raise CelError(f"{_CIDR_ERROR}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return CIDR(address, int(bits))


def _prefix_problem(text: str) -> str:
    host, slash, bits = text.rpartition("/")
    if not slash:
        return "no '/'"
    if problem := address_problem(host):
        return f"ParseAddr({go_quote(host)}): {problem}"
    if "%" in host:
        return "IPv6 zones cannot be present in a prefix"
    if (len(bits) > 1 and not "1" <= bits[0] <= "9") or not (bits.isascii() and bits.isdigit()):
        return f"bad bits after slash: {go_quote(bits)}"
    return "" if len(bits) <= 3 and int(bits) <= (128 if ":" in host else 32) else "prefix length out of range"


def _contains_ip(a: CIDR, b: IP) -> bool:
    return a.address.version == b.address.version and b.address in a.network


def _contains_ip_text(a: CIDR, b: str) -> bool:
    try:
        return _contains_ip(a, _ip(b))
    except CelError:
        raise no_such_overload() from None


def _contains_cidr(a: CIDR, b: CIDR) -> bool:
    return a.address.version == b.address.version and a.bits <= b.bits and b.address in a.network


def _contains_cidr_text(a: CIDR, b: str) -> bool:
    return _contains_cidr(a, _cidr(b))


def _is_global(a: IP) -> bool:
    broadcast = str(a.address) == "255.255.255.255"
    plain = a.address.is_unspecified or a.address.is_loopback or a.address.is_multicast or _link_local(a)
    return not (broadcast or plain)


def _link_local(a: IP) -> bool:
    return a.address in ipaddress.ip_network("169.254.0.0/16" if a.address.version == 4 else "fe80::/10")


def _link_local_multicast(a: IP) -> bool:
    if a.address.version == 4:
        return a.address in ipaddress.ip_network("224.0.0.0/24")
    return a.address.packed[0] == 0xFF and a.address.packed[1] & 0x0F == 0x02


NETWORKS: Final[dict[str, Function]] = {
    "string_to_ip": _ip,
    "is_ip": is_parsable(_ip),
    "ip_is_canonical": lambda a: str(_ip(a).address) == a,
    "ip_to_string": lambda a: str(a.address),
    "ip_family": lambda a: a.address.version,
    "ip_is_unspecified": lambda a: a.address.is_unspecified,
    "ip_is_loopback": lambda a: a.address.is_loopback,
    "ip_is_link_local_multicast": _link_local_multicast,
    "ip_is_link_local_unicast": _link_local,
    "ip_is_global_unicast": _is_global,
    "string_to_cidr": _cidr,
    "is_cidr": is_parsable(_cidr),
    "cidr_to_string": lambda a: f"{a.address}/{a.bits}",
    "cidr_ip": lambda a: IP(a.address),
    "cidr_prefix_length": lambda a: a.bits,
    "cidr_masked": lambda a: CIDR(a.network.network_address, a.bits),
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr": _contains_cidr,
    "cidr_contains_cidr_string": _contains_cidr_text,
}
