"""The scheduling.k8s.io group."""

from fakeapiserver.apimachinery.meta import FieldPath
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.scheduling.compositepodgroup import CompositePodGroupStrategy
from fakeapiserver.registry.scheduling.podgroup import PodGroupStrategy, gated_group_fields
from fakeapiserver.registry.scheduling.priorityclass import SYSTEM_CLASSES, PriorityClassStrategy
from fakeapiserver.registry.scheduling.workload import WorkloadStrategy, gated_workload_fields

_KEPT = dict.fromkeys(SYSTEM_CLASSES, "this is a system priority class and cannot be deleted")
_PARENT: dict[str, list[FieldPath]] = {"CompositePodGroup": [("spec", "parentCompositePodGroupName")]}
RESOURCES: dict[str, Strategy] = {
    "compositepodgroups": CompositePodGroupStrategy(
        status_reset_fields=("spec", "metadata"),
        gated_fields={"PodGroupPreemptionPolicy": [("spec", "preemptionPolicy")]},
        allow_unconditional_update=False,
    ),
    "podgroups": PodGroupStrategy(
        status_reset_fields=("spec", "metadata"),
        gated_fields=gated_group_fields("spec") | _PARENT,
        allow_unconditional_update=False,
        unconditional_until="v1.36",
    ),
    "priorityclasses": PriorityClassStrategy(has_generation=True, never_deleted=_KEPT),
    "workloads": WorkloadStrategy(
        gated_fields=gated_workload_fields(),
        allow_unconditional_update=False,
        unconditional_until="v1.36",
    ),
}
