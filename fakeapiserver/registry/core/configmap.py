"""Config maps: data that may be frozen.

Upstream: pkg/registry/core/configmap/strategy.go, pkg/apis/core/validation/validation.go (ValidateConfigMap).
"""

import base64

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.data_keys import MAX_SIZE, immutable_errors, key_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_DUPLICATE = "duplicate of key present in binaryData"


class ConfigMapStrategy(Strategy, kw_only=True):
    def validate(self, obj: Object) -> ErrorList:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        errors = key_errors(data, Path("data"))
        errors += [field.invalid(Path("data").key(key), key, _DUPLICATE) for key in data if key in binary]
        errors += key_errors(binary, Path("binaryData"))
        size = sum(len(text.encode()) for text in data.values())
        size += sum(len(base64.b64decode(text)) for text in binary.values())
        if size > MAX_SIZE:
            errors.append(field.too_long("[]", MAX_SIZE))
        return errors

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        # No data is an empty map by default; binaryData isn't.
        now, then = ({**item, "data": item.get("data") or {}} for item in (obj, old))
        return immutable_errors(now, then, ("data", "binaryData"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
        return [metadata(obj).get("name", ""), count, age(obj, now)]
