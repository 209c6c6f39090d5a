"""Classes of devices.

Upstream: pkg/registry/resource/deviceclass/strategy.go; what is valid is in claim_validation.py.
"""

from typing import Final

import msgspec

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.raw_texts import RawTexts, TextKeepingStrategy
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.resource.claim_validation import class_errors, device_features
from fakeapiserver.registry.resource.device_fields import PARAMETERS

_OF_CLASS: Final = (("spec", "config", "*", *PARAMETERS),)


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
