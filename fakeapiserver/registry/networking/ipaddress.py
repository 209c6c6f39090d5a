"""IP addresses in use by services.

Upstream: pkg/registry/networking/ipaddress/strategy.go, pkg/apis/networking/validation/validation.go.
"""

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import canonical_ip_errors, name_errors, required_segment_errors
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age


def is_ip_address(name: str, prefix: bool) -> list[str]:
    """The errors in an IPAddress's name, which is the address; a prefix is checked like a whole name."""
    return [error.detail for error in canonical_ip_errors(name, Path("name"))]


class IPAddressStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        path = Path("spec").child("parentRef")
        parent = obj["spec"].get("parentRef")
        if parent is None:
            return [field.required(path)]
        errors: ErrorList = []
        if group := parent.get("group"):
            errors += name_errors(group, names.is_dns1123_subdomain, path.child("group"))
        for name in ("resource", "name"):
            errors += required_segment_errors(parent.get(name, ""), path.child(name))
        if namespace := parent.get("namespace"):
            errors += name_errors(namespace, names.path_segment_name, path.child("namespace"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        now, then = obj["spec"].get("parentRef"), old["spec"].get("parentRef")
        if now == then:
            return []
        go_parent = None if now is None else internal_form(now, "ParentReference")
        return [field.invalid("spec.parentRef", go_parent, IMMUTABLE)]

    def table_row(self, obj: Object, now: float) -> Cells:
        # One more cell than columns: so does upstream.
        return [metadata(obj).get("name", ""), _parent((obj.get("spec") or {}).get("parentRef")), age(obj, now)]


def _parent(parent: Object | None) -> str:
    if parent is None:
        return NONE
    group = f".{parent['group']}" if parent.get("group") else ""
    namespace = f"/{parent['namespace']}" if parent.get("namespace") else ""
    return f"{parent.get('resource', '')}{group}".lower() + f"{namespace}/{parent.get('name', '')}"
