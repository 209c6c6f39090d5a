"""Addresses and subnets that are accepted, and what is said of them."""

import pytest

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.registry.core.service.ip_warnings import cidr_warnings, ip_warnings

AT = Path("at")


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        ("10.0.0.1", ""),
        ("2001:db8::1", ""),
        ("010.0.0.1", 'non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"'),
        ("::ffff:10.0.0.1", 'non-standard IP address "::ffff:10.0.0.1" is invalid: use "10.0.0.1"'),
        ("2001:DB8::1", 'IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'),
        ("no address", ""),
    ],
)
def test_addresses(value: str, warning: str) -> None:
    assert list(ip_warnings(value, AT)) == ([f"at: {warning}"] if warning else [])


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        ("10.0.0.0/8", ""),
        ("10.0.0.0/08", 'non-standard CIDR value "10.0.0.0/08" is invalid: use "10.0.0.0/8"'),
        (
            "10.0.0.1/8",
            'CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
        ),
        ("2001:DB8::/32", 'IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")'),
        ("no subnet", ""),
    ],
)
def test_subnets(value: str, warning: str) -> None:
    assert list(cidr_warnings(value, AT)) == ([f"at: {warning}"] if warning else [])
