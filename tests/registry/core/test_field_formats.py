"""Formats of fields that many kinds have."""

import pytest

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.registry.core.field_formats import cidr_errors, endpoint_ip_errors, ip_errors, is_cidr

AT = Path("at")


def _details(errors: ErrorList) -> list[str]:
    return [error.detail for error in errors]


@pytest.mark.parametrize("address", ["fe80::1%eth0", "1.2.3.4%x", "::%"])
def test_addresses_have_no_zone(address: str) -> None:
    assert _details(ip_errors(address, AT)) == ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    assert _details(endpoint_ip_errors(address, AT)) == ["must be a valid IP address"]
    assert _details(cidr_errors(f"{address}/24", AT)) == [
        "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    ]
    assert not is_cidr(f"{address}/24")
