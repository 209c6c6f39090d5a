"""The quantities in built-in kinds, and comparisons of values in which quantities are compared by their amounts.

Upstream: k8s.io/apimachinery/pkg/api/equality/semantic.go. "1Gi" may become "1073741824" in an immutable field, and
doesn't raise the generation.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Optional

from fakeapiserver.apimachinery.meta import equal
from fakeapiserver.apimachinery.quantity import amount

# What is below each field; "*" is every item of a list, or every key of a map that isn't named. None: a quantity.
QuantityFields = Mapping[str, Optional["QuantityFields"]]

NO_QUANTITIES: Final[QuantityFields] = MappingProxyType({})
_AMOUNTS: Final[QuantityFields] = {"*": None}
_RESOURCES: Final[QuantityFields] = {"limits": _AMOUNTS, "requests": _AMOUNTS}
_RESOURCE_FIELD: Final[QuantityFields] = {"resourceFieldRef": {"divisor": None}}
_DOWNWARD_API: Final[QuantityFields] = {"items": {"*": _RESOURCE_FIELD}}
CONTAINER: Final[QuantityFields] = {"resources": _RESOURCES, "env": {"*": {"valueFrom": _RESOURCE_FIELD}}}
CLAIM: Final[QuantityFields] = {"spec": {"resources": _RESOURCES}}
_VOLUME: Final[QuantityFields] = {
    "emptyDir": {"sizeLimit": None},
    "downwardAPI": _DOWNWARD_API,
    "projected": {"sources": {"*": {"downwardAPI": _DOWNWARD_API}}},
    "ephemeral": {"volumeClaimTemplate": CLAIM},
}
POD_SPEC: Final[QuantityFields] = {
    "containers": {"*": CONTAINER},
    "initContainers": {"*": CONTAINER},
    "ephemeralContainers": {"*": CONTAINER},
    "resources": _RESOURCES,
    "overhead": _AMOUNTS,
    "volumes": {"*": _VOLUME},
}
POD_TEMPLATE: Final[QuantityFields] = {"spec": POD_SPEC}
# Of whole objects.
IN_POD: Final[QuantityFields] = MappingProxyType({"spec": POD_SPEC})
IN_WORKLOAD: Final[QuantityFields] = MappingProxyType({"spec": {"template": POD_TEMPLATE}})
IN_STATEFUL_SET: Final[QuantityFields] = MappingProxyType(
    {"spec": {"template": POD_TEMPLATE, "volumeClaimTemplates": {"*": CLAIM}}}
)
IN_CRON_JOB: Final[QuantityFields] = MappingProxyType({"spec": {"jobTemplate": IN_WORKLOAD}})
IN_POD_TEMPLATE: Final[QuantityFields] = MappingProxyType({"template": POD_TEMPLATE})
_DEVICE_REQUEST: Final[QuantityFields] = {"capacity": {"requests": _AMOUNTS}}
CLAIM_OF_DEVICES: Final[QuantityFields] = {
    "devices": {"requests": {"*": {"exactly": _DEVICE_REQUEST, "firstAvailable": {"*": _DEVICE_REQUEST}}}}
}
_COUNTERS: Final[QuantityFields] = {"*": {"counters": {"*": {"value": None}}}}
_DEVICE: Final[QuantityFields] = {
    "capacity": {
        "*": {
            "value": None,
            "requestPolicy": {"default": None, "validValues": _AMOUNTS, "validRange": _AMOUNTS},
        }
    },
    "consumesCounters": _COUNTERS,
    "nodeAllocatableResourceMappings": {"*": {"allocationMultiplier": None}},
}
IN_RESOURCE_SLICE: Final[QuantityFields] = MappingProxyType(
    {"spec": {"devices": {"*": {**_DEVICE, "basic": _DEVICE}}, "sharedCounters": _COUNTERS}}
)


def same(new: Any, old: Any, fields: QuantityFields | None) -> bool:
    """Reports whether two values of JSON are equal, where `fields` says what below them is a quantity."""
    if equal(new, old):
        return True
    if fields is None:
        return amount(new) == amount(old)
    if not fields:
        return False  # the values differ, and nothing below them is a quantity
    if isinstance(new, dict) and isinstance(old, dict):
        every = fields.get("*", NO_QUANTITIES)
        return new.keys() == old.keys() and all(same(new[key], old[key], fields.get(key, every)) for key in new)
    if isinstance(new, list) and isinstance(old, list):
        every = fields.get("*", NO_QUANTITIES)
        return len(new) == len(old) and all(same(now, then, every) for now, then in zip(new, old, strict=True))
    return False
