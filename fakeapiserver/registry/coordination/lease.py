"""Leases.

Upstream: pkg/registry/coordination/lease/strategy.go, pkg/apis/coordination/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import name_errors, non_negative_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_STRATEGIES: Final = ("OldestEmulationVersion",)


def strategy_errors(strategy: str, path: Path) -> ErrorList:
    """The errors in a coordinated lease's strategy, which upstream reports one field further down."""
    at = path.child("strategy")
    if "/" in strategy:
        return name_errors(strategy, names.is_qualified_name, at)
    return [] if strategy in _STRATEGIES else [field.not_supported(at, strategy, _STRATEGIES)]


class LeaseStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        spec, path = obj["spec"], Path("spec")
        errors: ErrorList = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(field.invalid(path.child("leaseDurationSeconds"), duration, "must be greater than 0"))
        errors += non_negative_errors(spec.get("leaseTransitions") or 0, path.child("leaseTransitions"))
        strategy = spec.get("strategy")
        if strategy is not None:
            errors += strategy_errors(strategy, path.child("strategy"))
        if spec.get("preferredHolder") and not strategy:
            detail = "may only be specified if `strategy` is defined"
            errors.append(field.forbidden(path.child("preferredHolder"), detail))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), (obj.get("spec") or {}).get("holderIdentity", ""), age(obj, now)]
