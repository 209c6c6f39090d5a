"""Priority classes.

Upstream: pkg/registry/scheduling/priorityclass/strategy.go, pkg/apis/scheduling/{v1/defaults.go,validation/validation.go}.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.apps.label_selector import immutable_errors
from fakeapiserver.registry.core.table_cells import age
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class PriorityClassStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def raises_generation(self, obj: Object, old: Object) -> bool:
        """The first one is the last: what matters can't change."""
        return False

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = []
        if obj.get("value", 0) != old.get("value", 0):
            errors.append(field.forbidden("value", "may not be changed in an update."))
        new, before = obj.get("preemptionPolicy"), old.get("preemptionPolicy")
        return errors + immutable_errors(new, before, Path("preemptionPolicy"))

    def table_row(self, obj: Object, now: float) -> Cells:
        return [
            metadata(obj).get("name", ""),
            obj.get("value", 0),
            obj.get("globalDefault", False),
            age(obj, now),
            obj.get("preemptionPolicy", ""),
        ]
