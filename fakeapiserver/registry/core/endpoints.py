"""Endpoints, the old way to tell where a service's traffic goes.

Upstream: pkg/registry/core/endpoint/strategy.go, pkg/printers/internalversion/printers.go (formatEndpoints).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.table_cells import NONE, age
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_SHOWN: Final = 3


@dataclass(kw_only=True)
class EndpointsStrategy(Strategy):
    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), _endpoints(obj), age(obj, now)]


def _endpoints(obj: Object) -> str:
    if not obj.get("subsets"):
        return NONE
    found = [address for subset in obj["subsets"] for address in _addresses(subset)]
    shown = ",".join(found[:_SHOWN])
    return f"{shown} + {len(found) - _SHOWN} more..." if len(found) > _SHOWN else shown


def _addresses(subset: Object) -> Iterator[str]:
    """Each port with each address; addresses alone where there are no ports."""
    addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
    if not subset.get("ports"):
        yield from addresses
    for port in subset.get("ports") or ():
        for ip in addresses:
            yield f"[{ip}]:{port.get('port', 0)}" if ":" in ip else f"{ip}:{port.get('port', 0)}"
