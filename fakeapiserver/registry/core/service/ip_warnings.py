"""Warnings about addresses that are accepted.

Upstream: k8s.io/apimachinery/pkg/util/validation/ip.go (GetWarningsForIP, GetWarningsForCIDR).
"""

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.ip_addresses import unzoned_address, unzoned_network
from fakeapiserver.apimachinery.message import Message


def ip_warnings(value: str, path: Path) -> Iterator[str]:
    """Warns of an address with leading zeros, an IPv4-mapped address, or an IPv6 address that isn't in canonical form."""
    preferred = _plain(value)
    if preferred:
        yield f"{path}: non-standard IP address {go_quote(value)} " + _use(preferred)
    elif ":" in value and (canonical := _canonical(value)) != value and canonical:
        yield f"{path}: IPv6 address {go_quote(value)} should be in RFC 5952 canonical format ({go_quote(canonical)})"


def cidr_warnings(value: str, path: Path) -> Iterator[str]:
    """Warns of a subnet by the rules of `ip_warnings`, and if its address has bits beyond the prefix."""
    address, _, length = value.partition("/")
    preferred = _plain(address)
    try:
        mapped = 96 if preferred and ":" in address else 0
        network = unzoned_network(f"{preferred or address}/{int(length) - mapped}")
    except ValueError:
        return
    host, odd = ip_address(preferred or address), preferred or (len(length) > 1 and length[0] == "0")
    if host != network.network_address:
        choices = f"{go_quote(str(network))} or {go_quote(f'{host}/{host.max_prefixlen}')}"
        yield f"{path}: CIDR value {go_quote(value)} is ambiguous in this context (should be {choices}?)"
    if odd:
        yield f"{path}: non-standard CIDR value {go_quote(value)} " + _use(str(network))
    elif host == network.network_address and ":" in address and str(network) != value:
        yield f"{path}: IPv6 CIDR value {go_quote(value)} should be in RFC 5952 canonical format ({go_quote(str(network))})"


def _plain(value: str) -> str:
    """The plain form of an IPv4 address with leading zeros or mapped to IPv6; empty for any other text."""
    if ":" in value:
        try:
            address = IPv6Address(value)
        except ValueError:
            return ""
        return str(address.ipv4_mapped) if address.ipv4_mapped else ""
    parts = value.split(".")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and int(part) < 256 for part in parts):
        return ""
    plain = ".".join(str(int(part)) for part in parts)
    return plain if plain != value else ""


def _canonical(value: str) -> str:
    try:
        return str(unzoned_address(value))
    except ValueError:
        return ""


def _use(preferred: str) -> Message:
    return Message(f"is invalid: use {go_quote(preferred)}", "ip.non-standard", go_quote(preferred))
