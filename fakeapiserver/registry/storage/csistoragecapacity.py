"""Storage capacities, the free storage of a topology segment.

Upstream: pkg/registry/storage/csistoragecapacity/strategy.go, pkg/apis/storage/validation/validation.go.
"""

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import name_errors, non_negative_amount_errors
from fakeapiserver.registry.core.node.label_warnings import node_selector_warnings
from fakeapiserver.registry.generic.label_selector import (
    immutable_errors,
    immutable_selector_errors,
    label_selector_errors,
)
from fakeapiserver.registry.generic.strategy import Strategy


class CSIStorageCapacityStrategy(Strategy, kw_only=True):
    def warnings_on_create(self, obj: Object) -> list[str]:
        return node_selector_warnings(obj.get("nodeTopology"), Path("nodeTopology"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def validate(self, obj: Object) -> ErrorList:
        errors = label_selector_errors(obj.get("nodeTopology"), Path("nodeTopology"))
        name = obj.get("storageClassName", "")
        errors += name_errors(name, names.is_dns1123_subdomain, Path("storageClassName"))
        if (capacity := obj.get("capacity")) is not None:
            errors += non_negative_amount_errors(capacity, Path("capacity"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = immutable_selector_errors(obj.get("nodeTopology"), old.get("nodeTopology"), Path("nodeTopology"))
        now, then = obj.get("storageClassName", ""), old.get("storageClassName", "")
        return errors + immutable_errors(now, then, Path("storageClassName"))
