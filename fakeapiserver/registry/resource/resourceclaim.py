"""Claims for devices.

Upstream: pkg/registry/resource/resourceclaim/strategy.go, pkg/apis/resource/v1/defaults.go; what is valid is in claim_validation.py
and claim_status_validation.py.
"""

from typing import Final

import msgspec

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apis.conversion_resource import OLDER_VERSIONS
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.quantity_fields import CLAIM_OF_DEVICES, same
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.raw_texts import RawTexts, TextKeepingStrategy
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.resource.claim_status_validation import allocated, claim_status_errors, device_id
from fakeapiserver.registry.resource.claim_validation import claim_spec_errors, device_features
from fakeapiserver.registry.resource.device_fields import PARAMETERS, SPEC

_OF_CLAIM: Final = (
    ("spec", "devices", "config", "*", *PARAMETERS),
    ("status", "allocation", "devices", "config", "*", *PARAMETERS),
    ("status", "devices", "*", "data"),
)


class ResourceClaimStrategy(TextKeepingStrategy, kw_only=True):
    texts: RawTexts = msgspec.field(default_factory=lambda: RawTexts(_OF_CLAIM))

    def default(self, obj: Object, version: str) -> None:
        default_requests(obj["spec"], version)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        return claim_spec_errors(obj["spec"], SPEC, device_features(self.features))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if same(obj["spec"], old["spec"], CLAIM_OF_DEVICES) and not self.texts.differ(obj, old, "spec"):
            return []
        errors = [field.invalid(SPEC, internal_form(obj["spec"], "ResourceClaimSpec"), IMMUTABLE)]
        return errors if self.features.at_least("v1.35") else errors + self.validate(obj)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        status, before = obj.get("status") or {}, old.get("status") or {}
        same_allocation = status.get("allocation") == before.get("allocation")
        same_allocation = same_allocation and not self.texts.differ(obj, old, "status", "allocation")
        features = device_features(self.features)
        return claim_status_errors(obj, status, before, allocates=not same_allocation, features=features)

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


def default_requests(spec: Object, version: str) -> None:
    """Sets the defaults of requests; in an older version, a request with a class is an exact request itself."""
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
