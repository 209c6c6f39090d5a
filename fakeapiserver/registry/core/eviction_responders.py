"""The responders that take part in a pod's eviction (registry/lifecycle), a field since 1.37 behind the gate EvictionRequestAPI.

Upstream: pkg/apis/core/v1/{zz_generated.validations.go,validation.go}.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import DEFAULT_GATES
from fakeapiserver.registry.declared.rules import not_reserved, prefixed_label_key
from fakeapiserver.registry.declared.types import (
    Field,
    Fields,
    Value,
    between,
    declared_errors,
    most_items,
    required,
    text,
    unique_names,
)

_MOST: Final = 10
_HIGHEST_PRIORITY: Final = 100_000
_RESERVED_PRIORITIES: Final = 1000


def _not_of_kubernetes(value: Value, path: Path) -> ErrorList:
    detail = "priorities 0-999 are reserved for responders with *.k8s.io suffix"
    return [field.invalid(path, value.new, detail)] if 0 <= value.new < _RESERVED_PRIORITIES else []


_RESPONDER: Final[Fields] = {
    "name": Field(stops=[required], checks=[text(not_reserved), text(prefixed_label_key)]),
    "priority": Field(stops=[required], checks=[_not_of_kubernetes, between(0, _HIGHEST_PRIORITY)], is_pointer=True),
}
_FIELDS: Final[Fields] = {
    "evictionResponders": Field(
        stops=[most_items(_MOST)], checks=[unique_names(_RESPONDER)], fields=_RESPONDER, is_list=True
    )
}


def eviction_responder_errors(spec: Object, path: Path) -> ErrorList:
    """The errors in who takes part in the eviction of a pod with this spec."""
    return declared_errors(_FIELDS, spec, None, DEFAULT_GATES, path) if spec.get("evictionResponders") else []
