"""Names of resources that several controllers act on, and what is read from their objects."""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.errors import StatusError

NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
NODES: Final = GroupVersionResource("", "v1", "nodes")
PODS: Final = GroupVersionResource("", "v1", "pods")
SERVICES: Final = GroupVersionResource("", "v1", "services")
ENDPOINTS: Final = GroupVersionResource("", "v1", "endpoints")
SERVICE_ACCOUNTS: Final = GroupVersionResource("", "v1", "serviceaccounts")
SECRETS: Final = GroupVersionResource("", "v1", "secrets")
CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
REPLICATION_CONTROLLERS: Final = GroupVersionResource("", "v1", "replicationcontrollers")
RESOURCE_QUOTAS: Final = GroupVersionResource("", "v1", "resourcequotas")
PERSISTENT_VOLUMES: Final = GroupVersionResource("", "v1", "persistentvolumes")
PERSISTENT_VOLUME_CLAIMS: Final = GroupVersionResource("", "v1", "persistentvolumeclaims")
DEPLOYMENTS: Final = GroupVersionResource("apps", "v1", "deployments")
REPLICA_SETS: Final = GroupVersionResource("apps", "v1", "replicasets")
STATEFUL_SETS: Final = GroupVersionResource("apps", "v1", "statefulsets")
DAEMON_SETS: Final = GroupVersionResource("apps", "v1", "daemonsets")
CONTROLLER_REVISIONS: Final = GroupVersionResource("apps", "v1", "controllerrevisions")
JOBS: Final = GroupVersionResource("batch", "v1", "jobs")
CRON_JOBS: Final = GroupVersionResource("batch", "v1", "cronjobs")
ENDPOINT_SLICES: Final = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
POD_DISRUPTION_BUDGETS: Final = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
HORIZONTAL_POD_AUTOSCALERS: Final = GroupVersionResource("autoscaling", "v2", "horizontalpodautoscalers")
LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")
STORAGE_CLASSES: Final = GroupVersionResource("storage.k8s.io", "v1", "storageclasses")
CSI_NODES: Final = GroupVersionResource("storage.k8s.io", "v1", "csinodes")
CSI_DRIVERS: Final = GroupVersionResource("storage.k8s.io", "v1", "csidrivers")
CSI_STORAGE_CAPACITIES: Final = GroupVersionResource("storage.k8s.io", "v1", "csistoragecapacities")
VOLUME_ATTACHMENTS: Final = GroupVersionResource("storage.k8s.io", "v1", "volumeattachments")
RESOURCE_CLAIMS: Final = GroupVersionResource("resource.k8s.io", "v1", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES: Final = GroupVersionResource("resource.k8s.io", "v1", "resourceclaimtemplates")
RESOURCE_SLICES: Final = GroupVersionResource("resource.k8s.io", "v1", "resourceslices")
DEVICE_TAINT_RULES: Final = GroupVersionResource("resource.k8s.io", "v1", "devicetaintrules")
DEVICE_CLASSES: Final = GroupVersionResource("resource.k8s.io", "v1", "deviceclasses")
CLUSTER_ROLES: Final = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
CUSTOM_RESOURCE_DEFINITIONS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
API_SERVICES: Final = GroupVersionResource("apiregistration.k8s.io", "v1", "apiservices")
VOLUME_ATTRIBUTES_CLASSES: Final = GroupVersionResource("storage.k8s.io", "v1", "volumeattributesclasses")
SERVICE_CIDRS: Final = GroupVersionResource("networking.k8s.io", "v1", "servicecidrs")
IP_ADDRESSES: Final = GroupVersionResource("networking.k8s.io", "v1", "ipaddresses")
SUBJECT_ACCESS_REVIEWS: Final = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")
CERTIFICATE_SIGNING_REQUESTS: Final = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")
POD_CERTIFICATE_REQUESTS: Final = GroupVersionResource("certificates.k8s.io", "v1", "podcertificaterequests")
CLUSTER_TRUST_BUNDLES: Final = GroupVersionResource("certificates.k8s.io", "v1", "clustertrustbundles")


def key_of(obj: Object) -> str:
    """Returns `namespace/name`, or `name` for an object without a namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


def is_terminating(obj: Object) -> bool:
    """Reports whether the object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def labels_of(obj: Object) -> dict[str, str]:
    """Not the caller's to change."""
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels


def controller_of(obj: Object) -> dict[str, Any] | None:
    """The owner reference that says `controller`."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            owner: dict[str, Any] = reference
            return owner
    return None


def resolve_reference(indexer: Indexer, namespace: str, reference: Mapping[str, Any]) -> Object | None:
    """Returns the owner that a reference names, or None if it is gone or another object has its name now."""
    obj = indexer.get_by_key(f"{namespace}/{reference['name']}")
    return obj if obj is not None and obj["metadata"]["uid"] == reference["uid"] else None


def resolve_controller(indexer: Indexer, obj: Object, kind: str) -> Object | None:
    """Returns the object's controller if it is of this kind, the indexer's, and still the same object."""
    reference = controller_of(obj)
    if reference is None or reference["kind"] != kind:
        return None
    return resolve_reference(indexer, obj["metadata"]["namespace"], reference)


def node_reference(name: str, uid: str) -> Object:
    """Returns a reference to a node for events and owners, without its object."""
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}


def is_namespace_terminating(error: StatusError) -> bool:
    """The write came too late for its namespace."""
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
