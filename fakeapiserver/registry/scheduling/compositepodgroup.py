"""Groups of groups of pods (since 1.37, behind the gate CompositePodGroup).

Upstream: pkg/registry/scheduling/compositepodgroup/strategy.go.
"""

from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.declared.types import declared_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.scheduling.declared import COMPOSITE_POD_GROUP
from fakeapiserver.registry.scheduling.podgroup import CONDITIONS, GroupStrategy, first_cells


class CompositePodGroupStrategy(GroupStrategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        return declared_errors(COMPOSITE_POD_GROUP, obj, None, self.features, Path())

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return declared_errors(COMPOSITE_POD_GROUP, obj, old, self.features, Path())

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        errors = conditions_errors((obj.get("status") or {}).get("conditions") or (), CONDITIONS)
        return errors + self.validate_update(obj, old)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [*first_cells(obj), age(obj, now)]
