"""The namespace controller: everything in a terminating namespace goes, and its conditions say what holds it up."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.discovery import (
    APIGroup,
    APIResource,
    GroupDiscoveryFailedError,
    check_complete,
    preferred_resources,
)
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.component_helpers.objects import CONFIG_MAPS, NAMESPACES, PODS, SECRETS
from fakeapiserver.controllers.namespace.conditions import Findings, with_findings

CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
SHIRTS = GroupVersionResource("example.com", "v1", "shirts")


@dataclass
class World:
    """A cluster with a namespace controller and the namespace `shop`."""

    client: DynamicClient
    advance: Callable[[float], Awaitable[None]]

    async def status(self) -> dict[str, Any]:
        """Returns the namespace's status, or {} once the namespace is gone."""
        found = await self.client.resource(NAMESPACES).list(field_selector="metadata.name=shop")
        return found["items"][0]["status"] if found["items"] else {}

    async def messages(self) -> dict[str, str]:
        """Returns the messages of the conditions that are true."""
        found = (await self.status()).get("conditions") or ()
        return {each["type"]: each["message"] for each in found if each["status"] == "True"}

    async def names(self, resource: GroupVersionResource) -> list[str]:
        found = await self.client.resource(resource, "shop").list()
        return [obj["metadata"]["name"] for obj in found["items"]]

    async def create(self, resource: GroupVersionResource, obj: dict[str, Any]) -> None:
        await self.client.resource(resource, "shop").create(obj)


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        controllers = ("namespace-controller",)
        async with Cluster(controllers=controllers) as cluster, RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest:
            manager, clock = cluster._server.controllers, cluster._server.clock
            await manager.settle()
            clock.stop()
            client = DynamicClient(rest)
            await client.resource(NAMESPACES).create({"metadata": {"name": "shop"}})

            async def advance(seconds: float) -> None:
                await manager.settle()
                await clock.advance(seconds, manager.settle)

            await scenario(World(client, advance))

    asyncio.run(main())


def config_map(name: str, *finalizers: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "finalizers": [*finalizers]}}


def pod(name: str, grace: int, node: str = "") -> dict[str, Any]:
    container = {"name": "web", "image": "nginx"}
    spec = {"containers": [container], "terminationGracePeriodSeconds": grace, **({"nodeName": node} if node else {})}
    return {"metadata": {"name": name}, "spec": {**spec, "automountServiceAccountToken": False}}


def test_a_namespace_goes_five_seconds_after_it_was_deleted() -> None:
    async def scenario(world: World) -> None:
        await world.create(CONFIG_MAPS, config_map("a"))
        await world.create(SECRETS, {"metadata": {"name": "b"}})
        await world.client.resource(NAMESPACES).delete("shop")
        await world.advance(3)
        assert await world.names(CONFIG_MAPS) == ["a"]
        await world.advance(2)
        assert await world.status() == {}

    run(scenario)


def test_finalizers_are_reported_and_checked_again_after_half_of_the_estimate() -> None:
    async def scenario(world: World) -> None:
        await world.create(CONFIG_MAPS, config_map("a", "example.com/one", "example.com/two"))
        await world.create(CONFIG_MAPS, config_map("b", "example.com/one"))
        await world.client.resource(NAMESPACES).delete("shop")
        await world.advance(5)
        assert await world.messages() == {
            "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 2 resource instances",
            "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining: "
            "example.com/one in 2 resource instances, example.com/two in 1 resource instances",
        }
        for name in ("a", "b"):
            await world.client.resource(CONFIG_MAPS, "shop").patch(name, {"metadata": {"finalizers": None}})
        # the change of the conditions has it looked at again, as any change of the namespace does
        await world.advance(5)
        assert await world.status() == {}

    run(scenario)


def test_pods_may_end_gracefully_before_anything_else_goes() -> None:
    async def scenario(world: World) -> None:
        await world.create(PODS, pod("web", 60, node="n1"))
        await world.create(CONFIG_MAPS, config_map("a"))
        await world.client.resource(NAMESPACES).delete("shop")
        await world.advance(5)
        assert (await world.names(PODS), await world.names(CONFIG_MAPS)) == (["web"], ["a"])
        assert await world.messages() == {}
        await world.client.resource(PODS, "shop").delete("web", grace_period_seconds=0)  # as its kubelet would
        await world.advance(31)
        assert await world.status() == {}

    run(scenario)


def test_pods_that_outstay_their_grace_are_unexpected() -> None:
    async def scenario(world: World) -> None:
        await world.create(PODS, pod("web", 30, node="n1"))
        await world.client.resource(NAMESPACES).delete("shop")
        await world.advance(60)
        assert await world.messages() == {
            "NamespaceDeletionContentFailure": "Failed to delete all resource types, 1 remaining: failed to delete pods for "
            "namespace: shop, err: unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods"
        }

    run(scenario)


