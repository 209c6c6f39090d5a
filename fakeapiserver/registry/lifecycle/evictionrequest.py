"""Requests of one party to evict a pod, and what requests have in common with evictions.

Upstream: pkg/registry/lifecycle/evictionrequest/strategy.go, pkg/apis/lifecycle/validation/validation.go.
"""

from typing import ClassVar

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.declared.rules import long_name
from fakeapiserver.registry.declared.types import Fields, declared_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.strategy_facts import NameFunction
from fakeapiserver.registry.generic.table_cells import UNSET, age
from fakeapiserver.registry.lifecycle.declared import EVICTION_REQUEST


def _long_name(name: str, prefix: bool) -> list[str]:
    return long_name(name)


class LifecycleStrategy(Strategy, kw_only=True):
    """The common behaviour of the group's kinds. `fields` are the kind's declared rules."""

    validate_name: NameFunction = _long_name
    allow_unconditional_update: bool = False
    has_generation: bool = True
    status_reset_fields: tuple[str, ...] = ("spec", "metadata")
    validates_generate_name: bool = False
    fields: ClassVar[Fields] = {}

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        """A missing name is an invalid one, too."""
        name = metadata(obj).get("name", "")
        unnamed = [] if name else [field.invalid("metadata.name", name, problem) for problem in long_name(name)]
        return unnamed + declared_errors(self.fields, obj, None, self.features, Path())

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return declared_errors(self.fields, obj, old, self.features, Path())

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        conditions = (obj.get("status") or {}).get("conditions") or ()
        errors = conditions_errors(conditions, Path("status.conditions"))
        return errors + self.progress_errors(obj, old) + self.validate_update(obj, old)

    def progress_errors(self, obj: Object, old: Object) -> ErrorList:
        """The errors in how a status goes on from the one before."""
        return []


class EvictionRequestStrategy(LifecycleStrategy, kw_only=True):
    fields: ClassVar[Fields] = EVICTION_REQUEST

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        asked = [spec.get("requester", ""), spec.get("intent", "")]
        return [metadata(obj).get("name", ""), *target_cells(obj), state(obj), *asked, age(obj, now)]


def target_cells(obj: Object) -> list[object]:
    """The name and the kind of the target."""
    pod = ((obj.get("spec") or {}).get("target") or {}).get("pod")
    return [UNSET, UNSET] if pod is None else [pod.get("name", ""), "Pod"]


def state(obj: Object) -> str:
    """The progress of the eviction: the condition that ended it, or whether its controller has seen it."""
    status = obj.get("status") or {}
    for kind in ("TargetEvicted", "Failed"):
        condition = true_condition(status, kind)
        if condition is not None:
            return f"{kind} ({condition.get('reason', '')})"
    return "Progressing" if (status.get("observedGeneration") or 0) > 0 else "Pending"


def true_condition(status: Object, kind: str) -> Object | None:
    """Returns the status's first condition of this type if it is true."""
    found = next((row for row in status.get("conditions") or () if row.get("type") == kind), None)
    return found if found is not None and found.get("status") == "True" else None
