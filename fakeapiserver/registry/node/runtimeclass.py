"""Runtime classes.

Upstream: pkg/registry/node/runtimeclass/strategy.go.
"""

from typing import Final

from fakeapiserver.admission.tolerations import toleration_errors
from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import required_label_errors
from fakeapiserver.registry.core.node.label_warnings import DEPRECATED_NODE_LABELS
from fakeapiserver.registry.core.pod.resource_requirements_validation import resource_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_SCHEDULING: Final = Path("scheduling")
_TOLERATIONS: Final = _SCHEDULING.child("tolerations")
_TOLERATIONS_BEFORE: Final = _TOLERATIONS.child("tolerations")
_TOLERATION: Final = ("key", "operator", "value", "effect")


class RuntimeClassStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        errors = required_label_errors(obj.get("handler", ""), Path("handler"))
        if (overhead := obj.get("overhead")) is not None:
            # As if it were a container's limits.
            errors += resource_errors({"limits": overhead.get("podFixed")}, Path("overhead"))
        if (scheduling := obj.get("scheduling")) is not None:
            path = _TOLERATIONS if self.features.at_least("v1.35") else _TOLERATIONS_BEFORE
            errors += _scheduling_errors(scheduling, path)
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return immutable_errors(obj.get("handler", ""), old.get("handler", ""), Path("handler"))

    def warnings_on_create(self, obj: Object) -> list[str]:
        selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
        texts = (text for label, text in DEPRECATED_NODE_LABELS.items() if label in selector)
        return [f"scheduling.nodeSelector: {text}" for text in texts]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), obj.get("handler", ""), age(obj, now)]


def _scheduling_errors(scheduling: Object, path: Path) -> ErrorList:
    """The errors in scheduling; messages report tolerations at `path`."""
    errors = names.validate_labels(scheduling.get("nodeSelector") or {}, _SCHEDULING.child("nodeSelector"))
    tolerations: list[Object] = scheduling.get("tolerations") or []
    errors += toleration_errors(tolerations, path)
    seen = set[tuple[str, ...]]()
    for i, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name) or "" for name in _TOLERATION)
        if key in seen:
            errors.append(field.duplicate(_TOLERATIONS.index(i), internal_form(toleration, "Toleration")))
        seen.add(key)
    return errors
