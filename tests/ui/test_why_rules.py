"""The rules of "why": for each object of a real cluster that something is wrong with, the sentences that say it."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from tests.ui.causes import causes, shown
from tests.ui.clients import NamedClient, deployment

CORE: Final = "/api/v1/namespaces/default"
GROUPS: Final = {
    "Pod": f"{CORE}/pods",
    "PersistentVolumeClaim": f"{CORE}/persistentvolumeclaims",
    "Service": f"{CORE}/services",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
}


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "nginx", **spec.pop("container", {})}
    metadata = {"name": name, "labels": labels or {}, **spec.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def claim(name: str, storage_class: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def service(name: str, **selector: str) -> dict[str, Any]:
    spec = {"selector": selector, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def backend(service_name: str) -> dict[str, Any]:
    return {"defaultBackend": {"service": {"name": service_name, "port": {"number": 80}}}}


PAUSED: Final = deployment("paused", 1)
PAUSED["spec"]["paused"] = True
OBJECTS: Final = [
    pod("large", container={"resources": {"requests": {"cpu": "500"}}}),
    pod("picky", nodeSelector={"disk": "ssd"}),
    pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
    pod("foreign", schedulerName="other-scheduler"),
    claim("data", "fast"),
    pod("with-claim", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]),
    pod("running", {"app": "shop"}),
    pod("unready", {"app": "unready"}, readinessGates=[{"conditionType": "example.com/checked"}]),
    service("misspelt", app="shopp"),
    service("unready", app="unready"),
    service("fine", app="shop"),
    {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "front"}, "spec": backend("nowhere")},
    PAUSED,
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "suspended"}, "spec": {"suspend": True, "template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]}}}},
    {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "aimless"}, "spec": {
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "missing"}}},
    pod("held", metadata={"finalizers": ["example.com/hold"]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    """The page of a cluster with these objects."""
    with Cluster(nodes=2, ui=True) as cluster:
        client = NamedClient(cluster, "setup")
        for one in OBJECTS:
            created = client.send("POST", GROUPS[str(one["kind"])], one)
            assert created["kind"] == one["kind"], created
        client.send("DELETE", f"{CORE}/pods/held?gracePeriodSeconds=0")
        client.send("POST", f"{CORE}/pods", {"metadata": {"name": "in valid"}, "spec": {"containers": []}})
        cluster.settle()
        with shown(browser, cluster) as page:
            yield page


@pytest.mark.parametrize(
    ("ref", "sentences"),
    [
        ("pods/large", ["2 nodes: the pod requests 500 of cpu, more than any node has"]),
        ("pods/picky", ["nodeSelector asks for the label disk=ssd; no node has the label disk"]),
        ("pods/gated", ["Scheduling gates hold the pod back: example.com/wait"]),
        ("pods/foreign", ["asks for the scheduler other-scheduler"]),
        ("pods/with-claim", ["PersistentVolumeClaim data is not bound", "StorageClass fast does not exist"]),
        ("pods/unready", ["The readiness gate example.com/checked is not True"]),
        (
            "pods/held",
            [
                "It waits for the finalizer example.com/hold",
                "setup created the object with it",
                "setup asked for the deletion",
            ],
        ),
        ("persistentvolumeclaims/data", ["StorageClass fast does not exist"]),
        (
            "services/misspelt",
            [
                "No pod in default has the labels of the service's selector: app=shopp",
                "Pod running has app=shop instead",
            ],
        ),
        (
            "services/unready",
            ["1 pod matches the selector app=unready, but none is ready", "readiness gate example.com/checked"],
        ),
        ("ingresses.networking.k8s.io/front", ["Service nowhere, to which a rule leads, does not exist"]),
        ("deployments.apps/paused", ["The rollout is paused"]),
        ("jobs.batch/suspended", ["The job is suspended"]),
        ("horizontalpodautoscalers.autoscaling/aimless", ["Its target Deployment missing does not exist in default"]),
        ("pods/running", []),
        ("services/fine", []),
    ],
)
def test_the_causes_of_an_object_s_state(page: Any, ref: str, sentences: list[str]) -> None:
    r, name = ref.split("/")
    found = causes(page, {"r": r, "ns": "default", "name": name})
    if not sentences:
        assert found == []
    for sentence in sentences:
        assert any(sentence in text for text in found), json.dumps(found, indent=1)
