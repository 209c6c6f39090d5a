"""IP addresses as controllers write them, whatever way they were written in (upstream: k8s.io/utils/net)."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network


def unzoned_address(text: str) -> IPv4Address | IPv6Address:
    """ValueError for what is no address. Go's addresses have no zone, as fe80::1%eth0 has."""
    if "%" in text:
        raise ValueError(text)
    return ip_address(text)


def unzoned_network(text: str) -> IPv4Network | IPv6Network:
    """As unzoned_address, of a subnet, maybe with bits beyond its prefix."""
    if "%" in text:
        raise ValueError(text)
    return ip_network(text, strict=False)


@lru_cache(8192)
def canonical_ip(text: str) -> str:
    """The address in its shortest form, an IPv4 address in an IPv6 one as the IPv4 address; "" for what is none.

    Octets may begin with zeroes, as they might when this was still read from everybody."""
    if "%" in text:
        return ""
    try:
        found = ip_address(text)
    except ValueError:
        octets = text.split(".")
        if ":" in text or not all(octet.isdecimal() for octet in octets):
            return ""
        try:
            found = ip_address(".".join(octet.lstrip("0") or "0" for octet in octets))
        except ValueError:
            return ""
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found)


def is_ipv6(text: str) -> bool:
    """Of an address in canonical form."""
    return ":" in text
