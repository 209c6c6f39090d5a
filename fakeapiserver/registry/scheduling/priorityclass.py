"""Priority classes.

Upstream: pkg/registry/scheduling/priorityclass/strategy.go, pkg/apis/scheduling/{v1/defaults.go,validation/validation.go}.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import choice_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_HIGHEST: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_RESERVED: Final = "priority class names with 'system-' prefix are reserved for system use only. error: "
_POLICIES: Final = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = []
        name, value = str(metadata(obj).get("name", "")), obj.get("value", 0)
        if name.startswith("system-"):
            if wrong := _not_the_known_one(name, obj):
                errors.append(field.forbidden("metadata.name", _RESERVED + wrong))
        elif value > _HIGHEST:
            errors.append(field.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
        policy = obj.get("preemptionPolicy")
        return errors + (choice_errors(policy, _POLICIES, Path("preemptionPolicy")) if policy is not None else [])

    def raises_generation(self, obj: Object, old: Object) -> bool:
        """False: the fields that count can't change."""
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


def _not_the_known_one(name: str, obj: Object) -> str:
    """The reason why a class isn't the system class of this name; empty if it is."""
    value = SYSTEM_CLASSES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if obj.get("value", 0) != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""
