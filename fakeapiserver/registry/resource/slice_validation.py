"""Validation of resource slices.

Upstream: pkg/apis/resource/validation/validation.go.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.core.node.selector_validation import node_selector_errors
from fakeapiserver.registry.declared.rules import MAX_IDENTIFIER
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.resource.capacity_validation import (
    DEFAULT_RULES,
    CapacityRules,
    capacity_errors,
    shared_capacity_errors,
)
from fakeapiserver.registry.resource.device_fields import (
    EFFECTS,
    SPEC,
    binding_errors,
    driver_errors,
    list_errors,
    map_errors,
    pool_name_errors,
    qualified_errors,
    set_errors,
    taint_errors,
)
from fakeapiserver.registry.resource.partition_validation import (
    allocatable_errors,
    compatibility_groups_errors,
    partition_type_errors,
    skipped_operations_errors,
)

_MAX_DEVICES: Final = 128
_MAX_ADVANCED_DEVICES: Final = 64
_MAX_COUNTER_SETS: Final = 8
_MAX_COUNTERS: Final = 32
_MAX_CONSUMPTIONS: Final = 2
_MAX_PROPERTIES: Final = 32
_MAX_QUALIFIED: Final = 63 + 1 + MAX_IDENTIFIER
_MAX_VALUE: Final = 64
_MAX_VALUES: Final = 48
_MAX_TAINTS: Final = 16
_NODES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUES: Final = ("bool", "int", "string", "version")
_DEVICE_NODES: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)
_NO_DEVICE_NODES: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_NUMBER: Final = "(0|[1-9][0-9]*)"
_PRE_RELEASE: Final = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_IS_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?"
)


def slice_errors(
    spec: Object,
    old: Object | None = None,
    *,
    one_kind: bool = True,
    effects: Sequence[str] = EFFECTS,
    capacities: CapacityRules = DEFAULT_RULES,
) -> ErrorList:
    """The errors in a slice. `old`: the spec before an update; `one_kind`: devices and counters need slices of their own, as since 1.35;
    `effects`: the allowed effects of taints; `capacities`: the version's rules for capacities."""
    pool, driver = spec.get("pool") or {}, spec.get("driver", "")
    errors = driver_errors(driver, SPEC.child("driver")) + _pool_errors(pool, SPEC.child("pool"))
    if old is not None:
        before = (old.get("pool") or {}).get("name", "")
        errors += immutable_errors(pool.get("name", ""), before, SPEC.child("pool", "name"))
        errors += immutable_errors(driver, old.get("driver", ""), SPEC.child("driver"))
        errors += immutable_errors(spec.get("nodeName"), old.get("nodeName"), SPEC.child("nodeName"))
    errors += _slice_node_errors(spec)
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None and one_kind:
        errors.append(field.invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    advanced = any(_is_advanced(device) for device in devices or ())
    before = {device.get("name", ""): device for device in reversed((old or {}).get("devices") or ())}

    def check(device: Object, path: Path) -> ErrorList:
        known = before.get(device.get("name", ""))
        per_device = bool(spec.get("perDeviceNodeSelection"))
        return _device_errors(device, known, path, per_device=per_device, effects=effects, capacities=capacities)

    limit = _MAX_ADVANCED_DEVICES if advanced else _MAX_DEVICES
    errors += set_errors(devices, limit, check, SPEC.child("devices"), lambda row: row.get("name", ""))
    errors += set_errors(
        counters, _MAX_COUNTER_SETS, _counter_set_errors, SPEC.child("sharedCounters"), lambda row: row.get("name", "")
    )
    errors += partition_type_errors(spec, SPEC)
    return errors + skipped_operations_errors(spec.get("skipNodeOperations"), SPEC.child("skipNodeOperations"))


def _is_advanced(device: Object) -> bool:
    """Reports whether a slice with the device may have fewer devices."""
    attributes = (device.get("attributes") or {}).values()
    has_lists = any(attribute.get(name) is not None for attribute in attributes for name in _LIST_VALUES)
    return bool(device.get("taints") or device.get("consumesCounters") or has_lists)


def _pool_errors(pool: Object, path: Path) -> ErrorList:
    errors = pool_name_errors(pool.get("name", ""), path.child("name"))
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(field.invalid(path.child("resourceSliceCount"), count, "must be greater than zero"))
    if generation < 0:
        errors.append(field.invalid(path.child("generation"), generation, "must be greater than or equal to zero"))
    return errors


def _slice_node_errors(spec: Object) -> ErrorList:
    errors = _node_name_errors(spec, SPEC, "must be either unset or set to a non-empty string")
    given = ["nodeName"] if spec.get("nodeName") else []
    if (selector := spec.get("nodeSelector")) is not None:
        given.append("nodeSelector")
        path = SPEC.child("nodeSelector")
        errors += node_selector_errors(selector, path)
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            detail = "must have exactly one node selector term"
            errors.append(field.invalid(path.child("nodeSelectorTerms"), _shown_terms(terms), detail))
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            given.append(name)
        elif spec.get(name) is not None:
            errors.append(field.invalid(SPEC.child(name), spec[name], "must be either unset or set to true"))
    listed = ", ".join(f"`{name}`" for name in _NODES)
    detail = f"exactly one of {listed} is required"
    if not given:
        errors.append(field.required(SPEC, detail))
    elif len(given) > 1:
        errors.append(field.invalid(SPEC, _braced(given), f"{detail}, but multiple fields are set"))
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


def _device_errors(
    device: Object,
    old: Object | None,
    path: Path,
    *,
    per_device: bool,
    effects: Sequence[str],
    capacities: CapacityRules,
) -> ErrorList:
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
    errors += map_errors(attributes, -1, _MAX_QUALIFIED, qualified_errors, _attribute_errors, at)
    if not capacities.bounded or old is None or (old.get("capacity") or {}) != capacity:
        shared = partial(shared_capacity_errors, rules=capacities)
        amounts = shared if device.get("allowMultipleAllocations") else capacity_errors
        errors += map_errors(capacity, -1, _MAX_QUALIFIED, qualified_errors, amounts, path.child("capacity"))
    taints = device.get("taints")
    if old is None or (old.get("taints") or []) != (taints or []):
        errors += list_errors(taints, _MAX_TAINTS, partial(taint_errors, effects=effects), path.child("taints"))
    errors += set_errors(
        device.get("consumesCounters"),
        _MAX_CONSUMPTIONS,
        _consumption_errors,
        path.child("consumesCounters"),
        lambda row: row.get("counterSet", ""),
    )
    errors += _device_node_errors(device, path, per_device=per_device)
    errors += binding_errors(device, path)
    mappings = device.get("nodeAllocatableResourceMappings") or {}
    errors += _mapping_errors(mappings, capacity, path.child("nodeAllocatableResourceMappings"))
    resources = device.get("nodeAllocatableResources") or {}
    return errors + allocatable_errors(resources, capacity, path.child("nodeAllocatableResources"))


def _mapping_errors(mappings: Object, capacity: Object, path: Path) -> ErrorList:
    """The errors in a device's mappings to the node's allocatable resources."""
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
    go_attribute = internal_form(attribute, "DeviceAttribute") if given else ""
    return [*errors, field.invalid(path, go_attribute, "exactly one value must be specified")]


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


def _counter_set_errors(counters: Object, path: Path) -> ErrorList:
    return _counters_errors(counters, "name", path)


def _consumption_errors(consumption: Object, path: Path) -> ErrorList:
    errors = _counters_errors(consumption, "counterSet", path)
    return errors + compatibility_groups_errors(
        consumption.get("compatibilityGroups"), path.child("compatibilityGroups")
    )


def _counters_errors(holder: Object, name: str, path: Path) -> ErrorList:
    """The errors in counters, and in the name of their set."""
    counter_set, counters, at = holder.get(name, ""), holder.get("counters"), path.child("counters")
    errors = (
        name_errors(counter_set, names.is_dns1123_label, path.child(name))
        if counter_set
        else [field.required(path.child(name))]
    )
    if not counters:
        return [*errors, field.required(at)]

    def check(key: str, place: Path) -> ErrorList:
        return name_errors(key, names.is_dns1123_label, place)

    return errors + map_errors(counters, _MAX_COUNTERS, 63, check, lambda *_: [], at)
