"""Questions about pools of devices, which a controller answers once in the status.

Upstream: pkg/registry/resource/resourcepoolstatusrequest/strategy.go,
pkg/apis/resource/validation/validation_resourcepoolstatusrequest.go, pkg/apis/resource/v1alpha3/zz_generated.validations.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import conditions_form, internal_form
from fakeapiserver.registry.declared.rules import (
    list_errors,
    long_name,
    long_name_caseless,
    maximum_errors,
    minimum_errors,
    optional_text_errors,
    pool_name_errors,
    qualified_name_errors,
    required_text_errors,
)
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.printing import translate_timestamp_since
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_MAX_LIMIT: Final = 1000
_MAX_POOLS: Final = 1000
_MAX_CONDITIONS: Final = 10
_MAX_ERROR: Final = 256
_COUNTS: Final = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")


class ResourcePoolStatusRequestStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)

    def validate(self, obj: Object) -> ErrorList:
        spec, limit = obj["spec"], obj["spec"].get("limit")
        errors = required_text_errors(spec, "driver", long_name_caseless, _SPEC)
        if spec.get("poolName") is not None:
            errors += pool_name_errors(spec["poolName"], _SPEC.child("poolName"))
        at = _SPEC.child("limit")
        if limit is None:
            errors.append(field.required(at))
        else:
            errors += maximum_errors(limit, _MAX_LIMIT, at) + minimum_errors(limit, 1, at)
        name = spec.get("defaultPartitionTypeAttribute")
        return (
            errors
            if name is None
            else errors + qualified_name_errors(name, _SPEC.child("defaultPartitionTypeAttribute"))
        )

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return [] if obj["spec"] == old["spec"] else [field.invalid(_SPEC, None, IMMUTABLE)]

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, before = obj.get("status"), old.get("status")
        if status == before:
            return []
        if before is not None:
            go_status = None if status is None else internal_form(status, "ResourcePoolStatusRequestStatus")
            errors = [field.invalid(_STATUS, go_status, IMMUTABLE)]
        else:
            errors = conditions_errors((status or {}).get("conditions") or (), _STATUS.child("conditions"))
        return errors if status is None else errors + _status_errors(status, before or {})

    def table_row(self, obj: Object, now: float) -> Cells:
        status = obj.get("status")
        name, driver = metadata(obj).get("name", ""), (obj.get("spec") or {}).get("driver", "")
        if status is None:
            return [name, driver, *["-"] * (len(_COUNTS) + 1), 0, "Pending", NONE]
        pools = status.get("pools") or ()
        ended: Object = next((row for row in status.get("conditions") or () if _ends(row)), {})
        state, count = ended.get("type", "Pending"), status.get("poolCount", 0)
        completed = translate_timestamp_since(ended["lastTransitionTime"], now) if state == "Complete" else NONE
        if state == "Failed":
            return [name, driver, *["-"] * (len(_COUNTS) + 1), count, state, completed]
        sums = [str(sum(pool.get(name) or 0 for pool in pools)) for name in _COUNTS]
        wrong = str(sum(pool.get("validationError") is not None for pool in pools))
        if state == "Complete" and count > len(pools):
            state = f"Complete ({len(pools)}/{count} pools)"
        return [name, driver, *sums, wrong, count, state, completed]


def _ends(condition: Object) -> bool:
    return condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"


def _status_errors(status: Object, old: Object) -> ErrorList:
    """The errors in the changed fields of the status."""
    count, at = status.get("poolCount"), _STATUS.child("poolCount")
    errors: ErrorList = []
    if count is None:
        errors.append(field.required(at))
    elif count != old.get("poolCount"):
        errors += minimum_errors(count, 0, at)
    if status.get("pools") != old.get("pools"):
        errors += list_errors(status.get("pools") or (), _MAX_POOLS, _pool_errors, _STATUS.child("pools"))
    conditions, path = status.get("conditions") or (), _STATUS.child("conditions")
    if len(conditions) > _MAX_CONDITIONS:
        return [*errors, field.too_many(path, len(conditions), _MAX_CONDITIONS)]
    kinds = [row.get("type", "") for row in conditions]
    twice = sorted(field.repetitions(kinds))
    go_conditions = conditions_form(conditions)
    return errors + [field.duplicate(path.index(i), go_conditions[i]) for i in twice]


def _pool_errors(pool: Object, path: Path) -> ErrorList:
    errors = required_text_errors(pool, "driver", long_name_caseless, path)
    name, generation = pool.get("poolName", ""), pool.get("generation", 0)
    at = path.child("poolName")
    errors += pool_name_errors(name, at) if name else [field.required(at)]
    at = path.child("generation")
    errors += minimum_errors(generation, 0, at) if generation else [field.required(at)]
    for key, least in (
        ("resourceSliceCount", 1),
        *((name, 0) for name in ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices")),
    ):
        if (value := pool.get(key)) is not None:
            errors += minimum_errors(value, least, path.child(key))
    errors += optional_text_errors(pool, "nodeName", long_name, path)
    if len(pool.get("validationError", "").encode()) > _MAX_ERROR:
        errors.append(field.too_long(path.child("validationError"), _MAX_ERROR))
    return errors
