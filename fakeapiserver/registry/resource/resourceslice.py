"""The devices that a driver has to offer.

Upstream: pkg/registry/resource/resourceslice/strategy.go; what is valid is in slice_validation.py.
"""

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.quantity_fields import IN_RESOURCE_SLICE, QuantityFields
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.resource.capacity_validation import capacity_rules
from fakeapiserver.registry.resource.device_fields import effects_of
from fakeapiserver.registry.resource.slice_validation import slice_errors


class ResourceSliceStrategy(Strategy, kw_only=True):
    quantity_fields: QuantityFields = IN_RESOURCE_SLICE

    def default(self, obj: Object, version: str) -> None:
        for device in obj["spec"].get("devices") or ():
            for mapping in (device.get("basic", device).get("nodeAllocatableResourceMappings") or {}).values():
                mapping.setdefault("allocationMultiplier", "1")

    def default_times(self, obj: Object, now: str) -> None:
        for device in obj["spec"].get("devices") or ():
            for taint in device.get("basic", device).get("taints") or ():
                taint.setdefault("timeAdded", now)

    def validate(self, obj: Object) -> ErrorList:
        return self._spec_errors(obj["spec"], None)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self._spec_errors(obj["spec"], old["spec"])

    def _spec_errors(self, spec: Object, old: Object | None) -> ErrorList:
        one_kind, effects = self.features.at_least("v1.35"), effects_of(self.features)
        capacities = capacity_rules(self.features)
        return slice_errors(spec, old, one_kind=one_kind, effects=effects, capacities=capacities)

    def warnings_on_create(self, obj: Object) -> list[str]:
        driver = obj["spec"].get("driver", "")
        if driver == driver.lower():
            return []
        quoted_driver = go_quote(driver)
        return [f"spec.driver: driver names should be lowercase; {quoted_driver} contains uppercase characters"]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        pool = (spec.get("pool") or {}).get("name", "")
        node = spec.get("nodeName", "")
        return [metadata(obj).get("name", ""), node, spec.get("driver", ""), pool, age(obj, now)]
