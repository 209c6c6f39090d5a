"""Dynamic resource allocation: claims, their templates, classes and slices of devices.

Upstream: pkg/registry/resource/*/strategy.go, pkg/apis/resource/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_SPEC: Final = Path("spec")
_TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_NODES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


class DeviceClassStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        return _selector_errors(obj["spec"], _SPEC)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

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
