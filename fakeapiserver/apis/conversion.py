"""Kinds that are stored once and served in several versions: in which one they are stored, and how objects change between them.

Most versions of a kind are alike: only apiVersion differs. Those that aren't are in CONVERSIONS.

Upstream: k8s.io/kubernetes/pkg/apis/<group>/<version>/conversion.go, k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis import conversion_autoscaling, conversion_resource

CORE_EVENT: Final = GroupVersionKind("", "v1", "Event")
EVENT: Final = GroupVersionKind("events.k8s.io", "v1", "Event")
HPA_V1: Final = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
HPA_V2: Final = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")

# Kinds of several versions -> the one that objects are stored in, which is what their rules are written for. Upstream's hash in
# discovery may name an older one; nothing else shows it.
_RESOURCE: Final = "resource.k8s.io"
STORED_VERSIONS: Final[Mapping[GroupKind, str]] = {
    GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "v1",
    GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "v1",
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): "v1",
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): "v1",
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): "v2",
    GroupKind("batch", "CronJob"): "v1",
    GroupKind("certificates.k8s.io", "ClusterTrustBundle"): "v1beta1",
    GroupKind("certificates.k8s.io", "PodCertificateRequest"): "v1beta1",
    GroupKind("coordination.k8s.io", "LeaseCandidate"): "v1beta1",
    GroupKind("networking.k8s.io", "IPAddress"): "v1",
    GroupKind("networking.k8s.io", "ServiceCIDR"): "v1",
    GroupKind("policy", "PodDisruptionBudget"): "v1",
    **{
        GroupKind("rbac.authorization.k8s.io", kind): "v1"
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    },
    GroupKind(_RESOURCE, "DeviceClass"): "v1",
    GroupKind(_RESOURCE, "DeviceTaintRule"): "v1beta2",
    GroupKind(_RESOURCE, "ResourceClaim"): "v1",
    GroupKind(_RESOURCE, "ResourceClaimTemplate"): "v1",
    GroupKind(_RESOURCE, "ResourceSlice"): "v1",
    GroupKind("scheduling.k8s.io", "PriorityClass"): "v1",
    GroupKind("storage.k8s.io", "VolumeAttributesClass"): "v1",
    GroupKind("storagemigration.k8s.io", "StorageVersionMigration"): "v1beta1",
}

# core's field -> events.k8s.io's
EVENT_FIELDS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
CORE_FIELDS: Final = {new: old for old, new in EVENT_FIELDS.items()}
# What each version writes even when there is nothing to say.
CORE_ALWAYS: Final[Mapping[str, Any]] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
EVENT_ALWAYS: Final[Mapping[str, Any]] = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}

# Field selectors of a kind that isn't stored as itself: what a client says -> what the stored object goes by.
FIELD_LABELS: Final[Mapping[GroupVersionKind, Mapping[str, str]]] = {
    EVENT: {
        "reason": "reason",
        **{
            f"regarding.{name}": f"involvedObject.{name}"
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reportingController": "reportingComponent",
        "type": "type",
        "metadata.namespace": "metadata.namespace",
        "metadata.name": "metadata.name",
    }
}


def storage_gvk(gvk: GroupVersionKind) -> GroupVersionKind:
    """The kind that objects of this one are stored as; most are stored as themselves."""
    if gvk == EVENT:
        return CORE_EVENT
    version = STORED_VERSIONS.get(gvk.group_kind)
    return gvk if version is None else GroupVersionKind(gvk.group, version, gvk.kind)


@cache
def alike(gvk: GroupVersionKind, other: GroupVersionKind) -> bool:
    """Reports whether objects of the two versions differ only in apiVersion."""
    if gvk == other:
        return True
    stored = storage_gvk(gvk)
    return stored == storage_gvk(other) and all(
        (kind, to) not in CONVERSIONS for kind, to in ((gvk, stored), (stored, other))
    )


def convert(obj: Object, gvk: GroupVersionKind) -> Object:
    """The object as `gvk`, with its apiVersion: a new one whose unchanged parts are shared, or the same if it is one already.

    Both ways expect defaults to have been applied. Raises ValueError if there is no conversion between the two kinds.
    """
    named = GroupVersionKind(*GroupVersion.parse(obj.get("apiVersion") or ""), obj.get("kind") or "")
    if named == gvk:
        return obj
    stored = storage_gvk(gvk)
    if storage_gvk(named) != stored:
        raise ValueError(f"no conversion from {obj.get('apiVersion')}, Kind={obj.get('kind')} to {gvk}")
    for step in ((named, stored), (stored, gvk)):
        if (conversion := CONVERSIONS.get(step)) is not None:
            obj = conversion(obj)
    return {**obj, "apiVersion": str(gvk.group_version)}


def event_to_core(obj: Object) -> Object:
    """An events.k8s.io/v1 Event as core/v1 says it, but for apiVersion."""
    return {**CORE_ALWAYS, **_renamed(obj, CORE_FIELDS)}


def event_from_core(obj: Object) -> Object:
    """A core/v1 Event as events.k8s.io/v1 says it, but for apiVersion."""
    renamed = _renamed(obj, EVENT_FIELDS)
    reported = {
        key: value for key, value in renamed.items() if value or key not in ("reportingController", "reportingInstance")
    }
    return {**EVENT_ALWAYS, **reported}


def _renamed(obj: Object, names: Mapping[str, str]) -> Object:
    return {names.get(key, key): value for key, value in obj.items()}


_Step = tuple[GroupVersionKind, GroupVersionKind]


def _both_ways(
    kind: str, to: Callable[[Object], Object], back: Callable[[Object], Object]
) -> dict[_Step, Callable[[Object], Object]]:
    """Between v1 of devices' kinds and the versions that have the older shape."""
    stored = GroupVersionKind(_RESOURCE, "v1", kind)
    older = [GroupVersionKind(_RESOURCE, version, kind) for version in conversion_resource.OLDER_VERSIONS]
    return {(gvk, stored): to for gvk in older} | {(stored, gvk): back for gvk in older}


# (kind, stored kind) and back -> what changes besides apiVersion.
CONVERSIONS: Final[Mapping[_Step, Callable[[Object], Object]]] = {
    (CORE_EVENT, EVENT): event_from_core,
    (EVENT, CORE_EVENT): event_to_core,
    (HPA_V1, HPA_V2): conversion_autoscaling.to_v2,
    (HPA_V2, HPA_V1): conversion_autoscaling.to_v1,
    **_both_ways("ResourceClaim", conversion_resource.claim_from_v1beta1, conversion_resource.claim_to_v1beta1),
    **_both_ways(
        "ResourceClaimTemplate", conversion_resource.template_from_v1beta1, conversion_resource.template_to_v1beta1
    ),
    **_both_ways("ResourceSlice", conversion_resource.slice_from_v1beta1, conversion_resource.slice_to_v1beta1),
}
