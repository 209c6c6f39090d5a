"""Taints for all devices that a rule selects.

Upstream: pkg/registry/resource/devicetaintrule/strategy.go, pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.printing import translate_timestamp_since
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.resource.device_fields import driver_errors, effects_of, pool_name_errors, taint_errors

_SPEC: Final = Path("spec")
_CONDITIONS: Final = Path("status").child("conditions")
_MAX_CONDITIONS: Final = 8


class DeviceTaintRuleStrategy(Strategy, kw_only=True):
    clock: Clock = SystemClock()

    def for_server(self, clock: Clock) -> "DeviceTaintRuleStrategy":
        return replace(self, clock=clock)

    def default_times(self, obj: Object, now: str) -> None:
        obj["spec"]["taint"].setdefault("timeAdded", now)

    def prepare_for_create(self, obj: Object) -> None:
        if self.features.at_least("v1.35"):
            obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        """A taint with another effect begins now, unless the client sends a time."""
        super().prepare_for_update(obj, old)
        taint, before = (item["spec"].get("taint") or {} for item in (obj, old))
        if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
            obj["spec"] = {**obj["spec"], "taint": {**taint, "timeAdded": rfc3339(self.clock.now())}}

    def validate(self, obj: Object) -> ErrorList:
        return _spec_errors(obj["spec"], {}, effects_of(self.features))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return _spec_errors(obj["spec"], old["spec"], effects_of(self.features))

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        conditions = (obj.get("status") or {}).get("conditions") or ()
        errors = conditions_errors(conditions, _CONDITIONS)
        if len(conditions) > _MAX_CONDITIONS:
            errors.append(field.too_many(_CONDITIONS, len(conditions), _MAX_CONDITIONS))
        return errors

    def table_row(self, obj: Object, now: float) -> Cells:
        taint = (obj.get("spec") or {}).get("taint") or {}
        added = translate_timestamp_since(taint.get("timeAdded"), now)
        cells = (taint.get(name, "") for name in ("key", "value", "effect"))
        return [metadata(obj).get("name", ""), *cells, added, age(obj, now)]


def _spec_errors(spec: Object, old: Object, effects: Sequence[str]) -> ErrorList:
    """The errors in a spec; an old effect stays allowed."""
    selector, path = spec.get("deviceSelector") or {}, _SPEC.child("deviceSelector")
    errors: ErrorList = []
    if (driver := selector.get("driver")) is not None:
        errors += driver_errors(driver, path.child("driver"))
    if (pool := selector.get("pool")) is not None:
        errors += pool_name_errors(pool, path.child("pool"))
    if (device := selector.get("device")) is not None:
        errors += name_errors(device, names.is_dns1123_label, path.child("device"))
    taint, before = spec.get("taint") or {}, old.get("taint") or {}
    known = before.get("effect") if before else None
    return errors + taint_errors(taint, _SPEC.child("taint"), known_effect=known, effects=effects)
