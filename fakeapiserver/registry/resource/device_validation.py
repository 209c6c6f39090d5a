"""What claims, their templates, classes and slices of devices may say.

Upstream: pkg/apis/resource/validation/validation.go.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating
from fakeapiserver.apimachinery.quantity import Quantity, parse
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.pod_resources import is_extended
from fakeapiserver.registry.core.field_formats import interface_address_errors, name_errors
from fakeapiserver.registry.core.node_selector_validation import node_selector_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors

Check = Callable[[Any, Path], ErrorList]

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
MAX_RESERVED: Final = 256
_MAX_REQUESTS: Final = 32
_MAX_CONSTRAINTS: Final = 32
_MAX_CONFIGS: Final = 32
_MAX_SELECTORS: Final = 32
_MAX_CHOICES: Final = 8
_MAX_PARAMETERS: Final = 10 * 1024
_MAX_DRIVER: Final = 63
_MAX_POOL: Final = 253
_MAX_DEVICES: Final = 128
_MAX_ADVANCED_DEVICES: Final = 64
_MAX_COUNTER_SETS: Final = 8
_MAX_COUNTERS: Final = 32
_MAX_CONSUMPTIONS: Final = 2
_MAX_PROPERTIES: Final = 32
_MAX_IDENTIFIER: Final = 32
_MAX_QUALIFIED: Final = 63 + 1 + _MAX_IDENTIFIER
_MAX_VALUE: Final = 64
_MAX_VALUES: Final = 48
_MAX_TAINTS: Final = 16
_MAX_BINDING_CONDITIONS: Final = 4
_MAX_OPTIONS: Final = 10
_MAX_CONDITIONS: Final = 8
_MAX_ADDRESSES: Final = 16
_MAX_INTERFACE_NAME: Final = 256
_MAX_HARDWARE_ADDRESS: Final = 128
_SHORTEST_KEY: Final = 16
_MODES: Final = ("All", "ExactCount")
_SOURCES: Final = ("FromClaim", "FromClass")
_OPERATORS: Final = ("Equal", "Exists")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_NODES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUES: Final = ("bool", "int", "string", "version")
_REQUEST_KINDS: Final = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_NO_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_DEVICE_NODES: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)
_NO_DEVICE_NODES: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_IS_C_IDENTIFIER: Final = re.compile(_C_IDENTIFIER)
_C_IDENTIFIER_RULE: Final = names.regex_error(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
    _C_IDENTIFIER,
    *("my_name", "MY_NAME", "MyName"),
)
_NUMBER: Final = "(0|[1-9][0-9]*)"
_PRE_RELEASE: Final = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_IS_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?"
)
_IS_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_IS_BARE_UUID: Final = re.compile("[0-9a-fA-F]{32}")
_NO_UID: Final = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"


# Claims


class DeviceFeatures(Struct, frozen=True):
    """What selectors know of: devices that are shared (DRAConsumableCapacity), attributes that are lists
    (DRAListTypeAttributes)."""

    shared: bool = True
    lists: bool = False


DEFAULT_FEATURES: Final = DeviceFeatures()


def device_features(features: FeatureGates) -> DeviceFeatures:
    return DeviceFeatures(features.enabled("DRAConsumableCapacity"), features.enabled("DRAListTypeAttributes"))


def claim_spec_errors(spec: Object, path: Path = _SPEC, features: DeviceFeatures = DEFAULT_FEATURES) -> ErrorList:
    """Of a new claim, or of a template's."""
    devices, at = spec.get("devices") or {}, path.child("devices")
    requests = _request_names(devices)
    errors = _set_errors(
        devices.get("requests"),
        _MAX_REQUESTS,
        partial(_request_errors, features=features),
        at.child("requests"),
        lambda row: row.get("name", ""),
    )

    def constraint_errors(constraint: Object, path: Path) -> ErrorList:
        return _constraint_errors(constraint, path, requests, features)

    def config_errors(config: Object, path: Path) -> ErrorList:
        return _references_errors(config, path, requests) + _configuration_errors(config, path)

    errors += _list_errors(devices.get("constraints"), _MAX_CONSTRAINTS, constraint_errors, at.child("constraints"))
    return errors + _list_errors(devices.get("config"), _MAX_CONFIGS, config_errors, at.child("config"))


def _request_names(devices: Object) -> set[str]:
    """What may be referred to: requests, and what they may be met by."""
    known: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        known |= {name, *(f"{name}/{row.get('name', '')}" for row in request.get("firstAvailable") or ())}
    return known


