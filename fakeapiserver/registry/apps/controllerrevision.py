"""Controller revisions: what a template was, kept by its controller.

Upstream: pkg/registry/apps/controllerrevision/strategy.go, pkg/apis/apps/validation/validation.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata, owner_references
from fakeapiserver.registry.apps.label_selector import immutable_errors
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.core.table_cells import NONE, age
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class ControllerRevisionStrategy(Strategy):
    def validate(self, obj: Object) -> ErrorList:
        errors = non_negative_errors(obj.get("revision", 0), Path("revision"))
        if obj.get("data") is None:
            errors.append(field.required(Path("data"), "data is mandatory"))
        elif not isinstance(obj["data"], dict):
            errors.append(field.required(Path("data"), "data must be a valid JSON object"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = non_negative_errors(obj.get("revision", 0), Path("revision"))
        return errors + immutable_errors(obj.get("data"), old.get("data"), Path("data"))

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
