"""Volume attributes classes: the mutable parameters of volumes.

Upstream: pkg/registry/storage/volumeattributesclass/strategy.go, pkg/apis/storage/validation/validation.go.
"""

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.storage.parameters import parameter_errors, provisioner_errors

_DEFAULT_ATTRIBUTES = "volumeattributesclass.alpha.kubernetes.io/is-default-class"


class VolumeAttributesClassStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        errors = provisioner_errors(obj.get("driverName", ""), Path("driverName"))
        errors += parameter_errors(obj.get("parameters") or {}, Path("parameters"))
        if not obj.get("parameters"):
            errors.append(field.required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        return [
            field.forbidden(name, f"updates to {name} are forbidden.")
            for name in ("driverName", "parameters")
            if obj.get(name) != old.get(name)
        ]

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        name = str(metadata(obj).get("name", ""))
        annotations = metadata(obj).get("annotations") or {}
        if annotations.get(_DEFAULT_ATTRIBUTES) == "true" and not self.features.at_least("v1.34"):
            name += " (default)"
        return [name, obj.get("driverName", ""), age(obj, now)]
