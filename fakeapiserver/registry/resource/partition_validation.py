"""Rules of alpha fields of slices and allocations: types of partitions, operations that nodes skip, compatibility groups, what devices
take of nodes.

Upstream: pkg/apis/resource/validation/validation.go, pkg/apis/resource/v1/zz_generated.validations.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.declared.rules import qualified_name_errors, union_errors
from fakeapiserver.registry.resource.device_fields import fully_qualified_errors, set_errors

_MAX_GROUPS: Final = 2
_PREPARE: Final = "NodePrepareResources"
_UNPREPARE: Final = "NodeUnprepareResources"
_OPERATIONS: Final = ("*", _PREPARE, _UNPREPARE)


def partition_type_errors(spec: Object, path: Path) -> ErrorList:
    """The errors in a slice's `partitionTypeAttribute`: each device that consumes counters must have this attribute, as a string."""
    name = spec.get("partitionTypeAttribute")
    if name is None:
        return []
    at = path.child("partitionTypeAttribute")
    errors, devices = qualified_name_errors(name, at), spec.get("devices") or ()
    if not any(device.get("consumesCounters") for device in devices):
        detail = "may only be set on a slice which declares devices that consume counters"
        return [field.invalid(at, name, detail), *errors]
    if fully_qualified_errors(name, at):
        return errors
    bare_name = name.removeprefix(f"{spec.get('driver', '')}/")
    for i, device in enumerate(devices):
        if device.get("consumesCounters"):
            attributes = device.get("attributes") or {}
            attribute = attributes.get(name, attributes.get(bare_name))
            errors += _partition_type_errors(attribute, path.child("devices").index(i).child("attributes").key(name))
    return errors


def _partition_type_errors(attribute: Object | None, path: Path) -> ErrorList:
    if attribute is None:
        detail = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
        return [field.required(path, detail)]
    if attribute.get("string") is None:
        detail = "must be a string value because `partitionTypeAttribute` names this attribute"
        return [field.invalid(path, internal_form(attribute, "DeviceAttribute"), detail)]
    return []


def skipped_operations_errors(operations: Sequence[str] | None, path: Path) -> ErrorList:
    """The errors in `skipNodeOperations`, a set of operations or "*"."""
    if not operations:
        return []
    errors: ErrorList = []
    if _PREPARE in operations and _UNPREPARE not in operations and "*" not in operations:
        detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        errors.append(field.invalid(path, operations, detail))

    def check(operation: str, at: Path) -> ErrorList:
        return [] if operation in _OPERATIONS else [field.not_supported(at, operation, _OPERATIONS)]

    return errors + set_errors(operations, -1, check, path, str)


def compatibility_groups_errors(groups: Sequence[str] | None, path: Path) -> ErrorList:
    """The errors in the compatibility groups of a device that consumes counters."""

    def check(group: str, at: Path) -> ErrorList:
        return name_errors(group, names.is_dns1123_label, at)

    return set_errors(groups, _MAX_GROUPS, check, path, str)


def allocatable_errors(resources: Object, capacity: Object, path: Path) -> ErrorList:
    """The errors in what a device takes of the node's allocatable resources, as since 1.37."""
    errors: ErrorList = []
    for name, resource in resources.items():
        at, mapping, overhead = path.key(name), resource.get("mapping"), resource.get("overhead")
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            errors.append(field.invalid(at, name, "must be a node allocatable resource name"))
        if mapping is None and overhead is None:
            errors.append(field.required(at, "at least one of mapping or overhead must be set"))
        if mapping is not None:
            errors += _allocatable_mapping_errors(mapping, capacity, at.child("mapping"))
        if overhead is not None:
            errors += _overhead_errors(overhead, at.child("overhead"))
    return errors


def _allocatable_mapping_errors(mapping: Object, capacity: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    key, multiplier = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    if key == "":
        errors.append(field.invalid(path.child("capacityKey"), "", "capacityKey must not be an empty string"))
    elif key is not None and key not in capacity:
        errors.append(field.not_found(path.child("capacityKey"), key))
    if key is not None and multiplier is None:
        detail = "capacityMultiplier is required when capacityKey is set"
        errors.append(field.required(path.child("capacityMultiplier"), detail))
    elif key is not None:
        errors += _positive_errors(multiplier, path.child("capacityMultiplier"))
    if mapping.get("deviceMultiplier") is not None:
        errors += _positive_errors(mapping["deviceMultiplier"], path.child("deviceMultiplier"))
    if multiplier is not None and key is None:
        errors.append(
            field.required(path.child("capacityKey"), "capacityKey is required when capacityMultiplier is set")
        )
    return errors + union_errors(mapping, ("capacityKey", "deviceMultiplier"), path)


def _positive_errors(number: object, path: Path) -> ErrorList:
    return [] if parse(str(number)).amount > 0 else [field.invalid(path, str(number), "must be positive")]


def _overhead_errors(overhead: Object, path: Path) -> ErrorList:
    given = {name: str(overhead[name]) for name in ("perPod", "perContainer") if overhead.get(name) is not None}
    if not given:
        return [field.invalid(path, "", "at least one of perPod or perContainer must be set")]
    negative = [name for name, number in given.items() if parse(number).amount < 0]
    return [field.invalid(path.child(name), given[name], "must be non-negative") for name in negative]
