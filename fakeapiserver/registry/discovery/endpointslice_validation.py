"""Validation of a slice's endpoints and ports.

Upstream: pkg/apis/discovery/validation/validation.go.
"""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import endpoint_ip_errors, ip_errors, name_errors

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MOST_ENDPOINTS: Final = 1000
_MOST_ADDRESSES: Final = 100
_MOST_PORTS: Final = 20000
_MOST_HINTS: Final = 8
_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}


def endpoint_list_errors(obj: Object) -> ErrorList:
    """The errors in each endpoint: its addresses, topology and hints."""
    errors: ErrorList = []
    endpoints = obj.get("endpoints") or ()
    if len(endpoints) > _MOST_ENDPOINTS:
        return [field.too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)]
    for i, endpoint in enumerate(endpoints):
        path = Path("endpoints").index(i)
        addresses = endpoint.get("addresses") or ()
        if not addresses:
            errors.append(field.required(path.child("addresses"), "must contain at least 1 address"))
        if len(addresses) > _MOST_ADDRESSES:
            errors.append(field.too_many(path.child("addresses"), len(addresses), _MOST_ADDRESSES))
        for j, address in enumerate(addresses):
            errors += _address_errors(address, obj.get("addressType", ""), path.child("addresses"), j)
        if "nodeName" in endpoint:
            errors += name_errors(endpoint["nodeName"], names.is_dns1123_subdomain, path.child("nodeName"))
        if "hostname" in endpoint:
            errors += name_errors(endpoint["hostname"], names.is_dns1123_label, path.child("hostname"))
        errors += _hints_errors(endpoint.get("hints") or {}, path.child("hints"))
    return errors


def _address_errors(address: str, kind: str, path: Path, number: int) -> ErrorList:
    """The errors in an address; addresses of unknown types aren't checked."""
    at = path.index(number)
    if kind == "FQDN":
        return _domain_errors(address, at)
    if kind not in _FAMILIES:
        return []
    if errors := ip_errors(address, at):
        return errors
    ip = ip_address(address)
    if kind == "IPv6" and str(ip) != address:
        return [field.invalid(at, address, f"must be in canonical form ({go_quote(str(ip))})")]
    if ip.version != _FAMILIES[kind]:
        errors.append(field.invalid(path, address, f"must be an {kind} address"))
    return errors + endpoint_ip_errors(address, at)


def _domain_errors(name: str, path: Path) -> ErrorList:
    """The errors in a domain of at least two labels, of which only the first invalid one is reported (IsFullyQualifiedDomainName)."""
    if not name:
        return [field.required(path)]
    name = name.removesuffix(".")
    if problems := names.is_dns1123_subdomain(name):
        return [field.invalid(path, name, ",".join(problems))]
    if "." not in name:
        return [field.invalid(path, name, "should be a domain with at least two segments separated by dots")]
    wrong = ((label, names.is_dns1123_label(label)) for label in name.split("."))
    return [field.invalid(path, label, ",".join(problems)) for label, problems in wrong if problems][:1]


def _hints_errors(hints: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for name, labels in (("forZones", True), ("forNodes", False)):
        hint_list = hints.get(name) or ()
        if len(hint_list) > _MOST_HINTS:
            return [*errors, field.too_many(path.child(name), len(hint_list), _MOST_HINTS)]
        errors += _hint_errors(hint_list, path.child(name), labels=labels)
    return errors


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


def port_list_errors(ports: Sequence[Object], path: Path) -> ErrorList:
    """The errors in ports: their names must be unique labels, their protocols known."""
    if len(ports) > _MOST_PORTS:
        return [field.too_many(path, len(ports), _MOST_PORTS)]
    errors: ErrorList = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at, name = path.index(i), port.get("name", "")
        if name:
            errors += name_errors(name, names.is_dns1123_label, at.child("name"))
        if name in seen:
            errors.append(field.duplicate(at.child("name"), field.json_text(name)))
        seen.add(name)
        if port.get("protocol") not in _PROTOCOLS:
            errors.append(field.not_supported(at.child("protocol"), port.get("protocol"), _PROTOCOLS))
        if "appProtocol" in port:
            errors += name_errors(port["appProtocol"], names.is_qualified_name, at.child("appProtocol"))
    return errors
