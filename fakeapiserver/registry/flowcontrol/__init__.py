"""The flowcontrol.apiserver.k8s.io group."""

from typing import Any

from fakeapiserver.registry.flowcontrol.flowschema import FlowSchemaStrategy
from fakeapiserver.registry.flowcontrol.prioritylevelconfiguration import PriorityLevelConfigurationStrategy
from fakeapiserver.registry.generic.strategy import Strategy

_FACTS: dict[str, Any] = {
    "has_generation": True,
    "status_reset_fields": ("spec", "metadata"),
    "update_meta_checks": ("create",),
    "status_meta_checks": (),
}
RESOURCES: dict[str, Strategy] = {
    "flowschemas": FlowSchemaStrategy(**_FACTS),
    "prioritylevelconfigurations": PriorityLevelConfigurationStrategy(**_FACTS),
}
