"""Tests the usage of a quota: counted when the quota is created, and again when an object is deleted or ends."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.client.discovery import APIGroup, APIResource, DiscoveryClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.component_helpers.objects import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
)
from tests.controllers.harness import Harness, Object, run

QUOTA = "resourcequota-controller"
SHIRTS = GroupVersionResource("example.com", "v1", "shirts")


def quota(hard: dict[str, str], **spec: Any) -> Object:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}


def pod(name: str, cpu: str = "100m", **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    containers = {"containers": [container], "automountServiceAccountToken": False}
    return {"metadata": {"name": name}, "spec": {**containers, **spec}}


async def used(cluster: Harness) -> dict[str, str]:
    await cluster.settle()
    found: dict[str, str] = (await cluster.get(RESOURCE_QUOTAS, "q"))["status"].get("used") or {}
    return found


OBJECTS = [
    (CONFIG_MAPS, {"metadata": {"name": "a"}}),
    (SECRETS, {"metadata": {"name": "a"}}),
    (SECRETS, {"metadata": {"name": "b"}}),
    (PODS, pod("a", "1500m")),
    (PODS, pod("b", "700m", activeDeadlineSeconds=5)),
    (SERVICES, {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}),
    (
        PERSISTENT_VOLUME_CLAIMS,
        {
            "metadata": {"name": "a"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "3Gi"}},
            },
        },
    ),
]


@pytest.mark.parametrize(
    ("hard", "spec", "expected"),
    [
        ({"secrets": "5", "count/secrets": "5"}, {}, {"secrets": "2", "count/secrets": "2"}),
        ({"count/deployments.apps": "5"}, {}, {"count/deployments.apps": "0"}),
        (
            {"pods": "5", "requests.cpu": "4", "cpu": "4000m"},
            {},
            {"pods": "2", "requests.cpu": "2200m", "cpu": "2200m"},
        ),
        ({"limits.memory": "1Gi"}, {}, {"limits.memory": "0"}),
        ({"pods": "5"}, {"scopes": ["Terminating"]}, {"pods": "1"}),
        ({"pods": "5"}, {"scopes": ["NotTerminating", "NotBestEffort"]}, {"pods": "1"}),
        (
            {"pods": "5"},
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}},
            {"pods": "0"},
        ),
        (
            {"services": "5", "services.nodeports": "5"},
            {},
            {"services": "2", "services.nodeports": "1"},
        ),  # and kubernetes
        (
            {"requests.storage": "9Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "9"},
            {},
            {"requests.storage": "3Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
        ),
        ({"requests.example.com/gpu": "3"}, {}, {"requests.example.com/gpu": "0"}),
        ({"count/nonsenses.example.com": "3"}, {}, {}),  # an unknown resource can't be counted
        ({"count/resourceclaims.resource.k8s.io": "3"}, {}, {"count/resourceclaims.resource.k8s.io": "0"}),
        ({}, {}, {}),
    ],
)
def test_what_is_there_is_counted(hard: dict[str, str], spec: Object, expected: dict[str, str]) -> None:
    async def scenario(cluster: Harness) -> None:
        for resource, obj in OBJECTS:
            await cluster.of(resource).create(obj)
        await cluster.of(RESOURCE_QUOTAS).create(quota(hard, **spec))
        assert await used(cluster) == expected

    run(scenario, QUOTA)


def test_what_goes_or_ends_makes_room() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(RESOURCE_QUOTAS, quota({"pods": "2", "configmaps": "1"}))
        for name in ("a", "b"):
            await cluster.create(PODS, pod(name))
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        assert await used(cluster) == {"pods": "2", "configmaps": "1"}
        with pytest.raises(StatusError, match="exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"):
            await cluster.create(PODS, pod("c"))
        await cluster.patch_status(PODS, "a", {"phase": "Succeeded"})
        await cluster.of(CONFIG_MAPS).delete("a")
        assert await used(cluster) == {"pods": "1", "configmaps": "0"}
        await cluster.create(PODS, pod("c"))
        assert await used(cluster) == {"pods": "2", "configmaps": "0"}

    run(scenario, QUOTA)


def test_other_limits_are_measured_at_once_and_forgotten_ones_go() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await cluster.create(RESOURCE_QUOTAS, quota({"configmaps": "5"}))
        await cluster.of(RESOURCE_QUOTAS).patch("q", {"spec": {"hard": {"configmaps": None, "secrets": "1"}}})
        assert await used(cluster) == {"secrets": "0"}
        assert (await cluster.get(RESOURCE_QUOTAS, "q"))["status"]["hard"] == {"secrets": "1"}

    run(scenario, QUOTA)


def test_what_is_wrong_is_right_again_after_the_full_resync() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(RESOURCE_QUOTAS, quota({"configmaps": "5"}))
        await cluster.patch_status(RESOURCE_QUOTAS, "q", {"used": {"configmaps": "4"}})
        assert await used(cluster) == {"configmaps": "4"}
        await cluster.advance(300)
        assert await used(cluster) == {"configmaps": "0"}

    run(scenario, QUOTA)


def test_custom_resources_are_counted_when_their_kind_is_known() -> None:
    async def scenario(cluster: Harness) -> None:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "shirts", "singular": "shirt", "kind": "Shirt", "listKind": "ShirtList"}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        await cluster.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "shirts.example.com"},
                "spec": spec,
            }
        )
        await cluster.settle()
        await cluster.create(RESOURCE_QUOTAS, quota({"count/shirts.example.com": "1"}))
        await cluster.create(SHIRTS, {"apiVersion": "example.com/v1", "kind": "Shirt", "metadata": {"name": "a"}})
        assert await used(cluster) == {"count/shirts.example.com": "1"}
        await cluster.of(SHIRTS).delete("a")
        assert await used(cluster) == {"count/shirts.example.com": "0"}

    run(scenario, QUOTA)


def test_a_burst_of_deletions_is_looked_at_together() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(RESOURCE_QUOTAS, quota({"count/deployments.apps": "50", "configmaps": "50"}))
        for number in range(30):
            await cluster.of(CONFIG_MAPS).create({"metadata": {"name": f"c{number}"}})
        await cluster.settle()
        before = int((await cluster.get(RESOURCE_QUOTAS, "q"))["metadata"]["resourceVersion"])
        await cluster.of(CONFIG_MAPS).delete_collection()
        assert await used(cluster) == {"count/deployments.apps": "0", "configmaps": "0"}
        after = int((await cluster.get(RESOURCE_QUOTAS, "q"))["metadata"]["resourceVersion"])
        assert after - before < 30 + 5  # a deletion is a revision, and so is each of the few writes of the status

    run(scenario, QUOTA)


def test_a_resource_that_goes_while_quotas_begin_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shirts = APIResource(
        SHIRTS, GroupVersionKind("example.com", "v1", "Shirt"), True, ("create", "list", "watch", "delete")
    )
    served = DiscoveryClient.groups

    async def with_shirts(discovery: DiscoveryClient) -> list[APIGroup]:
        return [*await served(discovery), APIGroup("example.com", {"v1": [shirts]})]

    monkeypatch.setattr(DiscoveryClient, "groups", with_shirts)  # as it was a moment ago

    async def scenario(cluster: Harness) -> None:
        await cluster.create(RESOURCE_QUOTAS, quota({"configmaps": "5"}))
        assert await used(cluster) == {"configmaps": "0"}

    run(scenario, QUOTA)