def test_a_finalizer_of_another_client_keeps_the_empty_namespace() -> None:
    async def scenario(world: World) -> None:
        namespaces = world.client.resource(NAMESPACES)
        namespace = await namespaces.get("shop")
        namespace["spec"]["finalizers"].append("example.com/mine")
        await namespaces.update(namespace, "finalize")
        await world.create(CONFIG_MAPS, config_map("a"))
        await namespaces.delete("shop")
        await world.advance(5)
        found = await namespaces.get("shop")
        assert found["spec"] == {"finalizers": ["example.com/mine"]}
        assert await world.names(CONFIG_MAPS) == []
        assert [each["status"] for each in found["status"]["conditions"]] == ["False"] * 5

    run(scenario)


def test_custom_resources_go_too() -> None:
    async def scenario(world: World) -> None:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "shirts", "singular": "shirt", "kind": "Shirt", "listKind": "ShirtList"}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        await world.client.resource(CRDS).create(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "shirts.example.com"},
                "spec": spec,
            }
        )
        await world.advance(1)
        await world.create(
            SHIRTS,
            {
                "apiVersion": "example.com/v1",
                "kind": "Shirt",
                "metadata": {"name": "blue", "finalizers": ["example.com/wash"]},
            },
        )
        await world.client.resource(NAMESPACES).delete("shop")
        await world.advance(5)
        told = (await world.messages())["NamespaceContentRemaining"]
        assert told == "Some resources are remaining: shirts.example.com has 1 resource instances"
        await world.client.resource(SHIRTS, "shop").patch("blue", {"metadata": {"finalizers": None}})
        await world.advance(5)
        assert await world.status() == {}

    run(scenario)


NOW = "2026-01-02T03:04:05Z"
BEFORE = "2026-01-01T00:00:00Z"


def conditions(findings: Findings, old: list[dict[str, str]] | None = None) -> list[dict[str, str]] | None:
    """Returns the conditions of a namespace after an attempt, or None if they don't change."""
    changed = with_findings({"status": {"phase": "Terminating", "conditions": old}}, findings, NOW)
    return changed and changed["status"]["conditions"]


def test_a_condition_keeps_its_time_while_its_status_does() -> None:
    before = conditions(Findings())
    assert before is not None
    for condition in before:
        condition["lastTransitionTime"] = BEFORE
    assert conditions(Findings(), before) is None
    after = conditions(Findings(errors=[RuntimeError("b"), RuntimeError("a")]), before)
    assert after is not None
    assert after[2] == {
        "type": "NamespaceDeletionContentFailure",
        "status": "True",
        "reason": "ContentDeletionFailed",
        "message": "Failed to delete all resource types, 2 remaining: a, b",
        "lastTransitionTime": NOW,
    }
    assert {each["lastTransitionTime"] for each in (*after[:2], *after[3:])} == {BEFORE}


@pytest.mark.parametrize("counted", [True, False])
def test_remaining_content_is_reported_only_when_everything_was_counted(counted: bool) -> None:
    findings = Findings(counted=counted)
    findings.remaining[GroupResource("apps", "deployments")] = 2
    found = conditions(findings)
    assert found is not None
    assert found[3]["status"] == str(counted)


# --------------------------------------------------------------------------- discovery


def resource(group: str, version: str, name: str, *verbs: str) -> APIResource:
    gvr = GroupVersionResource(group, version, name)
    return APIResource(gvr, GroupVersionKind(group, version, name.title()), True, verbs)


GROUPS = [
    APIGroup(
        "apps",
        {
            "v1": [resource("apps", "v1", "deployments", "list", "delete")],
            "v1beta1": [
                resource("apps", "v1beta1", "deployments", "list", "delete"),
                resource("apps", "v1beta1", "scales", "get"),
            ],
        },
    ),
    APIGroup("metrics.k8s.io", {"v1": [resource("metrics.k8s.io", "v1", "pods", "list", "delete")]}, stale=("v1",)),
]


@pytest.mark.parametrize(
    ("verbs", "names"),
    [
        ((), ["apps/v1, Resource=deployments", "apps/v1beta1, Resource=scales"]),
        (("delete", "list"), ["apps/v1, Resource=deployments"]),
    ],
)
def test_each_resource_is_found_once_in_its_preferred_version(verbs: tuple[str, ...], names: list[str]) -> None:
    assert [str(found.gvr) for found in preferred_resources(GROUPS, verbs)] == names


def test_group_versions_that_do_not_answer_are_reported() -> None:
    with pytest.raises(GroupDiscoveryFailedError) as raised:
        check_complete(GROUPS)
    assert raised.value.failed == [GroupVersion("metrics.k8s.io", "v1")]
    told = conditions(Findings(discovery_error=raised.value))
    assert told is not None
    assert told[0]["message"] == (
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "metrics.k8s.io/v1: stale GroupVersion discovery: metrics.k8s.io/v1"
    )
