"""Leases.

Upstream: pkg/registry/coordination/lease/strategy.go, pkg/apis/coordination/validation/validation.go.
"""

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import non_negative_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age


class LeaseStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        spec, path = obj["spec"], Path("spec")
        errors: ErrorList = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(field.invalid(path.child("leaseDurationSeconds"), duration, "must be greater than 0"))
        return errors + non_negative_errors(spec.get("leaseTransitions") or 0, path.child("leaseTransitions"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), (obj.get("spec") or {}).get("holderIdentity", ""), age(obj, now)]
