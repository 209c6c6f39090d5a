"""Conversion of kinds that are stored once and served twice. The expected objects are a real server's answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis.conversion import CORE_EVENT, EVENT, HPA_V1, HPA_V2, alike, convert, storage_gvk
from fakeapiserver.apis.conversion_autoscaling import there_and_back

TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
PREFIX = "autoscaling.alpha.kubernetes.io/"
TIME = "2026-01-01T00:00:00Z"


def hpa(
    version: str, spec: dict[str, Any], status: dict[str, Any], annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """An autoscaler in default/h; no annotations leave no key."""
    metadata = {"name": "h", **({"annotations": annotations} if annotations else {})}
    full = {"scaleTargetRef": TARGET, **spec}
    return {
        "apiVersion": version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": full,
        "status": status,
    }


METRICS_V2 = [
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "target": {"type": "Utilization", "averageUtilization": 71},
            "container": "c",
        },
    },
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "p", "selector": {"matchLabels": {"x": "yy"}}},
            "target": {"type": "AverageValue", "averageValue": "3"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "target": {"type": "Value", "value": "4"},
            "metric": {"name": "o"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "target": {"type": "AverageValue", "averageValue": "4"},
            "metric": {"name": "o"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "e", "selector": {"matchLabels": {"x": "<&>"}}},
            "target": {"type": "AverageValue", "averageValue": "5"},
        },
    },
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
]
BEHAVIOR_V2 = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Disabled",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
        "tolerance": "50m",
    },
    "scaleDown": {
        "stabilizationWindowSeconds": 100,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}],
    },
}
CURRENT_V2 = [
    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "3", "averageUtilization": 12}}},
    {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "1Gi"}}},
    {"type": "Pods", "pods": {"metric": {"name": "p"}, "current": {"averageValue": "1"}}},
    {
        "type": "Object",
        "object": {"metric": {"name": "p"}, "current": {"value": "1"}, "describedObject": {"kind": "K", "name": "n"}},
    },
    {"type": "External", "external": {"metric": {"name": "p"}, "current": {"value": "0", "averageValue": "1"}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "current": {"averageValue": "1", "averageUtilization": 4},
            "container": "c",
        },
    },
]
CONDITIONS = [
    {
        "type": "AbleToScale",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "r",
        "message": "m",
    },
    {"type": "ScalingActive", "status": "False", "lastTransitionTime": None},
]
ANNOTATIONS = {
    PREFIX + "behavior": (
        '{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Disabled","Policies":[{"Type":"Pods","Val'
        'ue":4,"PeriodSeconds":15},{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":"50m"},"Sca'
        'leDown":{"StabilizationWindowSeconds":100,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":2,'
        '"PeriodSeconds":30}],"Tolerance":null}}'
    ),
    PREFIX + "conditions": (
        '[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"r","mes'
        'sage":"m"},{"type":"ScalingActive","status":"False","lastTransitionTime":null}]'
    ),
    PREFIX + "current-metrics": (
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":12,"currentAverageValue":"3'
        '"}},{"type":"Resource","resource":{"name":"memory","currentAverageValue":"1Gi"}},{"type":"Pods","pod'
        's":{"metricName":"p","currentAverageValue":"1"}},{"type":"Object","object":{"target":{"kind":"K","na'
        'me":"n"},"metricName":"p","currentValue":"1"}},{"type":"External","external":{"metricName":"p","curr'
        'entValue":"0","currentAverageValue":"1"}},{"type":"ContainerResource","containerResource":{"name":"m'
        'emory","currentAverageUtilization":4,"currentAverageValue":"1","container":"c"}}]'
    ),
    PREFIX + "metrics": (
        '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100Mi"}},{"type":"ContainerRes'
        'ource","containerResource":{"name":"memory","targetAverageUtilization":71,"container":"c"}},{"type":'
        '"Pods","pods":{"metricName":"p","targetAverageValue":"3","selector":{"matchLabels":{"x":"yy"}}}},{"t'
        'ype":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"o","t'
        'argetValue":"4"}},{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"'
        '},"metricName":"o","targetValue":"0","averageValue":"4"}},{"type":"External","external":{"metricName'
        r'":"e","metricSelector":{"matchLabels":{"x":"\u003c\u0026\u003e"}},"targetAverageValue":"5"}}]'
    ),
}
FULL_V1 = hpa(
    "autoscaling/v1",
    {"minReplicas": 2, "maxReplicas": 5, "targetCPUUtilizationPercentage": 70},
    {
        "observedGeneration": 1,
        "lastScaleTime": TIME,
        "currentReplicas": 1,
        "desiredReplicas": 2,
        "currentCPUUtilizationPercentage": 12,
    },
    {"a": "b", **ANNOTATIONS},
)
FULL_V2 = hpa(
    "autoscaling/v2",
    {"minReplicas": 2, "maxReplicas": 5, "metrics": METRICS_V2, "behavior": BEHAVIOR_V2},
    {
        "observedGeneration": 1,
        "lastScaleTime": TIME,
        "currentReplicas": 1,
        "desiredReplicas": 2,
        "currentMetrics": CURRENT_V2,
        "conditions": CONDITIONS,
    },
    {"a": "b"},
)
NO_STATUS = {"desiredReplicas": 0, "currentMetrics": None}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def test_everything_of_v2_travels_in_v1() -> None:
    assert convert(FULL_V2, HPA_V1) == FULL_V1
    assert convert(FULL_V1, HPA_V2) == FULL_V2


def test_v1_without_a_metric_implies_cpu() -> None:
    v1 = hpa("autoscaling/v1", {"minReplicas": 1, "maxReplicas": 5}, {})
    v2 = hpa("autoscaling/v2", {"minReplicas": 1, "maxReplicas": 5, "metrics": [CPU]}, NO_STATUS)
    assert convert(v1, HPA_V2) == v2
    spec = {"minReplicas": 1, "maxReplicas": 5, "targetCPUUtilizationPercentage": 80}
    assert convert(v2, HPA_V1) == hpa("autoscaling/v1", spec, {"currentReplicas": 0, "desiredReplicas": 0})


def test_what_v1_shows_as_zero_stays_nothing_in_storage() -> None:
    sent = hpa("autoscaling/v1", {"maxReplicas": 5}, {"currentReplicas": 1, "currentCPUUtilizationPercentage": 40})
    shown = there_and_back(sent)
    assert '"currentAverageValue":"0"' in shown["metadata"]["annotations"][PREFIX + "current-metrics"]
    current = {"averageUtilization": 40}
    assert convert(shown, HPA_V2)["status"]["currentMetrics"][0]["resource"]["current"] == current
    reread = {**shown, "status": dict(shown["status"])}
    assert convert(reread, HPA_V2)["status"]["currentMetrics"][0]["resource"]["current"] == {
        **current,
        "averageValue": "0",
    }


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}"])
def test_unreadable_annotations_are_dropped(text: str) -> None:
    v1 = hpa(
        "autoscaling/v1",
        {"maxReplicas": 5},
        {},
        {PREFIX + "metrics": text, PREFIX + "behavior": text} if text != "{}" else {},
    )
    assert convert(v1, HPA_V2) == hpa("autoscaling/v2", {"maxReplicas": 5, "metrics": [CPU]}, NO_STATUS)


def test_conversion_leaves_its_argument_alone() -> None:
    before = repr(FULL_V2)
    convert(FULL_V2, HPA_V1)
    assert repr(FULL_V2) == before


POD = {"kind": "Pod", "namespace": "default", "name": "p"}
CORE_EMPTY = {
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
EVENT_EMPTY = {"eventTime": None, "deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None}
SERIES = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}


def core_event(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, **CORE_EMPTY, "source": {}, **fields}


def new_event(**fields: Any) -> dict[str, Any]:
    head = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}}
    return {**head, **EVENT_EMPTY, "deprecatedSource": {}, **fields}


@pytest.mark.parametrize(
    ("core", "new"),
    [
        (core_event(involvedObject={"namespace": "default"}), new_event(regarding={"namespace": "default"})),
        (
            core_event(involvedObject=POD, message="hello", count=3, firstTimestamp=TIME, source={"component": "c"}),
            new_event(
                regarding=POD,
                note="hello",
                deprecatedCount=3,
                deprecatedFirstTimestamp=TIME,
                deprecatedSource={"component": "c"},
            ),
        ),
        (
            core_event(involvedObject=POD, series=SERIES, action="A", reportingComponent="x/y", reportingInstance="i"),
            new_event(regarding=POD, series=SERIES, action="A", reportingController="x/y", reportingInstance="i"),
        ),
    ],
)
def test_events(core: dict[str, Any], new: dict[str, Any]) -> None:
    assert convert(core, EVENT) == new
    assert convert(new, CORE_EVENT) == core


@given(
    st.dictionaries(st.sampled_from(["note", "reason", "action", "type", "reportingController"]), st.text(min_size=1))
)
def test_events_survive_the_way_to_storage_and_back(fields: dict[str, str]) -> None:
    event = new_event(regarding=POD, **fields)
    assert convert(convert(event, CORE_EVENT), EVENT) == event


@pytest.mark.parametrize(
    ("served", "stored"),
    [(EVENT, CORE_EVENT), (CORE_EVENT, CORE_EVENT), (HPA_V1, HPA_V2), (HPA_V2, HPA_V2)],
)
def test_storage_gvk(served: GroupVersionKind, stored: GroupVersionKind) -> None:
    assert storage_gvk(served) == stored


def test_the_same_kind_is_the_same_object() -> None:
    assert convert(FULL_V2, HPA_V2) is FULL_V2


def test_no_conversion_between_other_kinds() -> None:
    with pytest.raises(
        ValueError, match="no conversion from v1, Kind=Event to autoscaling/v2, Kind=HorizontalPodAutoscaler"
    ):
        convert(core_event(), HPA_V2)


def _resource(version: str, kind: str) -> GroupVersionKind:
    return GroupVersionKind("resource.k8s.io", version, kind)


@pytest.mark.parametrize(
    ("kind", "older", "newer"),
    [
        (
            "ResourceClaim",
            {"devices": {"requests": [{"name": "r", "deviceClassName": "c", "count": 1, "adminAccess": False}]}},
            {
                "devices": {
                    "requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 1, "adminAccess": False}}]
                }
            },
        ),
        (
            "ResourceClaim",
            {"devices": {"requests": [{"name": "r", "deviceClassName": "", "firstAvailable": [{"name": "s"}]}]}},
            {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s"}]}]}},
        ),
        (
            "ResourceClaimTemplate",
            {"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "c"}]}}},
            {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
        ),
        (
            "ResourceSlice",
            {"devices": [{"name": "d", "basic": {"capacity": {"m": {"value": "1"}}}}]},
            {"devices": [{"name": "d", "capacity": {"m": {"value": "1"}}}]},
        ),
    ],
)
def test_older_versions_of_devices(kind: str, older: dict[str, Any], newer: dict[str, Any]) -> None:
    old = {"kind": kind, "apiVersion": "resource.k8s.io/v1beta1", "spec": older}
    new = {"kind": kind, "apiVersion": "resource.k8s.io/v1", "spec": newer}
    assert convert(old, _resource("v1", kind)) == new
    assert convert(new, _resource("v1beta1", kind)) == old
    assert convert(old, _resource("v1beta2", kind)) == {**new, "apiVersion": "resource.k8s.io/v1beta2"}


def test_versions_that_are_alike() -> None:
    assert alike(_resource("v1", "ResourceClaim"), _resource("v1beta2", "ResourceClaim"))
    assert not alike(_resource("v1beta1", "ResourceClaim"), _resource("v1", "ResourceClaim"))
    assert not alike(_resource("v1beta2", "ResourceClaim"), _resource("v1beta1", "ResourceClaim"))
    assert not alike(_resource("v1", "ResourceClaim"), _resource("v1", "ResourceSlice"))
