"""CSI drivers, nodes and capacities, and volume attachments.

Upstream: pkg/registry/storage/{csidriver,csinode,csistoragecapacity,volumeattachment}/strategy.go,
pkg/apis/storage/validation/validation.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import (
    duplicate_errors,
    name_errors,
    non_negative_amount_errors,
    non_negative_errors,
)
from fakeapiserver.registry.core.node_label_warnings import node_selector_warnings
from fakeapiserver.registry.core.persistentvolume import default_persistent_source, volume_spec_errors
from fakeapiserver.registry.core.resource_list import round_up_resources
from fakeapiserver.registry.core.volume_sources import csi_driver_errors
from fakeapiserver.registry.generic.label_selector import (
    immutable_errors,
    immutable_selector_errors,
    label_selector_errors,
)
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, UNSET, age
from fakeapiserver.registry.storage.parameters import size_errors

_FLAGS = ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")
_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES: Final = ("Persistent", "Ephemeral")
_LEAST_PERIOD: Final = 10
_LEAST_EXPIRATION: Final = 600
_MAX_NODE_ID: Final = 256
_MAX_MESSAGE: Final = 1024
_TOKENS_LOGGED = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging "
    "of tokens in volume attributes"
)


class CSIDriverStrategy(Strategy, kw_only=True):
    def raises_generation(self, obj: Object, old: Object) -> bool:
        """Upstream never sets a first generation, but counts on."""
        return obj.get("spec") != old.get("spec")

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        spec.setdefault("attachRequired", True)
        for name in _FLAGS:
            spec.setdefault(name, False)
        if self.features.enabled("VolumeLimitScaling"):
            spec.setdefault("preventPodSchedulingIfMissing", False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, obj: Object) -> ErrorList:
        return _driver_spec_errors(obj["spec"], Path("spec"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = self.validate(obj)
        for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
            errors += immutable_errors(obj["spec"].get(name), old["spec"].get(name), Path("spec").child(shown))
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        spec = obj["spec"]
        might_help = self.features.enabled("CSIServiceAccountTokenSecrets")
        if might_help and spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
            return [_TOKENS_LOGGED]
        return []

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        same = obj["spec"].get("tokenRequests") == old["spec"].get("tokenRequests")
        return [] if same else self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        requests = spec.get("tokenRequests")
        return [
            metadata(obj).get("name", ""),
            spec.get("attachRequired", True),
            spec.get("podInfoOnMount", False),
            spec.get("storageCapacity", False),
            UNSET if requests is None else ",".join(request.get("audience", "") for request in requests),
            spec.get("requiresRepublish", False),
            ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
            age(obj, now),
        ]


class CSINodeStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = []
        path, seen = Path("spec.drivers"), set[str]()
        for i, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
            errors += _node_driver_errors(driver, seen, path.index(i))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = self.validate(obj)
        drivers = (obj.get("spec") or {}).get("drivers") or ()
        for before in (old.get("spec") or {}).get("drivers") or ():
            for driver in drivers:
                if driver.get("name", "") == before.get("name", ""):
                    new, then = _fixed_of_driver(driver), _fixed_of_driver(before)
                    errors += immutable_errors(new, then, Path("spec.drivers"))
        return errors

    def table_row(self, obj: Object, now: float) -> Cells:
        drivers = (obj.get("spec") or {}).get("drivers") or ()
        return [metadata(obj).get("name", ""), len(drivers), age(obj, now)]


class CSIStorageCapacityStrategy(Strategy, kw_only=True):
    def warnings_on_create(self, obj: Object) -> list[str]:
        return node_selector_warnings(obj.get("nodeTopology"), Path("nodeTopology"))

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def validate(self, obj: Object) -> ErrorList:
        errors = label_selector_errors(obj.get("nodeTopology"), Path("nodeTopology"))
        name = obj.get("storageClassName", "")
        errors += name_errors(name, names.is_dns1123_subdomain, Path("storageClassName"))
        if (capacity := obj.get("capacity")) is not None:
            errors += non_negative_amount_errors(capacity, Path("capacity"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = immutable_selector_errors(obj.get("nodeTopology"), old.get("nodeTopology"), Path("nodeTopology"))
        now, then = obj.get("storageClassName", ""), old.get("storageClassName", "")
        return errors + immutable_errors(now, then, Path("storageClassName"))


class VolumeAttachmentStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        inline = ((obj.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec")
        if inline is not None:
            round_up_resources(inline, ("capacity",))
            default_persistent_source(inline)

    def validate(self, obj: Object) -> ErrorList:
        spec, path = obj["spec"], Path("spec")
        source, at = spec.get("source") or {}, path.child("source")
        errors = csi_driver_errors(spec.get("attacher", ""), path.child("attacher"))
        errors += _source_errors(source, at)
        errors += name_errors(spec.get("nodeName", ""), names.is_dns1123_subdomain, path.child("nodeName"))
        errors += _attachment_status_errors(obj.get("status") or {}, Path("status"))
        if (volume := source.get("persistentVolumeName")) is not None:
            errors += name_errors(volume, names.is_dns1123_subdomain, at.child("persistentVolumeName"))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return immutable_errors(_attachment_form(obj["spec"]), _attachment_form(old["spec"]), Path("spec"))

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"attached": False}

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("attacher", ""),
            (spec.get("source") or {}).get("persistentVolumeName", ""),
            spec.get("nodeName", ""),
            (obj.get("status") or {}).get("attached", False),
            age(obj, now),
        ]


def _source_errors(source: Object, path: Path) -> ErrorList:
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        return [field.required(path, detail)]
    if volume is not None and inline is not None:
        return [field.forbidden(path, detail)]
    if volume == "":
        return [field.required(path.child("persistentVolumeName"), "must specify non empty persistentVolumeName")]
    if inline is not None:
        return volume_spec_errors(inline, path.child("inlineVolumeSpec"), "", inline=True)
    return []


def _attachment_status_errors(status: Object, path: Path) -> ErrorList:
    errors = size_errors(status.get("attachmentMetadata") or {}, path.child("attachmentMetadata"))
    for name in ("attachError", "detachError"):
        found, at = status.get(name) or {}, path.child(name)
        if len(found.get("message", "").encode()) > _MAX_MESSAGE:
            # Upstream names the limit of the metadata.
            errors.append(field.too_long(at.child("message"), 256 * 1024))
        if (code := found.get("errorCode", 0)) < 0:
            errors.append(field.invalid(at.child("errorCode"), code, "must be between 0 and 2147483647, inclusive"))
    return errors


def _attachment_form(spec: Object) -> Object:
    """As Go's internal type prints it."""
    source = spec.get("source") or {}
    inline = source.get("inlineVolumeSpec")
    return {
        "Attacher": spec.get("attacher", ""),
        "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": None if inline is None else internal_form(inline, "PersistentVolumeSpec"),
        },
        "NodeName": spec.get("nodeName", ""),
    }


