"""Versions that Kubernetes has removed, in a cluster that serves them again."""

import json
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apis.protobuf import message_finder
from fakeapiserver.apis.removed_versions import REMOVED
from tests.nodes.test_kubelet import PodClient as Client

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    {
        "apiVersion": "batch/v1beta1",
        "kind": "CronJob",
        "metadata": {"name": "report"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}},
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1beta1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    {
        "apiVersion": "autoscaling/v2beta2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    },
]
PRESENT = [str(GroupVersion(gv.group, present)) for gv, (present, _) in REMOVED.items()]


def _path(client: Client, version: str, kind: str) -> str:
    (row,) = [
        each
        for each in client.ask("GET", f"/apis/{version}")["resources"]
        if each["kind"] == kind and "/" not in each["name"]
    ]
    return f"/apis/{version}/{'namespaces/default/' if row['namespaced'] else ''}{row['name']}"


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: obj["apiVersion"])
def test_an_object_is_the_same_in_both_versions(obj: dict[str, Any]) -> None:
    version, kind, name = obj["apiVersion"], obj["kind"], obj["metadata"]["name"]
    group = version.partition("/")[0]
    (present,) = [each for each in PRESENT if each.partition("/")[0] == group]
    with Cluster(runtime_config={"api/removed": "true"}) as cluster:
        client = Client(cluster)
        made = client.ask("POST", _path(client, version, kind), obj)
        assert made["apiVersion"] == version
        cluster.settle()
        old, new = (client.ask("GET", f"{_path(client, each, kind)}/{name}") for each in (version, present))
        assert (old.pop("apiVersion"), new.pop("apiVersion")) == (version, present)
        assert old == new
        named = [each["groupVersion"] for each in client.ask("GET", f"/apis/{group}")["versions"]]
        assert named[0] == present
        assert named[-1] == version


def test_clients_that_speak_protobuf_know_the_removed_versions() -> None:
    find = message_finder()
    assert find("policy/v1beta1", "PodDisruptionBudgetList") == "k8s.io.api.policy.v1.PodDisruptionBudgetList"


def test_a_cluster_serves_them_only_if_it_is_asked_to() -> None:
    with Cluster() as cluster:
        groups = json.dumps(Client(cluster).ask("GET", "/apis"))
    assert not [str(gv) for gv in REMOVED if f'"{gv}"' in groups]
