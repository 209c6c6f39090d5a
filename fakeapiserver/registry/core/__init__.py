"""The legacy group, whose objects have apiVersion v1."""

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.registry.core import event
from fakeapiserver.registry.core.componentstatus import ComponentStatusStrategy
from fakeapiserver.registry.core.configmap import ConfigMapStrategy
from fakeapiserver.registry.core.endpoints import EndpointsStrategy
from fakeapiserver.registry.core.event import EventStrategy
from fakeapiserver.registry.core.limitrange import LimitRangeStrategy
from fakeapiserver.registry.core.namespace import NamespaceStrategy
from fakeapiserver.registry.core.node.strategy import NodeStrategy
from fakeapiserver.registry.core.pod import strategy as pod
from fakeapiserver.registry.core.pod.strategy import PodStrategy
from fakeapiserver.registry.core.pod.template import gated_pod_fields, gated_whole_pod
from fakeapiserver.registry.core.podtemplate import PodTemplateStrategy
from fakeapiserver.registry.core.replicationcontroller import ReplicationControllerStrategy
from fakeapiserver.registry.core.resourcequota import ResourceQuotaStrategy
from fakeapiserver.registry.core.secret import SecretStrategy
from fakeapiserver.registry.core.service.strategy import ServiceStrategy
from fakeapiserver.registry.core.serviceaccount import ServiceAccountStrategy
from fakeapiserver.registry.core.volume.persistentvolume import PersistentVolumeStrategy
from fakeapiserver.registry.core.volume.persistentvolumeclaim import PersistentVolumeClaimStrategy

RESOURCES = {
    "componentstatuses": ComponentStatusStrategy(),
    "configmaps": ConfigMapStrategy(update_meta_checks=("update", "immutable", "create"), keeps_texts=True),
    "endpoints": EndpointsStrategy(
        legacy_addresses=True, allow_create_on_update=True, update_meta_checks=("update", "create")
    ),
    "events": EventStrategy(
        allow_create_on_update=True,
        default_propagation="Unsupported",
        create_checks=("spec",),
        update_meta_checks=("spec",),
        selectable_fields=event.FIELDS,
    ),
    "limitranges": LimitRangeStrategy(allow_create_on_update=True, update_meta_checks=("create",)),
    "namespaces": NamespaceStrategy(
        validate_name=names.name_is_dns_label,
        returns_deleted_object=True,
        ends_in_two_steps=True,
        update_meta_checks=("create", "update"),
        selectable_fields={"status.phase": "status.phase"},
    ),
    "nodes": NodeStrategy(
        legacy_addresses=True,
        update_meta_checks=("create", "spec", "update"),
        selectable_fields={"spec.unschedulable": "spec.unschedulable"},
        gated_fields={"InPlacePodVerticalScalingSchedulerPreemption": [("spec", "podPreemptionPolicy")]},
    ),
    "persistentvolumeclaims": PersistentVolumeClaimStrategy(
        validated_twice_until="v1.34",
        returns_deleted_object=True,
        update_meta_checks=("update", "create"),
        gated_fields={
            "CSIVolumeHealth": [("status", "healthStatus")],
            "VolumeAttributesClass": [
                ("spec", "volumeAttributesClassName"),
                ("status", "currentVolumeAttributesClassName"),
                ("status", "modifyVolumeStatus"),
            ],
            "RecoverVolumeExpansionFailure": [
                ("status", "allocatedResources"),
                ("status", "allocatedResourceStatuses"),
            ],
        },
    ),
    "persistentvolumes": PersistentVolumeStrategy(
        returns_deleted_object=True,
        update_meta_checks=("create", "spec", "create"),
        gated_fields={"VolumeAttributesClass": [("spec", "volumeAttributesClassName")]},
    ),
    "pods": PodStrategy(
        legacy_addresses=True,
        graceful=True,
        status_reset_fields=("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
        has_generation=True,
        returns_deleted_object=True,
        update_meta_checks=("update", "create"),
        selectable_fields=pod.FIELDS,
        gated_fields=gated_whole_pod(),
    ),
    "podtemplates": PodTemplateStrategy(
        legacy_addresses=True,
        has_generation=True,
        returns_deleted_object=True,
        gated_fields=gated_pod_fields("template", "spec"),
    ),
    "replicationcontrollers": ReplicationControllerStrategy(
        legacy_addresses=True,
        validated_twice_until="v1.34",
        validate_name=names.name_is_long,
        validates_generate_name=False,
        has_generation=True,
        default_propagation="Orphan",
        selectable_fields={"status.replicas": "status.replicas"},
        gated_fields=gated_pod_fields("spec", "template", "spec"),
    ),
    "resourcequotas": ResourceQuotaStrategy(returns_deleted_object=True),
    "secrets": SecretStrategy(update_meta_checks=("update", "immutable", "create"), selectable_fields={"type": "type"}),
    "serviceaccounts": ServiceAccountStrategy(returns_deleted_object=True, update_meta_checks=("update", "create")),
    "services": ServiceStrategy(
        legacy_addresses=True,
        companions=(GroupResource("", "endpoints"),),
        validate_name=names.name_is_dns_label,
        allow_create_on_update=True,
        returns_deleted_object=True,
        selectable_fields={"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"},
    ),
}