def _request_errors(request: Object, path: Path, features: DeviceFeatures) -> ErrorList:
    errors = name_errors(request.get("name", ""), names.is_dns1123_label, path.child("name"))
    exactly, choices = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not choices:
        return [*errors, field.required(path, _REQUEST_KINDS)]
    if exactly is not None and choices:
        return [*errors, field.invalid(path, None, f"{_REQUEST_KINDS}, but multiple fields are set")]
    if exactly is not None:
        return errors + _wanted_errors(exactly, path.child("exactly"), features)
    return errors + _set_errors(
        choices,
        _MAX_CHOICES,
        partial(_choice_errors, features=features),
        path.child("firstAvailable"),
        lambda row: row.get("name", ""),
    )


def _choice_errors(choice: Object, path: Path, features: DeviceFeatures) -> ErrorList:
    errors = name_errors(choice.get("name", ""), names.is_dns1123_label, path.child("name"))
    return errors + _wanted_errors(choice, path, features)


def _wanted_errors(wanted: Object, path: Path, features: DeviceFeatures) -> ErrorList:
    """Which devices, and how many."""
    name, at = wanted.get("deviceClassName", ""), path.child("deviceClassName")
    errors = name_errors(name, names.is_dns1123_subdomain, at) if name else [field.required(at)]
    errors += _list_errors(
        wanted.get("selectors"), _MAX_SELECTORS, partial(_selector_errors, features=features), path.child("selectors")
    )
    mode, count = wanted.get("allocationMode", ""), wanted.get("count", 0)
    if mode not in _MODES:
        errors.append(field.not_supported(path.child("allocationMode"), mode, _MODES))
    elif mode == "All" and count != 0:
        detail = "must not be specified when allocationMode is 'All'"
        errors.append(field.invalid(path.child("count"), count, detail))
    elif mode == "ExactCount" and count <= 0:
        errors.append(field.invalid(path.child("count"), count, "must be greater than zero"))
    return errors + _list_errors(wanted.get("tolerations"), -1, _toleration_errors, path.child("tolerations"))


