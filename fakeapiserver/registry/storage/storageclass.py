"""Storage classes and volume attributes classes.

Upstream: pkg/registry/storage/{storageclass,volumeattributesclass}/strategy.go, pkg/apis/storage/v1/defaults.go.
"""

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.node_label_warnings import DEPRECATED_NODE_LABELS
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_ABSENT = {"provisioner": ""}


class StorageClassStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = [] if obj.get("provisioner") else [field.required("provisioner", "")]
        if obj["reclaimPolicy"] not in ("Delete", "Retain"):
            errors.append(field.not_supported("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain")))
        if obj["volumeBindingMode"] not in ("Immediate", "WaitForFirstConsumer"):
            choices = ("Immediate", "WaitForFirstConsumer")
            errors.append(field.not_supported("volumeBindingMode", obj["volumeBindingMode"], choices))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = []
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            errors += immutable_errors(obj.get(name, _ABSENT.get(name)), old.get(name, _ABSENT.get(name)), Path(name))
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        found = []
        for i, topology in enumerate(obj.get("allowedTopologies") or ()):
            for j, expression in enumerate(topology.get("matchLabelExpressions") or ()):
                if text := DEPRECATED_NODE_LABELS.get(expression.get("key", "")):
                    at = Path("allowedTopologies").index(i).child("matchLabelExpressions").index(j).child("key")
                    found.append(f"{at}: {text}")
        return found

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        annotations = metadata(obj).get("annotations") or {}
        name = str(metadata(obj).get("name", ""))
        if any(annotations.get(key) == "true" for key in _DEFAULT):
            name += " (default)"
        return [
            name,
            obj.get("provisioner", ""),
            obj.get("reclaimPolicy", "Delete"),
            obj.get("volumeBindingMode", "Immediate"),
            obj.get("allowVolumeExpansion", False),
            age(obj, now),
        ]


class VolumeAttributesClassStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = [] if obj.get("driverName") else [field.required("driverName", "")]
        if not obj.get("parameters"):
            errors.append(field.required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = [
            field.forbidden(name, f"updates to {name} are forbidden.")
            for name in ("driverName", "parameters")
            if obj.get(name) != old.get(name)
        ]
        return errors + self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), obj.get("driverName", ""), age(obj, now)]
