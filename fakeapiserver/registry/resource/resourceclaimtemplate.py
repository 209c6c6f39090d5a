"""Templates of resource claims.

Upstream: pkg/registry/resource/resourceclaimtemplate/strategy.go; what is valid is in claim_validation.py.
"""

from typing import Final

import msgspec

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.apis.quantity_fields import CLAIM_OF_DEVICES, same
from fakeapiserver.registry.core.template_metadata import template_meta_errors
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.raw_texts import RawTexts, TextKeepingStrategy
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.resource.claim_validation import claim_spec_errors, device_features
from fakeapiserver.registry.resource.device_fields import PARAMETERS, SPEC
from fakeapiserver.registry.resource.resourceclaim import default_requests

_OF_TEMPLATE: Final = (("spec", "spec", "devices", "config", "*", *PARAMETERS),)


class ResourceClaimTemplateStrategy(TextKeepingStrategy, kw_only=True):
    texts: RawTexts = msgspec.field(default_factory=lambda: RawTexts(_OF_TEMPLATE))

    def default(self, obj: Object, version: str) -> None:
        default_requests(obj["spec"].get("spec") or {}, version)

    def validate(self, obj: Object) -> ErrorList:
        errors = template_meta_errors(obj["spec"].get("metadata") or {}, SPEC.child("metadata"))
        return errors + claim_spec_errors(
            obj["spec"].get("spec") or {}, SPEC.child("spec"), device_features(self.features)
        )

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if same(obj["spec"], old["spec"], {"spec": CLAIM_OF_DEVICES}) and not self.texts.differ(obj, old, "spec"):
            return []
        errors = [field.invalid(SPEC, internal_form(obj["spec"], "ResourceClaimTemplateSpec"), IMMUTABLE)]
        return errors if self.features.at_least("v1.35") else errors + self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), age(obj, now)]
