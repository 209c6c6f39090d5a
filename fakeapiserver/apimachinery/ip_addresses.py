"""IP addresses as controllers write them, whatever way they were written in (upstream: k8s.io/utils/net)."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network


def unzoned_address(text: str) -> IPv4Address | IPv6Address:
    """Parses an address without a zone such as fe80::1%eth0 has, as Go does. Raises ValueError."""
    if "%" in text:
        raise ValueError(text)
    return ip_address(text)


def unzoned_network(text: str) -> IPv4Network | IPv6Network:
    """Parses a subnet without a zone; bits beyond its prefix are allowed. Raises ValueError."""
    if "%" in text:
        raise ValueError(text)
    return ip_network(text, strict=False)


@lru_cache(8192)
def canonical_ip(text: str) -> str:
    """Returns the address in its shortest form, an IPv4 address in an IPv6 one as IPv4; "" for an invalid one.

    Octets may begin with zeroes, as older versions allowed.
    """
    if "%" in text:
        return ""
    try:
        address = ip_address(text)
    except ValueError:
        octets = text.split(".")
        if ":" in text or not all(octet.isdecimal() for octet in octets):
            return ""
        try:
            address = ip_address(".".join(octet.lstrip("0") or "0" for octet in octets))
        except ValueError:
            return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)


def is_ipv6(text: str) -> bool:
    """Reports whether an address in canonical form is IPv6."""
    return ":" in text
