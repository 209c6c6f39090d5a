"""Endpoint slices.

Upstream: pkg/registry/discovery/endpointslice/strategy.go, pkg/apis/discovery/v1/defaults.go.
"""

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, labels, metadata
from fakeapiserver.registry.core.field_formats import choice_errors
from fakeapiserver.registry.core.service.ip_warnings import ip_warnings
from fakeapiserver.registry.discovery.endpointslice_validation import endpoint_list_errors, port_list_errors
from fakeapiserver.registry.generic.field_paths import drop_fields
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import UNSET, age

_SHOWN = 3
# Fields that v1 doesn't have any more.
_DROPPED = (("endpoints", "*", "deprecatedTopology"),)
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSliceStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def prepare_for_create(self, obj: Object) -> None:
        drop_fields(obj, _DROPPED)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        if any("deprecatedTopology" in endpoint for endpoint in obj.get("endpoints") or ()):
            # Upstream counts what it drops then.
            drop_fields(obj, _DROPPED)
            metadata(obj)["generation"] = metadata(old).get("generation", 0) + 1

    def raises_generation(self, obj: Object, old: Object) -> bool:
        return super().raises_generation(obj, old) or labels(obj) != labels(old)

    def takes_loose_addresses(self, obj: Object) -> bool:
        """True unless the addresses are IPv6, which had strict rules from the beginning."""
        return obj.get("addressType") != "IPv6"

    def warnings_on_create(self, obj: Object) -> list[str]:
        warnings = ["spec.addressType: FQDN endpoints are deprecated"] if obj.get("addressType") == "FQDN" else []
        return warnings + _address_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return _address_warnings(obj)

    def validate(self, obj: Object) -> ErrorList:
        return _common_errors(obj) + endpoint_list_errors(obj)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        # Endpoints that were accepted before stay accepted.
        same = obj.get("endpoints") == old.get("endpoints")
        errors = _common_errors(obj) + ([] if same else endpoint_list_errors(obj))
        return errors + immutable_errors(obj.get("addressType"), old.get("addressType"), Path("addressType"))

    def table_row(self, obj: Object, now: float) -> Cells:
        ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
        addresses = [address for point in obj.get("endpoints") or () for address in point.get("addresses") or ()]
        name, kind = metadata(obj).get("name", ""), obj.get("addressType", "")
        return [name, kind, _first(ports), _first(addresses), age(obj, now)]


def _common_errors(obj: Object) -> ErrorList:
    errors = choice_errors(obj.get("addressType", ""), ("FQDN", "IPv4", "IPv6"), Path("addressType"))
    return errors + port_list_errors(obj.get("ports") or (), Path("ports"))


def _address_warnings(obj: Object) -> list[str]:
    if labels(obj).get(_MANAGED_BY) in _CONTROLLERS:
        return []
    warnings: list[str] = []
    for i, endpoint in enumerate(obj.get("endpoints") or ()):
        for j, address in enumerate(endpoint.get("addresses") or ()):
            warnings += ip_warnings(address, Path("endpoints").index(i).child("addresses").index(j))
    return warnings


def _first(items: list[str]) -> str:
    more = f" + {len(items) - _SHOWN} more..." if len(items) > _SHOWN else ""
    return ",".join(items[:_SHOWN]) + more or UNSET
