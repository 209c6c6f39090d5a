"""Kinds that are stored once and served under two names: Event (core and events.k8s.io) and HorizontalPodAutoscaler (v1 and v2).

Upstream: k8s.io/kubernetes/pkg/apis/events/v1/conversion.go, k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis import conversion_autoscaling

Object = dict[str, Any]

CORE_EVENT: Final = GroupVersionKind("", "v1", "Event")
EVENT: Final = GroupVersionKind("events.k8s.io", "v1", "Event")
HPA_V1: Final = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
HPA_V2: Final = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")

STORED_AS: Final = {EVENT: CORE_EVENT, HPA_V1: HPA_V2}

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
    return STORED_AS.get(gvk, gvk)


def convert(obj: Object, gvk: GroupVersionKind) -> Object:
    """The object as `gvk`, with its apiVersion: a new one whose unchanged parts are shared, or the same if it is one already.

    Both ways expect defaults to have been applied. Raises ValueError if there is no conversion between the two kinds.
    """
    api_version = str(gvk.group_version)
    if obj.get("apiVersion") == api_version and obj.get("kind") == gvk.kind:
        return obj
    conversion = CONVERSIONS.get((obj.get("apiVersion"), gvk))
    if conversion is None or obj.get("kind") != gvk.kind:
        raise ValueError(f"no conversion from {obj.get('apiVersion')}, Kind={obj.get('kind')} to {gvk}")
    return {**conversion(obj), "apiVersion": api_version}


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


CONVERSIONS: Final[Mapping[tuple[Any, GroupVersionKind], Callable[[Object], Object]]] = {
    ("v1", EVENT): event_from_core,
    ("events.k8s.io/v1", CORE_EVENT): event_to_core,
    ("autoscaling/v1", HPA_V2): conversion_autoscaling.to_v2,
    ("autoscaling/v2", HPA_V1): conversion_autoscaling.to_v1,
}
