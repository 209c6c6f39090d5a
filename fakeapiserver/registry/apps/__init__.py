"""The apps group."""

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.apps.controllerrevision import ControllerRevisionStrategy
from fakeapiserver.registry.apps.daemonset import TEMPLATE_GENERATION, DaemonSetStrategy
from fakeapiserver.registry.apps.deployment import DeploymentStrategy
from fakeapiserver.registry.apps.replicaset import ReplicaSetStrategy
from fakeapiserver.registry.apps.statefulset import StatefulSetStrategy
from fakeapiserver.registry.core.pod.template import gated_pod_fields
from fakeapiserver.registry.generic.strategy import Strategy

_TEMPLATE = gated_pod_fields("spec", "template", "spec")
_REPLICAS = {**_TEMPLATE, "DeploymentReplicaSetTerminatingReplicas": [("status", "terminatingReplicas")]}

RESOURCES: dict[str, Strategy] = {
    "controllerrevisions": ControllerRevisionStrategy(update_meta_checks=("update", "create")),
    "daemonsets": DaemonSetStrategy(
        legacy_addresses=True,
        has_generation=True,
        converted_annotations={TEMPLATE_GENERATION: "0"},
        validated_twice_until="v1.33",
        gated_fields=_TEMPLATE,
    ),
    "deployments": DeploymentStrategy(
        legacy_addresses=True,
        has_generation=True,
        status_reset_fields=("spec", "metadata.labels"),
        blank_spec={"replicas": 0},
        gated_fields=_REPLICAS,
    ),
    "replicasets": ReplicaSetStrategy(
        legacy_addresses=True,
        has_generation=True,
        blank_spec={"replicas": 0},
        validated_twice_until="v1.33",
        gated_fields=_REPLICAS,
    ),
    "statefulsets": StatefulSetStrategy(
        status_meta_checks=("status", "update"),
        legacy_addresses=True,
        has_generation=True,
        blank_spec={"replicas": 0},
        validate_name=names.name_is_dns_label,
        gated_fields={
            **_TEMPLATE,
            "MaxUnavailableStatefulSet": [("spec", "updateStrategy", "rollingUpdate", "maxUnavailable")],
        },
    ),
}
