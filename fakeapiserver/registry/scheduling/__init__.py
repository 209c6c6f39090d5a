"""The scheduling.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.scheduling.priorityclass import SYSTEM_CLASSES, PriorityClassStrategy

_KEPT = dict.fromkeys(SYSTEM_CLASSES, "this is a system priority class and cannot be deleted")
RESOURCES: dict[str, Strategy] = {
    "priorityclasses": PriorityClassStrategy(has_generation=True, never_deleted=_KEPT),
}
