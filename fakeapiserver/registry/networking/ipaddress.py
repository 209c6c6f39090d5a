"""IP addresses in use by services, and the ranges that they come from.

Upstream: pkg/registry/networking/{ipaddress,servicecidr}/strategy.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.table_cells import NONE, age
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class IPAddressStrategy(Strategy):
    def validate(self, obj: Object) -> ErrorList:
        path = Path("spec").child("parentRef")
        parent = obj["spec"].get("parentRef")
        if parent is None:
            return [field.required(path)]
        return [field.required(path.child(name)) for name in ("resource", "name") if not parent.get(name)]

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        # One more cell than columns: so does upstream.
        return [metadata(obj).get("name", ""), _parent((obj.get("spec") or {}).get("parentRef")), age(obj, now)]


def _parent(parent: Object | None) -> str:
    if parent is None:
        return NONE
    group = f".{parent['group']}" if parent.get("group") else ""
    namespace = f"/{parent['namespace']}" if parent.get("namespace") else ""
    return f"{parent.get('resource', '')}{group}".lower() + f"{namespace}/{parent.get('name', '')}"


@dataclass(kw_only=True)
class ServiceCIDRStrategy(Strategy):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        if obj["spec"].get("cidrs"):
            return []
        return [field.required(Path("spec").child("cidrs"), "at least one CIDR required")]

    def table_row(self, obj: Object, now: float) -> Cells:
        cidrs = (obj.get("spec") or {}).get("cidrs") or ()
        return [metadata(obj).get("name", ""), ",".join(cidrs), age(obj, now)]