def _toleration_errors(toleration: Object, path: Path) -> ErrorList:
    key, operator, value, effect = (toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
    errors = _label_key_errors(key, path.child("key")) if key else []
    if operator == "Exists":
        if value:
            errors.append(field.invalid(path.child("value"), value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += name_errors(value, names.is_valid_label_value, path.child("value"))
    elif not operator:
        errors.append(field.required(path.child("operator")))
    else:
        errors.append(field.not_supported(path.child("operator"), operator, _OPERATORS))
    if effect and effect not in _EFFECTS:
        errors.append(field.not_supported(path.child("effect"), effect, _EFFECTS))
    return errors


def _constraint_errors(
    constraint: Object, path: Path, requests: Collection[str], features: DeviceFeatures
) -> ErrorList:
    errors = _references_errors(constraint, path, requests)
    for name in ("matchAttribute", "distinctAttribute"):
        if (attribute := constraint.get(name)) is not None:
            return errors + _fully_qualified_errors(attribute, path.child(name))
    if not features.shared:
        return [*errors, field.required(path.child("matchAttribute"))]
    return [*errors, field.required(path, _NO_ATTRIBUTE)]


def _references_errors(holder: Object, path: Path, requests: Collection[str]) -> ErrorList:
    def check(name: str, at: Path) -> ErrorList:
        return _reference_errors(name, at, requests)

    return _set_errors(holder.get("requests"), _MAX_REQUESTS, check, path.child("requests"), str)


def _reference_errors(name: str, path: Path, requests: Collection[str]) -> ErrorList:
    parts = name.split("/")
    if len(parts) > 2:
        return [field.invalid(path, name, _NO_REQUEST)]
    errors = [error for part in parts for error in name_errors(part, names.is_dns1123_label, path)]
    return errors if name in requests else [*errors, field.invalid(path, name, _NO_REQUEST)]


def _configuration_errors(config: Object, path: Path, *, stored: bool = False) -> ErrorList:
    """`stored`: parameters that were accepted before may be longer."""
    opaque, at = config.get("opaque"), path.child("opaque")
    if opaque is None:
        return [field.required(at)]
    longest = None if stored else _MAX_PARAMETERS
    errors = driver_errors(opaque.get("driver", ""), at.child("driver"))
    return errors + _raw_errors(opaque.get("parameters"), at.child("parameters"), longest)


def _raw_errors(value: object, path: Path, longest: int | None) -> ErrorList:
    if value is None:
        return [field.required(path)]
    if longest is not None and len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) > longest:
        return [field.too_long(path, longest)]
    return [] if isinstance(value, dict) else [field.invalid(path, "<value omitted>", "must be a valid JSON object")]


def _selector_errors(selector: Object, path: Path, features: DeviceFeatures) -> ErrorList:
    """Of an expression that selects devices."""
    cel, at = selector.get("cel"), path.child("cel")
    if cel is None:
        return [field.required(at)]
    return _expression_errors(cel.get("expression", ""), at.child("expression"), features)


def _expression_errors(expression: str, path: Path, features: DeviceFeatures) -> ErrorList:
    from fakeapiserver.apimachinery.cel.device import MAX_COST, MAX_LENGTH, compile_selector, max_cost

    if len(expression.encode()) > MAX_LENGTH:
        return [field.too_long(path, MAX_LENGTH)]
    try:
        program = compile_selector(expression, shared=features.shared, lists=features.lists)
    except ValueError as error:
        return [field.invalid(path, expression, str(error))]
    return [field.forbidden(path, "too complex, exceeds cost limit")] if max_cost(program) > MAX_COST else []


# Templates and classes


def template_meta_errors(meta: Object, path: Path) -> ErrorList:
    """Of the metadata that claims get: labels and annotations, nothing else."""
    errors = names.validate_annotations(meta.get("annotations") or {}, path.child("annotations"))
    errors += names.validate_labels(meta.get("labels") or {}, path.child("labels"))
    for name in meta:
        if name not in ("labels", "annotations") and meta[name] not in (None, ""):
            shown = "uID" if name == "uid" else name  # Go's name with its first letter in lower case
            errors.append(field.forbidden(path.child(shown), "cannot be set"))
    return errors


def class_errors(spec: Object, old: Object | None = None, features: DeviceFeatures = DEFAULT_FEATURES) -> ErrorList:
    """`old`: the spec before an update, whose configuration is tolerated as long as it stays the same."""
    stored = old is not None and spec.get("config") == old.get("config")

    def config_errors(config: Object, path: Path) -> ErrorList:
        return _configuration_errors(config, path, stored=stored)

    errors = _list_errors(
        spec.get("selectors"), _MAX_SELECTORS, partial(_selector_errors, features=features), _SPEC.child("selectors")
    )
    errors += _list_errors(spec.get("config"), _MAX_CONFIGS, config_errors, _SPEC.child("config"))
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        path = _SPEC.child("extendedResourceName")
        errors.append(field.invalid(path, name, "must be a valid extended resource name"))
    return errors


# Slices


def slice_errors(spec: Object, old: Object | None = None) -> ErrorList:
    """`old`: the spec before an update."""
    pool, driver = spec.get("pool") or {}, spec.get("driver", "")
    errors = driver_errors(driver, _SPEC.child("driver")) + _pool_errors(pool, _SPEC.child("pool"))
    if old is not None:
        before = (old.get("pool") or {}).get("name", "")
        errors += immutable_errors(pool.get("name", ""), before, _SPEC.child("pool", "name"))
        errors += immutable_errors(driver, old.get("driver", ""), _SPEC.child("driver"))
        errors += immutable_errors(spec.get("nodeName"), old.get("nodeName"), _SPEC.child("nodeName"))
    errors += _slice_node_errors(spec)
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        errors.append(field.invalid(_SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices or ())
    before = {device.get("name", ""): device for device in reversed((old or {}).get("devices") or ())}

    def check(device: Object, path: Path) -> ErrorList:
        known = before.get(device.get("name", ""))
        return _device_errors(device, known, path, per_device=bool(spec.get("perDeviceNodeSelection")))

    limit = _MAX_ADVANCED_DEVICES if advanced else _MAX_DEVICES
    errors += _set_errors(devices, limit, check, _SPEC.child("devices"), lambda row: row.get("name", ""))
    return errors + _set_errors(
        counters, _MAX_COUNTER_SETS, _counter_set_errors, _SPEC.child("sharedCounters"), lambda row: row.get("name", "")
    )


def _pool_errors(pool: Object, path: Path) -> ErrorList:
    errors = pool_name_errors(pool.get("name", ""), path.child("name"))
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(field.invalid(path.child("resourceSliceCount"), count, "must be greater than zero"))
    if generation < 0:
        errors.append(field.invalid(path.child("generation"), generation, "must be greater than or equal to zero"))
    return errors


def _slice_node_errors(spec: Object) -> ErrorList:
    errors = _node_name_errors(spec, _SPEC, "must be either unset or set to a non-empty string")
    given = ["nodeName"] if spec.get("nodeName") else []
    if (selector := spec.get("nodeSelector")) is not None:
        given.append("nodeSelector")
        path = _SPEC.child("nodeSelector")
        errors += node_selector_errors(selector, path)
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            detail = "must have exactly one node selector term"
            errors.append(field.invalid(path.child("nodeSelectorTerms"), _shown_terms(terms), detail))
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            given.append(name)
        elif spec.get(name) is not None:
            errors.append(field.invalid(_SPEC.child(name), spec[name], "must be either unset or set to true"))
    listed = ", ".join(f"`{name}`" for name in _NODES)
    detail = f"exactly one of {listed} is required"
    if not given:
        errors.append(field.required(_SPEC, detail))
    elif len(given) > 1:
        errors.append(field.invalid(_SPEC, _braced(given), f"{detail}, but multiple fields are set"))
    return errors


def _node_name_errors(holder: Object, path: Path, empty: str) -> ErrorList:
    name, at = holder.get("nodeName"), path.child("nodeName")
    if name is None:
        return []
    return name_errors(name, names.is_dns1123_subdomain, at) if name else [field.invalid(at, name, empty)]


def _braced(given: Iterable[str]) -> str:
    return "{" + ", ".join(f"`{name}`" for name in given) + "}"


def _shown_terms(terms: Sequence[Object] | None) -> Any:
    return None if terms is None else [internal_form(term, "NodeSelectorTerm") for term in terms]


def _device_errors(device: Object, old: Object | None, path: Path, *, per_device: bool) -> ErrorList:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    errors = name_errors(device.get("name", ""), names.is_dns1123_label, path.child("name"))
    if (count := len(attributes) + len(capacity)) > _MAX_PROPERTIES:
        detail = f"the total number of attributes and capacities must not exceed {_MAX_PROPERTIES}"
        errors.append(field.invalid(path, count, detail))
    # Of a list each item counts, and a list of none as one value.
    values = sum(sum(len(row.get(name) or ()) for name in _LIST_VALUES) or 1 for row in attributes.values())
    if values > _MAX_VALUES:
        detail = f"the total number of attribute values must not exceed {_MAX_VALUES}"
        errors.append(field.invalid(path, values, detail))
    at = path.child("attributes")
    errors += _map_errors(attributes, -1, _MAX_QUALIFIED, _qualified_errors, _attribute_errors, at)
    amounts = _shared_capacity_errors if device.get("allowMultipleAllocations") else _capacity_errors
    errors += _map_errors(capacity, -1, _MAX_QUALIFIED, _qualified_errors, amounts, path.child("capacity"))
    taints = device.get("taints")
    if old is None or (old.get("taints") or []) != (taints or []):
        errors += _list_errors(taints, _MAX_TAINTS, taint_errors, path.child("taints"))
    errors += _set_errors(
        device.get("consumesCounters"),
        _MAX_CONSUMPTIONS,
        _consumption_errors,
        path.child("consumesCounters"),
        lambda row: row.get("counterSet", ""),
    )
    errors += _device_node_errors(device, path, per_device=per_device)
    errors += _binding_errors(device, path)
    mappings = device.get("nodeAllocatableResourceMappings") or {}
    return errors + _mapping_errors(mappings, capacity, path.child("nodeAllocatableResourceMappings"))


def _mapping_errors(mappings: Object, capacity: Object, path: Path) -> ErrorList:
    """What a device takes of its node's own resources."""
    errors: ErrorList = []
    for name, mapping in mappings.items():
        at, times, key = path.key(name), mapping.get("allocationMultiplier"), mapping.get("capacityKey")
        if "/" in name and "kubernetes.io/" not in name:
            errors.append(field.invalid(at, name, "must be a node allocatable resource name"))
        if times is None and key is None:
            detail = "at least one of allocationMultiplier or capacityKey must be set"
            errors.append(field.invalid(at, "", detail))
        if times is not None and parse(str(times)).amount <= 0:
            errors.append(field.invalid(at.child("allocationMultiplier"), str(times), "must be positive"))
        if key == "":
            errors.append(field.invalid(at.child("capacityKey"), "", "capacityKey must not be an empty string"))
        elif key is not None and key not in capacity:
            errors.append(field.not_found(at.child("capacityKey"), key))
    return errors


def _device_node_errors(device: Object, path: Path, *, per_device: bool) -> ErrorList:
    if not per_device:
        named = any(device.get(name) is not None for name in ("nodeName", "nodeSelector", "allNodes"))
        return [field.invalid(path, None, _NO_DEVICE_NODES)] if named else []
    errors = _node_name_errors(device, path, "must not be empty")
    given = ["nodeName"] if device.get("nodeName") else []
    if (selector := device.get("nodeSelector")) is not None:
        given.append("nodeSelector")
        errors += node_selector_errors(selector, path.child("nodeSelector"))
    if device.get("allNodes"):
        given.append("allNodes")
    elif device.get("allNodes") is not None:
        errors.append(field.invalid(path.child("allNodes"), False, "must be either unset or set to true"))
    if not given:
        errors.append(field.required(path, _DEVICE_NODES))
    elif len(given) > 1:
        errors.append(field.invalid(path, _braced(given), _DEVICE_NODES))
    return errors


def _attribute_errors(attribute: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if (text := attribute.get("string")) is not None:
        errors += _text_errors(text, path.child("string"))
    if (version := attribute.get("version")) is not None:
        errors += _version_errors(version, path.child("version"))
    for name, check in _LIST_VALUES.items():
        if (values := attribute.get(name)) is not None:
            at = path.child(name)
            if not values:
                errors.append(field.invalid(at, values, "must not be empty if specified"))
            for i, value in enumerate(values):
                errors += check(value, at.index(i))
    given = [name for name in (*_VALUES, *_LIST_VALUES) if attribute.get(name) is not None]
    if len(given) == 1:
        return errors
    shown = internal_form(attribute, "DeviceAttribute") if given else ""
    return [*errors, field.invalid(path, shown, "exactly one value must be specified")]


def _text_errors(text: str, path: Path) -> ErrorList:
    return [field.too_long(path, _MAX_VALUE)] if len(text.encode()) > _MAX_VALUE else []


def _version_errors(version: str, path: Path) -> ErrorList:
    detail = "must be a string compatible with semver.org spec 2.0.0"
    errors = [] if _IS_VERSION.fullmatch(version) else [field.invalid(path, version, detail)]
    return errors + _text_errors(version, path)


def _unchecked(value: object, path: Path) -> ErrorList:
    return []


# Lists of values -> what each item must be.
_LIST_VALUES: Final[Mapping[str, Callable[[Any, Path], ErrorList]]] = {
    "bools": _unchecked,
    "ints": _unchecked,
    "strings": _text_errors,
    "versions": _version_errors,
}


def _capacity_errors(capacity: Object, path: Path) -> ErrorList:
    """Of a device that one claim has for itself."""
    if capacity.get("requestPolicy") is None:
        return []
    return [field.forbidden(path.child("requestPolicy"), "allowMultipleAllocations must be true")]


def _shared_capacity_errors(capacity: Object, path: Path) -> ErrorList:
    """Of a device that claims share: by which amounts."""
    policy, at = capacity.get("requestPolicy"), path.child("requestPolicy")
    if policy is None:
        return []
    values, span, default = (policy.get(name) for name in ("validValues", "validRange", "default"))
    if values and span is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [field.forbidden(at, detail)]
    for name, given in (("validValues", bool(values)), ("validRange", span is not None)):
        if given and default is None:
            return [field.required(at.child("default"), f"required when {name} is defined")]
    most = parse(str(capacity.get("value", "0")))
    if values:
        return _options_errors([parse(value) for value in values], parse(default), most, at.child("validValues"))
    return [] if span is None else _span_errors(span, parse(default), most, at.child("validRange"))


def _options_errors(options: Sequence[Quantity], default: Quantity, most: Quantity, path: Path) -> ErrorList:
    errors: ErrorList = []
    for i, (one, following) in enumerate(pairwise(options), 1):
        if one > following:
            errors.append(field.invalid(path.index(i), str(following), "values must be sorted in ascending order"))

    def check(option: Quantity, at: Path) -> ErrorList:
        detail = f"option is larger than capacity value: {most}"
        return [field.invalid(at, str(option), detail)] if option > most else []

    errors += _set_errors(options, _MAX_OPTIONS, check, path, lambda option: str(option.value))
    # Options too many to be looked at hold no default either.
    if len(options) > _MAX_OPTIONS or default not in options:
        detail = "default value is not valid according to the requestPolicy"
        errors.append(field.invalid(path, str(default), detail))
    return errors


def _span_errors(span: Object, default: Quantity, most: Quantity, path: Path) -> ErrorList:
    if span.get("min") is None:
        return [field.required(path.child("min"), "required when validRange is defined")]
    low, high, step = (None if span.get(name) is None else parse(span[name]) for name in ("min", "max", "step"))
    assert low is not None
    found = [
        ("min", low, f"min is larger than capacity value: {most}") if low > most else None,
        ("min", default, f"default is less than min: {low}") if default < low else None,
    ]
    if high is not None:
        found += [
            ("max", low, f"min is larger than max: {high}") if low > high else None,
            ("max", high, f"max is larger than capacity value: {most}") if high > most else None,
            ("max", default, f"default is more than max: {high}") if default > high else None,
        ]
    if step is not None:
        reached = low + step
        if reached > most:
            found.append(("step", step, f"one step {reached} is larger than capacity value: {most}"))
        detail = f"value is not a multiple of a given step ({step}) from ({low})"
        ends = [default] if high is None else [default, high]
        found += [("step", end, detail) for end in ends if step.value and (end.value - low.value) % step.value]
    return [field.invalid(path.child(row[0]), str(row[1]), row[2]) for row in found if row is not None]


def taint_errors(taint: Object, path: Path, known_effect: str | None = None) -> ErrorList:
    """`known_effect`: that of before, which isn't judged again."""
    value, effect = taint.get("value", ""), taint.get("effect", "")
    errors = _label_key_errors(taint.get("key", ""), path.child("key"))
    errors += name_errors(value, names.is_valid_label_value, path.child("value"))
    if effect == known_effect:
        return errors
    if not effect:
        errors.append(field.required(path.child("effect")))
    elif effect not in _EFFECTS:
        errors.append(field.not_supported(path.child("effect"), effect, _EFFECTS))
    return errors


def _counter_set_errors(counters: Object, path: Path) -> ErrorList:
    return _counters_errors(counters, "name", path)


def _consumption_errors(consumption: Object, path: Path) -> ErrorList:
    return _counters_errors(consumption, "counterSet", path)


def _counters_errors(holder: Object, name: str, path: Path) -> ErrorList:
    """Counters, and the name of their set."""
    found, counters, at = holder.get(name, ""), holder.get("counters"), path.child("counters")
    errors = (
        name_errors(found, names.is_dns1123_label, path.child(name)) if found else [field.required(path.child(name))]
    )
    if not counters:
        return [*errors, field.required(at)]

    def check(key: str, place: Path) -> ErrorList:
        return name_errors(key, names.is_dns1123_label, place)

    return errors + _map_errors(counters, _MAX_COUNTERS, 63, check, lambda *_: [], at)


def _binding_errors(holder: Object, path: Path) -> ErrorList:
    """Conditions that binding waits for, and that end it."""
    good, bad = (holder.get(name) or [] for name in ("bindingConditions", "bindingFailureConditions"))
    errors: ErrorList = []
    for name, listed in (("bindingConditions", good), ("bindingFailureConditions", bad)):
        errors += _list_errors(listed, _MAX_BINDING_CONDITIONS, _label_key_errors, path.child(name))
    for name, listed in (("bindingConditions", good), ("bindingFailureConditions", bad)):
        for i, condition in enumerate(listed):
            at = path.child(name).index(i)
            if condition in listed[:i]:
                errors.append(field.duplicate(at, condition))
            if listed is bad and condition in good:
                detail = "bindingFailureConditions must not overlap with bindingConditions"
                errors.append(field.invalid(at, condition, detail))
    if bad and not good:
        detail = "bindingConditions are required to use bindingFailureConditions"
        errors.append(field.invalid(path.child("bindingConditions"), None, detail))
    if good and not bad:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(field.invalid(path.child("bindingFailureConditions"), None, detail))
    return errors


# A claim's status


def claim_status_errors(claim: Object, status: Object, old: Object, *, allocates: bool) -> ErrorList:
    """`allocates`: the allocation isn't the old one."""
    allocation, reserved = status.get("allocation"), status.get("reservedFor") or ()
    errors = _set_errors(
        reserved, MAX_RESERVED, _consumer_errors, _STATUS.child("reservedFor"), lambda row: row.get("uid", "")
    )
    errors += _device_statuses_errors(status, _STATUS.child("devices"))
    if reserved and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(field.forbidden(_STATUS.child("reservedFor"), detail))
    elif is_terminating(claim) and any(row not in (old.get("reservedFor") or ()) for row in reserved):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(field.forbidden(_STATUS.child("reservedFor"), detail))
    if allocation is None or not allocates:
        return errors
    path = _STATUS.child("allocation")
    if old.get("allocation") is not None:
        return [*errors, field.invalid(path, internal_form(allocation, "AllocationResult"), "field is immutable")]
    return errors + _allocation_errors(allocation, path, _request_names(claim["spec"].get("devices") or {}))


def allocated(status: Object) -> set[tuple[str, ...]]:
    """Which devices a claim has, as `device_id` tells them apart."""
    allocation = status.get("allocation") or {}
    return {device_id(row) for row in (allocation.get("devices") or {}).get("results") or ()}


def device_id(row: Object) -> tuple[str, ...]:
    return tuple(row.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def _consumer_errors(consumer: Object, path: Path) -> ErrorList:
    return [field.required(path.child(name)) for name in ("resource", "name", "uid") if not consumer.get(name)]


def _device_statuses_errors(status: Object, path: Path) -> ErrorList:
    """Drivers tell of devices that the claim has."""
    known = allocated(status)

    def check(row: Object, at: Path) -> ErrorList:
        return _device_status_errors(row, known, at)

    return _set_errors(status.get("devices"), -1, check, path, _shown_id)


def _shown_id(row: Object) -> Object:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device_id(row), strict=True))


def _device_status_errors(row: Object, known: Collection[tuple[str, ...]], path: Path) -> ErrorList:
    errors = _device_name_errors(row, path)
    if (share := row.get("shareID")) is not None:
        errors += _uid_errors(share, path.child("shareID"))
    if device_id(row) not in known:
        errors.append(field.invalid(path, _shown_id(row), "must be an allocated device in the claim"))
    conditions, at = row.get("conditions") or (), path.child("conditions")
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(field.too_many(at, len(conditions), _MAX_CONDITIONS))
    errors += conditions_errors(conditions, at)
    if row.get("data") is not None:
        errors += _raw_errors(row["data"], path.child("data"), _MAX_PARAMETERS)
    return errors + _network_errors(row.get("networkData") or {}, path.child("networkData"))


def _device_name_errors(row: Object, path: Path) -> ErrorList:
    errors = driver_errors(row.get("driver", ""), path.child("driver"))
    errors += pool_name_errors(row.get("pool", ""), path.child("pool"))
    return errors + name_errors(row.get("device", ""), names.is_dns1123_label, path.child("device"))


def _network_errors(network: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for name, longest in (("interfaceName", _MAX_INTERFACE_NAME), ("hardwareAddress", _MAX_HARDWARE_ADDRESS)):
        if len(network.get(name, "").encode()) > longest:
            errors.append(field.too_long(path.child(name), longest))
    return errors + _set_errors(network.get("ips"), _MAX_ADDRESSES, interface_address_errors, path.child("ips"), str)


def _allocation_errors(allocation: Object, path: Path, requests: Collection[str]) -> ErrorList:
    """Devices are for what was asked for."""
    devices, at = allocation.get("devices") or {}, path.child("devices")

    def result_errors(result: Object, place: Path) -> ErrorList:
        errors = _reference_errors(result.get("request", ""), place.child("request"), requests)
        errors += _device_name_errors(result, place) + _binding_errors(result, place)
        share = result.get("shareID")
        return errors if share is None else errors + _uid_errors(share, place.child("shareID"))

    def config_errors(config: Object, place: Path) -> ErrorList:
        source, errors = config.get("source", ""), ErrorList()
        if not source:
            errors.append(field.required(place.child("source")))
        elif source not in _SOURCES:
            errors.append(field.not_supported(place.child("source"), source, _SOURCES))
        return errors + _references_errors(config, place, requests) + _configuration_errors(config, place)

    errors = _list_errors(devices.get("results"), _MAX_REQUESTS, result_errors, at.child("results"))
    errors += _list_errors(devices.get("config"), 2 * _MAX_CONFIGS, config_errors, at.child("config"))
    if (selector := allocation.get("nodeSelector")) is not None:
        errors += node_selector_errors(selector, path.child("nodeSelector"))
    return errors


def _uid_errors(uid: str, path: Path) -> ErrorList:
    if problem := _uuid_problem(uid):
        return [field.invalid(path, uid, f"error validating uid: {problem}")]
    return [] if len(uid) == 36 and uid == uid.lower() else [field.invalid(path, uid, _NO_UID)]


def _uuid_problem(uid: str) -> str:
    """As github.com/google/uuid words it, which takes several ways of writing one."""
    length = len(uid.encode())
    if length == 32:
        return "" if _IS_BARE_UUID.fullmatch(uid) else "invalid UUID format"
    if length == 45:
        if uid[:9].lower() != "urn:uuid:":
            return f"invalid urn prefix: {field.go_quote(uid[:9])}"
        uid = uid[9:]
    elif length == 38:
        if not (uid.startswith("{") and uid.endswith("}")):
            return "invalid bracketed UUID format"
        uid = uid[1:-1]
    elif length != 36:
        return f"invalid UUID length: {length}"
    return "" if _IS_UUID.fullmatch(uid) else "invalid UUID format"


# What several of them share


def driver_errors(name: str, path: Path) -> ErrorList:
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _MAX_DRIVER)] if len(name.encode()) > _MAX_DRIVER else []
    return errors + [field.invalid(path, name, problem) for problem in names.is_dns1123_subdomain(name.lower())]


def pool_name_errors(name: str, path: Path) -> ErrorList:
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _MAX_POOL)] if len(name.encode()) > _MAX_POOL else []
    return errors + [error for part in name.split("/") for error in name_errors(part, names.is_dns1123_subdomain, path)]


