"""The surroundings that a scenario names: pods follow its scripts and stages, and volumes are bound."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fakeapiserver import Cluster
from fakeapiserver.sweep import surroundings

FOLDER = Path(__file__).parent


@contextmanager
def cluster_with(**fields: Any) -> Iterator[Cluster]:
    options, around = surroundings.read({"nodes": 1, **fields}, FOLDER, "scenario")
    with Cluster(**options) as cluster:
        around.prepare(cluster)
        yield cluster


def template(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": name, "image": f"{name}:1"}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}


def job(name: str) -> dict[str, Any]:
    spec = {"backoffLimit": 0, "template": template(name, restartPolicy="Never")}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def stateful_set(name: str) -> dict[str, Any]:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


def test_jobs_end_as_scripts_say() -> None:
    with cluster_with(scripts=[{"selector": "app=backup", "exit_codes": [1]}]) as cluster:
        cluster.apply([job("backup"), job("restore")])
        cluster.wait("jobs/backup", "Failed")
        cluster.wait("jobs/restore", "Complete")


def test_claims_of_pods_are_bound() -> None:
    with cluster_with() as cluster:
        cluster.apply(stateful_set("db"))
        cluster.wait("statefulsets/db", jsonpath="{.status.readyReplicas}=1")
        claim = cluster.get("persistentvolumeclaims/data-db-0")
        assert claim["status"]["phase"] == "Bound"
        assert cluster.get(f"persistentvolumes/{claim['spec']['volumeName']}")["status"]["phase"] == "Bound"


def test_stages_drive_objects() -> None:
    stage = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "pod-greets"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchExpressions": [{"key": ".status.message", "operator": "DoesNotExist"}]},
            "next": {"statusTemplate": "message: hello"},
        },
    }
    with cluster_with(stages=stage) as cluster:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": template("web")["spec"]}
        cluster.apply(pod)
        cluster.wait("pods/web", jsonpath="{.status.message}=hello")
