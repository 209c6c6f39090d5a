"""Dynamic resource allocation: claims, their templates, classes and slices of devices.

Upstream: pkg/registry/resource/*/strategy.go, pkg/apis/resource/v1/defaults.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_SPEC: Final = Path("spec")
MAX_RESERVED: Final = 256
_TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_NODES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


class DeviceClassStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        return _selector_errors(obj["spec"], _SPEC)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]


class ResourceClaimStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        _default_requests(obj["spec"])

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        return _request_errors(obj["spec"], _SPEC)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if obj["spec"] == old["spec"]:
            return []
        return [field.invalid("spec", internal_form(obj["spec"], "ResourceClaimSpec"), "field is immutable")]

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return _claim_status_errors(obj, obj.get("status") or {}, old.get("status") or {})

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        status = obj.get("status") or {}
        gone = _allocated(old) - _allocated(obj)
        left = [row for row in status.get("devices") or () if _device(row) not in gone]
        if status.get("devices") and not left:
            del status["devices"]
        elif len(left) < len(status.get("devices") or ()):
            status["devices"] = left

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), _state(obj), age(obj, now)]


class ResourceClaimTemplateStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        _default_requests(obj["spec"].get("spec") or {})

    def validate(self, obj: Object) -> ErrorList:
        return _request_errors(obj["spec"].get("spec") or {}, _SPEC.child("spec"))

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]


class ResourceSliceStrategy(Strategy, kw_only=True):
    def default_times(self, obj: Object, now: str) -> None:
        for device in obj["spec"].get("devices") or ():
            for taint in device.get("taints") or ():
                taint.setdefault("timeAdded", now)

    def validate(self, obj: Object) -> ErrorList:
        return _slice_errors(obj["spec"]) + _node_errors(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        spec, before = obj["spec"], old["spec"]
        errors = _slice_errors(spec)
        pool, old_pool = spec.get("pool") or {}, before.get("pool") or {}
        errors += immutable_errors(pool.get("name", ""), old_pool.get("name", ""), _SPEC.child("pool", "name"))
        errors += immutable_errors(spec.get("driver", ""), before.get("driver", ""), _SPEC.child("driver"))
        for name in ("nodeName", "nodeSelector", "allNodes"):
            errors += immutable_errors(spec.get(name), before.get(name), _SPEC.child(name))
        return errors + _node_errors(spec)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        pool = (spec.get("pool") or {}).get("name", "")
        node = spec.get("nodeName", "")
        return [metadata(obj).get("name", ""), node, spec.get("driver", ""), pool, age(obj, now)]


def _slice_errors(spec: Object) -> ErrorList:
    pool = spec.get("pool") or {}
    errors: ErrorList = [] if spec.get("driver") else [field.required(_SPEC.child("driver"))]
    if not pool.get("name"):
        errors.append(field.required(_SPEC.child("pool", "name")))
    if pool.get("resourceSliceCount", 0) <= 0:
        path = _SPEC.child("pool", "resourceSliceCount")
        errors.append(field.invalid(path, pool.get("resourceSliceCount", 0), "must be greater than zero"))
    return errors + _taint_errors(spec)


def _taint_errors(spec: Object) -> ErrorList:
    errors: ErrorList = []
    for i, device in enumerate(spec.get("devices") or ()):
        for j, taint in enumerate(device.get("taints") or ()):
            path, value = _SPEC.child("devices").index(i).child("taints").index(j), taint.get("value", "")
            key, effect = taint.get("key", ""), taint.get("effect", "")
            errors += [field.invalid(path.child("key"), key, text) for text in names.is_qualified_name(key)]
            errors += [field.invalid(path.child("value"), value, text) for text in names.is_valid_label_value(value)]
            if not effect:
                errors.append(field.required(path.child("effect")))
            elif effect not in _TAINT_EFFECTS:
                errors.append(field.not_supported(path.child("effect"), effect, _TAINT_EFFECTS))
    return errors


def _node_errors(spec: Object) -> ErrorList:
    if any(spec.get(name) is not None for name in _NODES):
        return []
    listed = ", ".join(f"`{name}`" for name in _NODES)
    return [field.required(_SPEC, f"exactly one of {listed} is required")]


def _request_errors(spec: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for i, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        at = path.child("devices", "requests").index(i)
        if request.get("exactly") is not None:
            errors += _selector_errors(request["exactly"], at.child("exactly"))
        for j, choice in enumerate(request.get("firstAvailable") or ()):
            errors += _selector_errors(choice, at.child("firstAvailable").index(j))
    return errors


def _selector_errors(holder: Object, path: Path) -> ErrorList:
    """What is wrong with expressions that select devices."""
    errors: ErrorList = []
    for i, row in enumerate(holder.get("selectors") or ()):
        if row.get("cel") is not None:
            errors += _expression_errors(row["cel"].get("expression", ""), path.child("selectors").index(i))
    return errors


def _expression_errors(expression: str, path: Path) -> ErrorList:
    from fakeapiserver.apimachinery.cel.device import MAX_COST, MAX_LENGTH, compile_selector, max_cost

    at = path.child("cel", "expression")
    if len(expression.encode()) > MAX_LENGTH:
        return [field.too_long(at, MAX_LENGTH)]
    try:
        program = compile_selector(expression)
    except ValueError as error:
        return [field.invalid(at, expression, str(error))]
    return [field.forbidden(at, "too complex, exceeds cost limit")] if max_cost(program) > MAX_COST else []


def _default_requests(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for choice in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if choice is not None and choice.setdefault("allocationMode", "ExactCount") == "ExactCount":
                choice.setdefault("count", 1)


def _claim_status_errors(claim: Object, status: Object, old: Object) -> ErrorList:
    path = Path("status")
    allocation, reserved = status.get("allocation"), status.get("reservedFor") or ()
    errors = _reservation_errors(reserved, path.child("reservedFor"))
    errors += _device_status_errors(claim, path.child("devices"))
    if reserved and allocation is None:
        errors.append(field.forbidden(path.child("reservedFor"), "may not be specified when `allocated` is not set"))
    elif is_terminating(claim) and any(row not in (old.get("reservedFor") or ()) for row in reserved):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(field.forbidden(path.child("reservedFor"), why))
    if allocation is None or allocation == old.get("allocation"):
        return errors
    at = path.child("allocation")
    if old.get("allocation") is not None:
        return [*errors, field.invalid(at, internal_form(allocation, "AllocationResult"), "field is immutable")]
    return errors + _allocation_errors(claim, allocation, at.child("devices", "results"))


def _reservation_errors(reserved: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    if len(reserved) > MAX_RESERVED:
        errors.append(field.too_many(path, len(reserved), MAX_RESERVED))
    known: set[str] = set()
    for i, row in enumerate(reserved):
        at, uid = path.index(i), row.get("uid", "")
        errors += [field.required(at.child(name)) for name in ("resource", "name", "uid") if not row.get(name)]
        if uid in known:
            errors.append(field.duplicate(at, uid))
        known.add(uid)
    return errors


def _device_status_errors(claim: Object, path: Path) -> ErrorList:
    """Drivers tell of devices that the claim has."""
    errors: ErrorList = []
    allocated = _allocated(claim)
    for i, row in enumerate((claim.get("status") or {}).get("devices") or ()):
        if _device(row) not in allocated:
            shown = dict(zip(("Driver", "Pool", "Device", "ShareID"), _device(row), strict=True))
            errors.append(field.invalid(path.index(i), shown, "must be an allocated device in the claim"))
    return errors


def _allocation_errors(claim: Object, allocation: Object, path: Path) -> ErrorList:
    """Devices are for what was asked for."""
    errors: ErrorList = []
    known: set[str] = set()
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        known |= {request["name"], *(f"{request['name']}/{row['name']}" for row in request.get("firstAvailable") or ())}
    for i, row in enumerate((allocation.get("devices") or {}).get("results") or ()):
        at, driver = path.index(i), row.get("driver", "")
        if row.get("request", "") not in known:
            why = (
                "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
            )
            errors.append(field.invalid(at.child("request"), row.get("request", ""), why))
        errors += [
            field.invalid(at.child("driver"), driver, text) for text in names.name_is_dns_subdomain(driver, False)
        ]
    return errors


def _allocated(claim: Object) -> set[tuple[str, ...]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return {_device(row) for row in (allocation.get("devices") or {}).get("results") or ()}


def _device(row: Object) -> tuple[str, ...]:
    """What tells it from others."""
    return row["driver"], row["pool"], row["device"], row.get("shareID") or ""


def _state(obj: Object) -> str:
    status = obj.get("status") or {}
    states = ["deleted"] if is_terminating(obj) else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)