def _label_key_errors(key: str, path: Path) -> ErrorList:
    return name_errors(key, names.is_qualified_name, path)


def _qualified_errors(name: str, path: Path) -> ErrorList:
    """An identifier, maybe with a domain; upstream takes anything with two slashes."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return _identifier_errors(name, path)
    if "/" in identifier:
        return []
    errors = driver_errors(domain, path) if domain else [field.invalid(path, "", "the domain must not be empty")]
    if not identifier:
        return [*errors, field.invalid(path, "", "the name must not be empty")]
    return errors + _identifier_errors(identifier, path)


def _fully_qualified_errors(name: str, path: Path) -> ErrorList:
    errors = _qualified_errors(name, path)
    if "/" not in name:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(field.invalid(path, name, detail))
    return errors


def _identifier_errors(name: str, path: Path) -> ErrorList:
    errors = [field.too_long(path, _MAX_IDENTIFIER)] if len(name.encode()) > _MAX_IDENTIFIER else []
    return errors if _IS_C_IDENTIFIER.fullmatch(name) else [*errors, field.invalid(path, name, _C_IDENTIFIER_RULE)]


def _list_errors(items: Sequence[Any] | None, limit: int, check: Check, path: Path) -> ErrorList:
    """Each item's; of too many only that. A limit below 0 is none."""
    if items is None:
        return []
    if 0 <= limit < len(items):
        return [field.too_many(path, len(items), limit)]
    return [error for i, item in enumerate(items) for error in check(item, path.index(i))]


def _set_errors(
    items: Sequence[Any] | None, limit: int, check: Check, path: Path, key: Callable[[Any], Any]
) -> ErrorList:
    """As _list_errors, and what has the key of an earlier item."""
    errors = _list_errors(items, limit, check, path)
    if items is None or 0 <= limit < len(items):
        return errors
    seen: list[Any] = []
    for i, found in enumerate(map(key, items)):
        if found in seen:
            errors.append(field.duplicate(path.index(i), found))
        seen.append(found)
    return errors


def _map_errors(
    items: Mapping[str, Any], limit: int, longest: int, check_key: Check, check: Check, path: Path
) -> ErrorList:
    """Of keys at the map's place, of values at their key, which is shown in `longest` bytes at most."""
    if 0 <= limit < len(items):
        return [field.too_many(path, len(items), limit)]
    errors: ErrorList = []
    for key, item in items.items():
        errors += check_key(key, path) + check(item, path.key(_shortened(key, longest)))
    return errors


def _shortened(text: str, longest: int) -> str:
    longest = max(longest, _SHORTEST_KEY)
    if len(text) <= longest:
        return text
    rest = longest - 3
    return f"{text[: (rest + 1) // 2]}...{text[len(text) - rest // 2 :]}"
