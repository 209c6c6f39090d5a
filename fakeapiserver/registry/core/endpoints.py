"""Endpoints, the older form of a service's EndpointSlices.

Upstream: pkg/registry/core/endpoint/strategy.go, pkg/printers/internalversion/printers.go (formatEndpoints).
"""

from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, labels, metadata
from fakeapiserver.registry.core.field_formats import (
    endpoint_ip_errors,
    ip_errors,
    name_errors,
    port_errors,
    protocol_errors,
)
from fakeapiserver.registry.core.service.ip_warnings import ip_warnings
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age

_SHOWN: Final = 3
_PATH: Final = Path("subsets")


class EndpointsStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def validate(self, obj: Object) -> ErrorList:
        return [e for i, subset in enumerate(obj.get("subsets") or ()) for e in _subset_errors(subset, _PATH.index(i))]

    def warnings_on_create(self, obj: Object) -> list[str]:
        if labels(obj).get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
            return []
        warnings: list[str] = []
        for i, subset in enumerate(obj.get("subsets") or ()):
            for name in ("addresses", "notReadyAddresses"):
                for j, address in enumerate(subset.get(name) or ()):
                    at = Path("subsets").index(i).child(name).index(j).child("ip")
                    warnings += ip_warnings(address.get("ip", ""), at)
        return warnings

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if (obj.get("subsets") or []) == (old.get("subsets") or []):
            return []
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), _endpoints(obj), age(obj, now)]


def _endpoints(obj: Object) -> str:
    if not obj.get("subsets"):
        return NONE
    addresses = [address for subset in obj["subsets"] for address in _addresses(subset)]
    cell = ",".join(addresses[:_SHOWN])
    return f"{cell} + {len(addresses) - _SHOWN} more..." if len(addresses) > _SHOWN else cell


def _addresses(subset: Object) -> Iterator[str]:
    """Each address with each port, or alone if there are no ports."""
    addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
    if not subset.get("ports"):
        yield from addresses
    for port in subset.get("ports") or ():
        for ip in addresses:
            yield f"[{ip}]:{port.get('port', 0)}" if ":" in ip else f"{ip}:{port.get('port', 0)}"


def _subset_errors(subset: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        errors.append(field.required(path, "must specify `addresses` or `notReadyAddresses`"))
    for key in ("addresses", "notReadyAddresses"):
        for i, address in enumerate(subset.get(key) or ()):
            errors += _address_errors(address, path.child(key).index(i))
    ports = subset.get("ports") or ()
    for i, port in enumerate(ports):
        at, name = path.child("ports").index(i), port.get("name", "")
        if name:
            errors += name_errors(name, names.is_dns1123_label, at.child("name"))
        elif len(ports) > 1:
            errors.append(field.required(at.child("name")))
        errors += port_errors(port.get("port", 0), at.child("port"))
        errors += protocol_errors(port.get("protocol", ""), at.child("protocol"))
        if "appProtocol" in port:
            errors += name_errors(port["appProtocol"], names.is_qualified_name, at.child("appProtocol"))
    return errors


def _address_errors(address: Object, path: Path) -> ErrorList:
    ip = address.get("ip", "")
    errors = ip_errors(ip, path.child("ip"))
    if address.get("hostname"):
        errors += name_errors(address["hostname"], names.is_dns1123_label, path.child("hostname"))
    if "nodeName" in address:
        errors += name_errors(address["nodeName"], names.is_dns1123_subdomain, path.child("nodeName"))
    return errors + endpoint_ip_errors(ip, path.child("ip"))
