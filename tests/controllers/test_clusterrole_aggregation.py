"""Cluster roles that are made of others have their rules."""

from typing import Any

from fakeapiserver.component_helpers.objects import CLUSTER_ROLES
from tests.controllers.harness import Harness, run

AGGREGATION = "clusterrole-aggregation-controller"


def role(name: str, *resources: str, label: str = "") -> dict[str, Any]:
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]} for resource in resources]
    return {"metadata": {"name": name, "labels": {"part": label} if label else {}}, "rules": rules}


def whole(name: str, *labels: str) -> dict[str, Any]:
    selectors = [{"matchLabels": {"part": label}} for label in labels]
    return {"metadata": {"name": name}, "aggregationRule": {"clusterRoleSelectors": selectors}}


async def resources(cluster: Harness, name: str) -> list[str]:
    """Returns the resources in the role's rules."""
    await cluster.settle()
    found = await cluster.client.resource(CLUSTER_ROLES).get(name)
    return [resource for rule in found.get("rules") or () for resource in rule["resources"]]


def test_rules_come_by_selector_and_name_each_once() -> None:
    async def scenario(cluster: Harness) -> None:
        roles = cluster.client.resource(CLUSTER_ROLES)
        for each in (
            role("c", "pods", label="x"),
            role("b", "secrets", "pods", label="x"),
            role("a", "nodes", label="y"),
        ):
            await roles.create(each)
        await roles.create(whole("all", "x", "y"))
        assert await resources(cluster, "all") == ["secrets", "pods", "nodes"]
        await roles.delete("b")
        assert await resources(cluster, "all") == ["pods", "nodes"]
        await roles.patch("c", {"metadata": {"labels": {"part": None}}})
        assert await resources(cluster, "all") == ["nodes"]

    run(scenario, AGGREGATION)


def test_rules_of_other_writers_do_not_stay() -> None:
    async def scenario(cluster: Harness) -> None:
        roles = cluster.client.resource(CLUSTER_ROLES)
        await roles.create(role("a", "nodes", label="y"))
        await roles.create(whole("all", "y"))
        await cluster.settle()
        await roles.patch("all", {"rules": role("", "pods")["rules"]})
        assert await resources(cluster, "all") == ["nodes"]
        found = await roles.get("all")
        managers = {entry["manager"]: entry["operation"] for entry in found["metadata"]["managedFields"]}
        assert managers[AGGREGATION] == "Apply"

    run(scenario, AGGREGATION)


def test_a_role_may_be_made_of_roles_that_are_made_of_others() -> None:
    async def scenario(cluster: Harness) -> None:
        roles = cluster.client.resource(CLUSTER_ROLES)
        inner = whole("inner", "y")
        inner["metadata"]["labels"] = {"part": "x"}
        for each in (whole("outer", "x"), inner, role("a", "nodes", label="y")):
            await roles.create(each)
        assert await resources(cluster, "outer") == ["nodes"]

    run(scenario, AGGREGATION)


def test_the_roles_that_every_cluster_has_are_made() -> None:
    async def scenario(cluster: Harness) -> None:
        assert "pods" in await resources(cluster, "view")
        assert "pods/eviction" in await resources(cluster, "edit")

    run(scenario, AGGREGATION)
