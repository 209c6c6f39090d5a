"""Quotas: what objects use, and that writers who come together never use more than there is."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.admission.quota.evaluators import evaluator_of
from fakeapiserver.apimachinery.gvk import GroupResource

Json = dict[str, Any]
WRITERS, ROOM = 32, 10
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def test_many_writers_at_once_never_overspend(fake_cluster: Cluster) -> None:
    client = Client(fake_cluster.url, fake_cluster.token)
    hard = {"configmaps": str(ROOM)}
    client.send({"method": "POST", "path": QUOTAS, "body": {"metadata": {"name": "q"}, "spec": {"hard": hard}}}, [])
    status = {"status": {"hard": hard, "used": {"configmaps": "0"}}}
    client.send(
        {"method": "PATCH", "path": f"{QUOTAS}/q/status", "body": status, "type": "application/merge-patch+json"}, []
    )

    def create(i: int) -> int:
        own = Client(fake_cluster.url, fake_cluster.token)
        answer = own.send({"method": "POST", "path": CONFIG_MAPS, "body": {"metadata": {"name": f"c{i}"}}}, [])
        return int(answer["status"])

    with ThreadPoolExecutor(WRITERS) as pool:
        answers = list(pool.map(create, range(WRITERS)))
    assert sorted(answers) == [201] * ROOM + [403] * (WRITERS - ROOM)
    used = client.send({"method": "GET", "path": f"{QUOTAS}/q"}, [])["body"]["status"]["used"]
    assert used == {"configmaps": str(ROOM)}


POD: Json = {
    "metadata": {"name": "p"},
    "spec": {
        "overhead": {"cpu": "100m"},
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}, "limits": {"cpu": "2"}}}
        ],
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1500m"}}}],
    },
}
CLAIM: Json = {
    "metadata": {"name": "c"},
    "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}},
    "status": {"allocatedResources": {"storage": "5"}},
}
GPUS = "gpu.deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize(
    ("resource", "obj", "used"),
    [
        ("pods", POD, {"pods": "1", "requests.cpu": "1600m", "limits.cpu": "2100m", "requests.nvidia.com/gpu": "2"}),
        ("pods", POD | {"status": {"phase": "Failed"}}, {"count/pods": "1", "pods": None}),
        (
            "pods",
            {**POD, "metadata": {"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 5}},
            {"pods": None},
        ),
        ("services", {"spec": {"type": "NodePort", "ports": [{}, {}]}}, {"services.nodeports": "2", "services": "1"}),
        (
            "services",
            {"spec": {"type": "LoadBalancer", "ports": [{}, {}]}},
            {"services.nodeports": "2", "services.loadbalancers": "1"},
        ),
        (
            "persistentvolumeclaims",
            CLAIM,
            {"requests.storage": "5", "gold.storageclass.storage.k8s.io/requests.storage": "5"},
        ),
        (
            "resourceclaims.resource.k8s.io",
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
                            {
                                "firstAvailable": [
                                    {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                                    {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
                                ]
                            },
                        ]
                    }
                }
            },
            {GPUS: "5"},
        ),
        ("secrets", {}, {"secrets": "1", "count/secrets": "1"}),
        ("deployments.apps", {}, {"count/deployments.apps": "1"}),
    ],
)
def test_what_an_object_uses(resource: str, obj: Json, used: dict[str, str | None]) -> None:
    name, _, group = resource.partition(".")
    found = evaluator_of(GroupResource(group, name)).usage(obj, 100.0)
    assert {key: str(found[key]) if key in found else None for key in used} == used
