"""The legacy group, whose objects have apiVersion v1."""

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.core import pod
from fakeapiserver.registry.core.namespace import NamespaceStrategy
from fakeapiserver.registry.core.pod import PodStrategy
from fakeapiserver.registry.core.service import ServiceStrategy
from fakeapiserver.registry.generic.strategy import Strategy

_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

RESOURCES = {
    "endpoints": Strategy(allow_create_on_update=True),
    "events": Strategy(
        allow_create_on_update=True,
        default_propagation="Unsupported",
        selectable_fields={
            **{f"involvedObject.{name}": f"involvedObject.{name}" for name in _REFERENCE},
            "reason": "reason",
            "reportingComponent": "reportingComponent",
            "source": "source.component",
            "type": "type",
        },
    ),
    "limitranges": Strategy(allow_create_on_update=True),
    "namespaces": NamespaceStrategy(
        validate_name=names.name_is_dns_label,
        returns_deleted_object=True,
        selectable_fields={"status.phase": "status.phase"},
    ),
    "nodes": Strategy(selectable_fields={"spec.unschedulable": "spec.unschedulable"}),
    "persistentvolumeclaims": Strategy(returns_deleted_object=True),
    "persistentvolumes": Strategy(returns_deleted_object=True),
    "pods": PodStrategy(has_generation=True, returns_deleted_object=True, selectable_fields=pod.FIELDS),
    "podtemplates": Strategy(has_generation=True, returns_deleted_object=True),
    "replicationcontrollers": Strategy(
        has_generation=True, default_propagation="Orphan", selectable_fields={"status.replicas": "status.replicas"}
    ),
    "resourcequotas": Strategy(returns_deleted_object=True),
    "secrets": Strategy(selectable_fields={"type": "type"}),
    "serviceaccounts": Strategy(returns_deleted_object=True),
    "services": ServiceStrategy(
        allow_create_on_update=True,
        returns_deleted_object=True,
        selectable_fields={"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"},
    ),
}
