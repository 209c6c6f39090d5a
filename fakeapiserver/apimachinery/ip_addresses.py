"""IP addresses as controllers write them, whatever way they were written in (upstream: k8s.io/utils/net)."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


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
