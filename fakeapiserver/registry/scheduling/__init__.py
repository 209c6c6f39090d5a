"""The scheduling.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.scheduling.podgroup import PodGroupStrategy, gated_group_fields
from fakeapiserver.registry.scheduling.priorityclass import SYSTEM_CLASSES, PriorityClassStrategy
from fakeapiserver.registry.scheduling.workload import WorkloadStrategy

_KEPT = dict.fromkeys(SYSTEM_CLASSES, "this is a system priority class and cannot be deleted")
RESOURCES: dict[str, Strategy] = {
    "podgroups": PodGroupStrategy(
        reset_fields=(),  # upstream's storage doesn't ask the strategy: who sends a status owns it, though it isn't kept
        status_reset_fields=("spec", "metadata"),
        gated_fields=gated_group_fields("spec"),
    ),
    "priorityclasses": PriorityClassStrategy(has_generation=True, never_deleted=_KEPT),
    "workloads": WorkloadStrategy(gated_fields=gated_group_fields("spec", "podGroupTemplates", "*")),
}
