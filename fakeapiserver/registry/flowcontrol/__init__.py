"""The flowcontrol.apiserver.k8s.io group."""

from fakeapiserver.registry.flowcontrol.priority_and_fairness import (
    FlowSchemaStrategy,
    PriorityLevelConfigurationStrategy,
)
from fakeapiserver.registry.generic.strategy import Strategy

RESOURCES: dict[str, Strategy] = {
    "flowschemas": FlowSchemaStrategy(has_generation=True, update_meta_checks=("create",), status_meta_checks=()),
    "prioritylevelconfigurations": PriorityLevelConfigurationStrategy(
        has_generation=True, update_meta_checks=("create",), status_meta_checks=()
    ),
}
