"""A cluster of each Kubernetes version: its resources, its gates, and controllers and nodes that run in it."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

import pytest

from fakeapiserver import Cluster

Json = dict[str, Any]
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


def ask(cluster: Cluster, path: str, body: Json | None = None) -> Json:
    """Sends a GET, or a POST of a body, and returns the response's document, which may be a Status."""
    headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(cluster.url + path, data, headers)
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
            found: Json = json.load(answer)
    except urllib.error.HTTPError as error:
        found = json.load(error)
    return found


@pytest.mark.parametrize("minor", ["1.33", "1.34", "1.35", "1.36", "1.37"])
def test_controllers_and_nodes_run_in_each_version(minor: str) -> None:
    with Cluster(kubernetes_version=minor, nodes=1) as cluster:
        ask(cluster, "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
        cluster.settle()
        pods = ask(cluster, "/api/v1/namespaces/default/pods")["items"]
        assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
        assert ask(cluster, "/version")["gitVersion"].startswith(f"v{minor}.")
        (node,) = ask(cluster, "/api/v1/nodes")["items"]
        assert node["status"]["nodeInfo"]["kubeletVersion"] == ask(cluster, "/version")["gitVersion"]


@pytest.mark.parametrize(
    ("minor", "group", "versions"),
    [
        ("1.33", "resource.k8s.io", []),
        ("1.34", "resource.k8s.io", ["v1"]),
        ("1.33", "admissionregistration.k8s.io", ["v1"]),
    ],
)
def test_groups_follow_the_version(minor: str, group: str, versions: list[str]) -> None:
    with Cluster(kubernetes_version=minor, controllers=()) as cluster:
        groups = {row["name"]: row["versions"] for row in ask(cluster, "/apis")["groups"]}
        assert [row["version"] for row in groups.get(group, [])] == versions


def test_fields_follow_version_and_gates() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    grouped = pod | {"spec": {**pod["spec"], "schedulingGroup": {"podGroupName": "g"}}}  # type: ignore[dict-item]
    path = "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict"
    with Cluster(kubernetes_version="1.35", controllers=()) as older:
        assert 'unknown field "spec.schedulingGroup"' in ask(older, path, grouped)["message"]
    with Cluster(controllers=()) as newest:
        assert "schedulingGroup" not in ask(newest, path, grouped)["spec"]
    with Cluster(feature_gates={"GenericWorkload": True}, controllers=()) as gated:
        assert ask(gated, path, grouped)["spec"]["schedulingGroup"] == {"podGroupName": "g"}
