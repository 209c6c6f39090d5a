"""Dynamic resource allocation: claims, their templates, classes and slices of devices.

Upstream: pkg/registry/resource/*/strategy.go, pkg/apis/resource/v1/defaults.go; what is valid is in `*_validation.py`.
"""

from typing import Final

import msgspec

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apis.conversion_resource import OLDER_VERSIONS
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.raw_texts import RawTexts, TextKeepingStrategy
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.resource.claim_status_validation import allocated, claim_status_errors, device_id
from fakeapiserver.registry.resource.claim_validation import (
    claim_spec_errors,
    class_errors,
    device_features,
    template_meta_errors,
)
from fakeapiserver.registry.resource.slice_validation import slice_errors

_SPEC: Final = Path("spec")


_PARAMETERS: Final = ("opaque", "parameters")
_OF_CLASS: Final = (("spec", "config", "*", *_PARAMETERS),)
_OF_CLAIM: Final = (
    ("spec", "devices", "config", "*", *_PARAMETERS),
    ("status", "allocation", "devices", "config", "*", *_PARAMETERS),
    ("status", "devices", "*", "data"),
)
_OF_TEMPLATE: Final = (("spec", "spec", "devices", "config", "*", *_PARAMETERS),)


class DeviceClassStrategy(TextKeepingStrategy, kw_only=True):
    texts: RawTexts = msgspec.field(default_factory=lambda: RawTexts(_OF_CLASS))

    def raises_generation(self, obj: Object, old: Object) -> bool:
        return super().raises_generation(obj, old) or self.texts.differ(obj, old)

    def validate(self, obj: Object) -> ErrorList:
        return class_errors(obj["spec"], None, device_features(self.features))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return class_errors(obj["spec"], old["spec"], device_features(self.features))

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]


class ResourceClaimStrategy(TextKeepingStrategy, kw_only=True):
    texts: RawTexts = msgspec.field(default_factory=lambda: RawTexts(_OF_CLAIM))

    def default(self, obj: Object, version: str) -> None:
        _default_requests(obj["spec"], version)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        return claim_spec_errors(obj["spec"], _SPEC, device_features(self.features))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if obj["spec"] == old["spec"] and not self.texts.differ(obj, old, "spec"):
            return []
        errors = [field.invalid(_SPEC, internal_form(obj["spec"], "ResourceClaimSpec"), IMMUTABLE)]
        return errors if self.features.at_least("v1.35") else errors + self.validate(obj)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, before = obj.get("status") or {}, old.get("status") or {}
        same = status.get("allocation") == before.get("allocation")
        same = same and not self.texts.differ(obj, old, "status", "allocation")
        return claim_status_errors(obj, status, before, allocates=not same)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        status = obj.get("status") or {}
        gone = allocated(old.get("status") or {}) - allocated(status)
        left = [row for row in status.get("devices") or () if device_id(row) not in gone]
        if status.get("devices") and not left:
            del status["devices"]
        elif len(left) < len(status.get("devices") or ()):
            status["devices"] = left

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), _state(obj), age(obj, now)]


class ResourceClaimTemplateStrategy(TextKeepingStrategy, kw_only=True):
    texts: RawTexts = msgspec.field(default_factory=lambda: RawTexts(_OF_TEMPLATE))

    def default(self, obj: Object, version: str) -> None:
        _default_requests(obj["spec"].get("spec") or {}, version)

    def validate(self, obj: Object) -> ErrorList:
        errors = template_meta_errors(obj["spec"].get("metadata") or {}, _SPEC.child("metadata"))
        return errors + claim_spec_errors(
            obj["spec"].get("spec") or {}, _SPEC.child("spec"), device_features(self.features)
        )

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if obj["spec"] == old["spec"] and not self.texts.differ(obj, old, "spec"):
            return []
        errors = [field.invalid(_SPEC, internal_form(obj["spec"], "ResourceClaimTemplateSpec"), IMMUTABLE)]
        return errors if self.features.at_least("v1.35") else errors + self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]


class ResourceSliceStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        for device in obj["spec"].get("devices") or ():
            for mapping in (device.get("basic", device).get("nodeAllocatableResourceMappings") or {}).values():
                mapping.setdefault("allocationMultiplier", "1")

    def default_times(self, obj: Object, now: str) -> None:
        for device in obj["spec"].get("devices") or ():
            for taint in device.get("basic", device).get("taints") or ():
                taint.setdefault("timeAdded", now)

    def validate(self, obj: Object) -> ErrorList:
        return slice_errors(obj["spec"], one_kind=self.features.at_least("v1.35"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return slice_errors(obj["spec"], old["spec"], one_kind=self.features.at_least("v1.35"))

    def warnings_on_create(self, obj: Object) -> list[str]:
        driver = obj["spec"].get("driver", "")
        if driver == driver.lower():
            return []
        shown = field.go_quote(driver)
        return [f"spec.driver: driver names should be lowercase; {shown} contains uppercase characters"]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        pool = (spec.get("pool") or {}).get("name", "")
        node = spec.get("nodeName", "")
        return [metadata(obj).get("name", ""), node, spec.get("driver", ""), pool, age(obj, now)]


def _default_requests(spec: Object, version: str) -> None:
    """A request of an older version that names a class says itself what it asks for."""
    flat = version in OLDER_VERSIONS
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = request.get("exactly") if not flat else request if request.get("deviceClassName") else None
        for choice in (exactly, *(request.get("firstAvailable") or ())):
            if choice is None:
                continue
            choice["allocationMode"] = choice.get("allocationMode") or "ExactCount"
            if choice["allocationMode"] == "ExactCount" and not choice.get("count"):
                choice["count"] = 1


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
