"""Controller revisions: what a template was, kept by its controller.

Upstream: pkg/registry/apps/controllerrevision/strategy.go, pkg/apis/apps/validation/validation.go.
"""

import msgspec

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata, owner_references
from fakeapiserver.apimachinery.schema.raw_text import marshalled
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.raw_texts import RawTexts, TextKeepingStrategy
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import NONE, age


class ControllerRevisionStrategy(TextKeepingStrategy, kw_only=True):
    texts: RawTexts = msgspec.field(default_factory=lambda: RawTexts((("data",),)))

    def validate(self, obj: Object) -> ErrorList:
        errors = non_negative_errors(obj.get("revision", 0), Path("revision"))
        if obj.get("data") is None:
            errors.append(field.required(Path("data"), "data is mandatory"))
        elif not isinstance(obj["data"], dict):
            errors.append(field.required(Path("data"), "data must be a valid JSON object"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = non_negative_errors(obj.get("revision", 0), Path("revision"))
        data = obj.get("data")
        if data == old.get("data") and not self.texts.differ(obj, old):
            return errors
        text = self.texts.of_new(obj, old).get(("data",))
        go_data = data if text is None else msgspec.Raw(marshalled(text).encode())
        return [*errors, field.invalid(Path("data"), go_data, IMMUTABLE)]

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), _controller(obj), obj.get("revision", 0), age(obj, now)]


def _controller(obj: Object) -> str:
    """`deployment.apps/web`, or `<none>`."""
    for owner in owner_references(obj):
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            kind = f"{owner['kind']}.{group}" if group else str(owner["kind"])
            return f"{kind.lower()}/{owner['name']}"
    return NONE
