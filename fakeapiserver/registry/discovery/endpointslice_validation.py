"""What the endpoints and ports of a slice may say.

Upstream: pkg/apis/discovery/validation/validation.go.
"""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path, go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import endpoint_ip_errors, ip_errors, name_errors

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}


def endpoint_list_errors(obj: Object) -> ErrorList:
    """Of every endpoint: its addresses, where it is and who should use it."""
    errors: ErrorList = []
    for i, endpoint in enumerate(obj.get("endpoints") or ()):
        path = Path("endpoints").index(i)
        addresses = endpoint.get("addresses") or ()
        if not addresses:
            errors.append(field.required(path.child("addresses"), "must contain at least 1 address"))
        for j, address in enumerate(addresses):
            errors += _address_errors(address, obj.get("addressType", ""), path.child("addresses"), j)
        if "nodeName" in endpoint:
            errors += name_errors(endpoint["nodeName"], names.is_dns1123_subdomain, path.child("nodeName"))
        if "hostname" in endpoint:
            errors += name_errors(endpoint["hostname"], names.is_dns1123_label, path.child("hostname"))
        hints = endpoint.get("hints") or {}
        errors += _hint_errors(hints.get("forZones") or (), path.child("hints").child("forZones"), labels=True)
        errors += _hint_errors(hints.get("forNodes") or (), path.child("hints").child("forNodes"), labels=False)
    return errors


def _address_errors(address: str, kind: str, path: Path, number: int) -> ErrorList:
    """Names of hosts aren't looked at."""
    if kind not in _FAMILIES:
        return []
    at = path.index(number)
    if errors := ip_errors(address, at):
        return errors
    ip = ip_address(address)
    if kind == "IPv6" and str(ip) != address:
        return [field.invalid(at, address, f"must be in canonical form ({go_quote(str(ip))})")]
    if ip.version != _FAMILIES[kind]:
        errors.append(field.invalid(path, address, f"must be an {kind} address"))
    return errors + endpoint_ip_errors(address, at)


def _hint_errors(hints: Iterable[Object], path: Path, *, labels: bool) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, hint in enumerate(hints):
        at, name = path.index(i).child("name"), hint.get("name", "")
        if name in seen:
            errors.append(field.duplicate(at, name))
        seen.add(name)
        errors += name_errors(name, names.is_valid_label_value if labels else names.is_dns1123_subdomain, at)
    return errors


def port_list_errors(ports: Iterable[Object], path: Path) -> ErrorList:
    """Names that are labels and differ, known protocols."""
    errors: ErrorList = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at, name = path.index(i), port.get("name", "")
        if name:
            errors += name_errors(name, names.is_dns1123_label, at.child("name"))
        if name in seen:
            errors.append(field.duplicate(at.child("name"), name))
        seen.add(name)
        if port.get("protocol") not in _PROTOCOLS:
            errors.append(field.not_supported(at.child("protocol"), port.get("protocol"), _PROTOCOLS))
        if "appProtocol" in port:
            errors += name_errors(port["appProtocol"], names.is_qualified_name, at.child("appProtocol"))
    return errors
