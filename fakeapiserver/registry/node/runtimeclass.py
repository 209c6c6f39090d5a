"""Runtime classes.

Upstream: pkg/registry/node/runtimeclass/strategy.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.apps.label_selector import immutable_errors
from fakeapiserver.registry.core.field_formats import required_label_errors
from fakeapiserver.registry.core.node_label_warnings import DEPRECATED_NODE_LABELS
from fakeapiserver.registry.core.table_cells import age
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class RuntimeClassStrategy(Strategy):
    def validate(self, obj: Object) -> ErrorList:
        return required_label_errors(obj.get("handler", ""), Path("handler"))

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
