"""Pods are judged once for each template, and every part of a pod that rules read counts."""

from collections.abc import Callable
from typing import Any

import pytest

from fakeapiserver.apimachinery.meta import Object, copied
from fakeapiserver.registry.core.pod.faultless import Faultless
from fakeapiserver.registry.core.pod.options import DEFAULT_OPTIONS, PodOptions
from fakeapiserver.registry.core.pod.validation import pod_errors


def pod(token: str = "kube-api-access-bcdfg", **meta: Any) -> Object:
    mount = {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    source = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    container = {
        "name": "web",
        "image": "web:1",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "volumeMounts": [mount],
    }
    return {
        "metadata": {"name": "web-1", "namespace": "default", **meta},
        "spec": {
            "containers": [container],
            "volumes": [{"name": token, "projected": {"sources": [source], "defaultMode": 420}}],
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
        },
    }


class Counting:
    """Rules that find nothing, and count how often they are asked."""

    def __init__(self) -> None:
        self.seen: list[Object] = []

    def __call__(self, seen: Object, options: PodOptions) -> list[str]:
        self.seen.append(copied(seen))
        return []


def test_pods_that_differ_in_names_are_judged_once() -> None:
    rules = Counting()
    faultless = Faultless(rules)
    for seen in (pod(), pod(name="web-2", uid="2"), pod("kube-api-access-99999"), pod(labels={"a": "b"})):
        assert not faultless.faults(seen, DEFAULT_OPTIONS)
    assert len(rules.seen) == 1


def test_rules_see_nothing_that_is_not_remembered() -> None:
    rules = Counting()
    read = {"kubernetes.io/a": "b", "c.kubernetes.io/d": "e"}
    Faultless(rules).faults(pod(annotations={"a": "b", **read}, labels={"c": "d"}), DEFAULT_OPTIONS)
    assert rules.seen == [{"metadata": {"annotations": read}, "spec": pod()["spec"]}]


def _with_volume(seen: Object, volume: Object) -> Object:
    seen["spec"]["volumes"].append(volume)
    return seen


def _with_mount(seen: Object, name: str) -> Object:
    seen["spec"]["containers"][0]["volumeMounts"][0]["name"] = name
    return seen


def _with_spec(seen: Object, **fields: Any) -> Object:
    seen["spec"].update(fields)
    return seen


_TEMPLATE = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
_OWN_CLAIM = {"name": "data", "ephemeral": {"volumeClaimTemplate": _TEMPLATE}}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda seen: _with_spec(seen, restartPolicy="Sometimes"), "restartPolicy"),
        (lambda seen: _with_spec(seen, ephemeralContainers=[{"name": "a"}]), "cannot be set on create"),
        (
            lambda seen: _with_mount(seen, "kube-api-access-zzzzz"),
            'volumeMounts[0].name: Not found: "kube-api-access-zzzzz"',
        ),
        (lambda seen: _with_mount(seen, "kube-api-access-?"), "volumeMounts[0].name: Not found"),
        (lambda seen: _with_mount(seen, "\0"), "volumeMounts[0].name: Not found"),
        (lambda seen: _with_volume(seen, {"name": "kube-api-access-bcdfg", "emptyDir": {}}), "Duplicate value"),
        (
            lambda seen: {**seen, "metadata": {"annotations": {"kubernetes.io/config.mirror": "1"}}},
            "must set spec.nodeName if mirror pod annotation is set",
        ),
    ],
)
def test_each_part_of_a_pod_counts(change: Callable[[Object], Object], complaint: str) -> None:
    assert not pod_errors(pod())
    assert complaint in "; ".join(map(str, pod_errors(change(pod()))))


def test_a_name_counts_if_a_volume_is_named_after_the_pod() -> None:
    assert not pod_errors(_with_volume(pod(), copied(_OWN_CLAIM)))
    assert "PVC name" in "; ".join(map(str, pod_errors(_with_volume(pod(name="a" * 250), copied(_OWN_CLAIM)))))


def test_options_count() -> None:
    toleration = {"key": "a", "operator": "Gt", "value": "1"}
    allowed = PodOptions(comparing_tolerations=True)
    assert not pod_errors(_with_spec(pod(), tolerations=[toleration]), allowed)
    assert pod_errors(_with_spec(pod(), tolerations=[toleration]))


def test_faults_are_not_remembered() -> None:
    faultless = Faultless(lambda seen, options: [str(seen["spec"]["restartPolicy"])])
    assert [faultless.faults(pod(), DEFAULT_OPTIONS) for _ in range(2)] == [["Always"]] * 2