def _driver_spec_errors(spec: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    policy, modes = spec["fsGroupPolicy"], spec["volumeLifecycleModes"]
    if policy not in _POLICIES:
        errors.append(field.not_supported(path.child("fsGroupPolicy"), policy, _POLICIES))
    errors += _token_errors(spec.get("tokenRequests") or (), path.child("tokenRequests"))
    at = path.child("volumeLifecycleModes")
    errors += [field.not_supported(at, mode, _LIFECYCLES) for mode in modes if mode not in _LIFECYCLES]
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _LEAST_PERIOD:
        at = path.child("nodeAllocatableUpdatePeriodSeconds")
        errors.append(field.invalid(at, period, f"must be greater than or equal to {_LEAST_PERIOD} seconds"))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(field.invalid(path.child("serviceAccountTokenInSecrets"), in_secrets, detail))
    return errors


def _token_errors(requests: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, request in enumerate(requests):
        at = path.index(i)
        if twice := duplicate_errors(request.get("audience", ""), seen, at.child("audience")):
            errors += twice
            continue
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < _LEAST_EXPIRATION:
            detail = "may not specify a duration less than 10 minutes"
            errors.append(field.invalid(at.child("expirationSeconds"), seconds, detail))
        if seconds is not None and seconds > 1 << 32:
            detail = "may not specify a duration larger than 2^32 seconds"
            errors.append(field.invalid(at.child("expirationSeconds"), seconds, detail))
    return errors


def _node_driver_errors(driver: Object, seen: set[str], path: Path) -> ErrorList:
    name, node = driver.get("name", ""), driver.get("nodeID", "")
    errors = csi_driver_errors(name, path.child("name"))
    if not node:
        errors.append(field.required(path.child("nodeID")))
    if len(node.encode()) > _MAX_NODE_ID:
        errors.append(field.invalid(path.child("nodeID"), node, f"must be {_MAX_NODE_ID} characters or less"))
    count = (driver.get("allocatable") or {}).get("count")
    if count is not None:
        errors += non_negative_errors(count, path.child("allocatable").child("count"))
    errors += duplicate_errors(name, seen, path.child("name"))
    keys: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        errors += [] if key else [field.required(path)]
        errors += duplicate_errors(key, keys, path) + name_errors(key, names.is_qualified_name, path)
    return errors


def _fixed_of_driver(driver: Object) -> Object:
    """What of a node's driver can't change: all but how many volumes it takes. As Go's internal type prints it."""
    return {
        "Name": driver.get("name", ""),
        "NodeID": driver.get("nodeID", ""),
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }
