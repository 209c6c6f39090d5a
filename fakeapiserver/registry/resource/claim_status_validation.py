"""Validation of the allocation and the devices in a claim's status.

Upstream: pkg/apis/resource/validation/validation.go.
"""

import re
from collections.abc import Collection
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, is_terminating
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import interface_address_errors, name_errors
from fakeapiserver.registry.core.node.selector_validation import node_selector_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.registry.resource.claim_validation import (
    DEFAULT_FEATURES,
    DeviceFeatures,
    configuration_errors,
    raw_errors,
    reference_errors,
    references_errors,
    request_names,
    tolerations_errors,
)
from fakeapiserver.registry.resource.device_fields import (
    MAX_CONFIGS,
    MAX_PARAMETERS,
    MAX_REQUESTS,
    binding_errors,
    driver_errors,
    list_errors,
    pool_name_errors,
    set_errors,
)
from fakeapiserver.registry.resource.partition_validation import skipped_operations_errors

_STATUS: Final = Path("status")
MAX_RESERVED: Final = 256
_MAX_CONDITIONS: Final = 8
_MAX_ADDRESSES: Final = 16
_MAX_INTERFACE_NAME: Final = 256
_MAX_HARDWARE_ADDRESS: Final = 128
_SOURCES: Final = ("FromClaim", "FromClass")
_IS_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_IS_BARE_UUID: Final = re.compile("[0-9a-fA-F]{32}")
_NO_UID: Final = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"


def claim_status_errors(
    claim: Object, status: Object, old: Object, *, allocates: bool, features: DeviceFeatures = DEFAULT_FEATURES
) -> ErrorList:
    """The errors in a claim's status. `allocates`: the allocation has changed."""
    allocation, reserved = status.get("allocation"), status.get("reservedFor") or ()
    errors = set_errors(
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
    return errors + _allocation_errors(allocation, path, request_names(claim["spec"].get("devices") or {}), features)


def allocated(status: Object) -> set[tuple[str, ...]]:
    """The identifiers (`device_id`) of the devices that are allocated to a claim."""
    allocation = status.get("allocation") or {}
    return {device_id(row) for row in (allocation.get("devices") or {}).get("results") or ()}


def device_id(row: Object) -> tuple[str, ...]:
    return tuple(row.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def _consumer_errors(consumer: Object, path: Path) -> ErrorList:
    return [field.required(path.child(name)) for name in ("resource", "name", "uid") if not consumer.get(name)]


def _device_statuses_errors(status: Object, path: Path) -> ErrorList:
    """The errors in device statuses, which must be about allocated devices."""
    known = allocated(status)

    def check(row: Object, at: Path) -> ErrorList:
        return _device_status_errors(row, known, at)

    return set_errors(status.get("devices"), -1, check, path, _shown_id)


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
        errors += raw_errors(row["data"], path.child("data"), MAX_PARAMETERS)
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
    return errors + set_errors(network.get("ips"), _MAX_ADDRESSES, interface_address_errors, path.child("ips"), str)


def _allocation_errors(
    allocation: Object, path: Path, requests: Collection[str], features: DeviceFeatures
) -> ErrorList:
    """The errors in an allocation, whose devices must belong to requests."""
    devices, at = allocation.get("devices") or {}, path.child("devices")

    def result_errors(result: Object, place: Path) -> ErrorList:
        errors = reference_errors(result.get("request", ""), place.child("request"), requests)
        errors += _device_name_errors(result, place) + binding_errors(result, place)
        if features.declares:
            errors += tolerations_errors(result, place, features)
        if (share := result.get("shareID")) is not None:
            errors += _uid_errors(share, place.child("shareID"))
        return errors + skipped_operations_errors(result.get("skipNodeOperations"), place.child("skipNodeOperations"))

    def config_errors(config: Object, place: Path) -> ErrorList:
        source, errors = config.get("source", ""), ErrorList()
        if not source:
            errors.append(field.required(place.child("source")))
        elif source not in _SOURCES:
            errors.append(field.not_supported(place.child("source"), source, _SOURCES))
        return errors + references_errors(config, place, requests) + configuration_errors(config, place)

    errors = list_errors(devices.get("results"), MAX_REQUESTS, result_errors, at.child("results"))
    errors += list_errors(devices.get("config"), 2 * MAX_CONFIGS, config_errors, at.child("config"))
    if (selector := allocation.get("nodeSelector")) is not None:
        errors += node_selector_errors(selector, path.child("nodeSelector"))
    return errors


def _uid_errors(uid: str, path: Path) -> ErrorList:
    if problem := _uuid_problem(uid):
        return [field.invalid(path, uid, f"error validating uid: {problem}")]
    return [] if len(uid) == 36 and uid == uid.lower() else [field.invalid(path, uid, _NO_UID)]


def _uuid_problem(uid: str) -> str:
    """The error in a UUID as github.com/google/uuid words it, which accepts several notations; empty for a valid one."""
    length = len(uid.encode())
    if length == 32:
        return "" if _IS_BARE_UUID.fullmatch(uid) else "invalid UUID format"
    if length == 45:
        if uid[:9].lower() != "urn:uuid:":
            return f"invalid urn prefix: {go_quote(uid[:9])}"
        uid = uid[9:]
    elif length == 38:
        if not (uid.startswith("{") and uid.endswith("}")):
            return "invalid bracketed UUID format"
        uid = uid[1:-1]
    elif length != 36:
        return f"invalid UUID length: {length}"
    return "" if _IS_UUID.fullmatch(uid) else "invalid UUID format"
