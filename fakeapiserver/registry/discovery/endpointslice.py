"""Endpoint slices.

Upstream: pkg/registry/discovery/endpointslice/strategy.go, pkg/apis/discovery/v1/defaults.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, labels, metadata
from fakeapiserver.registry.apps.label_selector import immutable_errors
from fakeapiserver.registry.core.field_formats import choice_errors
from fakeapiserver.registry.core.table_cells import UNSET, age
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_SHOWN = 3


@dataclass(kw_only=True)
class EndpointSliceStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def raises_generation(self, obj: Object, old: Object) -> bool:
        return super().raises_generation(obj, old) or labels(obj) != labels(old)

    def validate(self, obj: Object) -> ErrorList:
        return choice_errors(obj.get("addressType", ""), ("FQDN", "IPv4", "IPv6"), Path("addressType"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        path = Path("addressType")
        return self.validate(obj) + immutable_errors(obj.get("addressType"), old.get("addressType"), path)

    def table_row(self, obj: Object, now: float) -> Cells:
        ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
        addresses = [address for point in obj.get("endpoints") or () for address in point.get("addresses") or ()]
        name, kind = metadata(obj).get("name", ""), obj.get("addressType", "")
        return [name, kind, _first(ports), _first(addresses), age(obj, now)]


def _first(items: list[str]) -> str:
    more = f" + {len(items) - _SHOWN} more..." if len(items) > _SHOWN else ""
    return ",".join(items[:_SHOWN]) + more or UNSET
