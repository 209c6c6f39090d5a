"""Tests that a server restores the objects that it needs when they are removed or altered, as the real one does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.dynamic import DynamicClient, ResourceClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.clock import AdjustableClock

FLOW_CONTROL = ("flowcontrol.apiserver.k8s.io", "v1")
AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
Scenario = Callable[[DynamicClient, Callable[[float], Awaitable[None]]], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def main() -> None:
        async with (
            Cluster(controllers=("namespace-controller",)) as cluster,
            RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest,
        ):
            api = cluster._server.api
            assert api is not None
            assert isinstance(api.clock, AdjustableClock)
            api.clock.stop()
            await api.advance(1)
            await scenario(DynamicClient(rest), api.advance)

    asyncio.run(main())


def levels(client: DynamicClient) -> ResourceClient:
    return client.resource(GroupVersionResource(*FLOW_CONTROL, "prioritylevelconfigurations"))


def schemas(client: DynamicClient) -> ResourceClient:
    return client.resource(GroupVersionResource(*FLOW_CONTROL, "flowschemas"))


async def names(client: ResourceClient) -> set[str]:
    return {obj["metadata"]["name"] for obj in (await client.list())["items"]}


def test_flow_schemas_come_back_within_a_minute() -> None:
    async def scenario(client: DynamicClient, advance: Callable[[float], Awaitable[None]]) -> None:
        before = await names(schemas(client))
        for name in ("exempt", "service-accounts"):
            await schemas(client).delete(name)
        await advance(50)
        assert await names(schemas(client)) == before - {"exempt", "service-accounts"}
        await advance(10)
        assert await names(schemas(client)) == before
        found = await schemas(client).get("exempt")
        assert {(entry["manager"], entry["operation"]) for entry in found["metadata"]["managedFields"]} == {
            ("api-priority-and-fairness-config-consumer-v1", "Apply"),
            ("api-priority-and-fairness-config-producer-v1", "Update"),
        }
        assert found["status"]["conditions"][0]["status"] == "False"

    run(scenario)


@pytest.mark.parametrize(
    ("annotation", "shares", "expected"),
    [
        ("true", 7, {"annotation": "true", "shares": 20, "generation": 3}),
        ("false", 7, {"annotation": "false", "shares": 7, "generation": 2}),  # it is the operator's now
        (None, 7, {"annotation": "false", "shares": 7, "generation": 2}),
        (None, 20, {"annotation": "true", "shares": 20, "generation": 1}),
        ("perhaps", 20, {"annotation": "true", "shares": 20, "generation": 1}),
    ],
)
def test_a_suggested_level_is_kept_as_it_was_unless_it_is_the_operators(
    annotation: str | None, shares: int, expected: dict[str, Any]
) -> None:
    async def scenario(client: DynamicClient, advance: Callable[[float], Awaitable[None]]) -> None:
        change = {
            "metadata": {"annotations": {AUTO_UPDATE: annotation}},
            "spec": {"limited": {"nominalConcurrencyShares": shares}},
        }
        await levels(client).patch("global-default", change)
        await advance(60)
        found = await levels(client).get("global-default")
        assert expected == {
            "annotation": found["metadata"]["annotations"][AUTO_UPDATE],
            "shares": found["spec"]["limited"]["nominalConcurrencyShares"],
            "generation": found["metadata"]["generation"],
        }

    run(scenario)


@pytest.mark.parametrize(
    ("annotations", "stays"), [({}, True), ({AUTO_UPDATE: "false"}, True), ({AUTO_UPDATE: "true"}, False)]
)
def test_what_pretends_to_be_the_servers_goes(annotations: dict[str, str], stays: bool) -> None:
    async def scenario(client: DynamicClient, advance: Callable[[float], Awaitable[None]]) -> None:
        spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 5000}
        await schemas(client).create({"metadata": {"name": "mine", "annotations": annotations}, "spec": spec})
        await advance(60)
        assert ("mine" in await names(schemas(client))) is stays

    run(scenario)


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "seconds"),
    [("namespaces", "", "kube-node-lease", 60), ("services", "default", "kubernetes", 10)],
)
def test_what_pods_need_comes_back(resource: str, namespace: str, name: str, seconds: int) -> None:
    async def scenario(client: DynamicClient, advance: Callable[[float], Awaitable[None]]) -> None:
        objects = client.resource(GroupVersionResource("", "v1", resource), namespace)
        before = await objects.get(name)
        await objects.delete(name)
        await advance(7)
        with pytest.raises(StatusError, match="not found"):
            await objects.get(name)
        await advance(seconds)
        after = await objects.get(name)
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert after["spec"] == before["spec"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    run(scenario)


@pytest.mark.parametrize(
    ("kind", "name", "spec", "problem"),
    [
        (
            "levels",
            "catch-all",
            {"limited": {"nominalConcurrencyShares": 7}},
            "spec of 'catch-all' must equal the fixed value",
        ),
        ("levels", "exempt", {"exempt": {"nominalConcurrencyShares": 7}}, ""),
        ("schemas", "exempt", {"matchingPrecedence": 3}, "spec of 'exempt' must equal the fixed value"),
        ("schemas", "probes", {"matchingPrecedence": 3}, ""),
    ],
)
def test_the_spec_of_mandatory_objects_stays_as_it_is(kind: str, name: str, spec: dict[str, Any], problem: str) -> None:
    async def scenario(client: DynamicClient, advance: Callable[[float], Awaitable[None]]) -> None:
        objects = levels(client) if kind == "levels" else schemas(client)
        if not problem:
            changed = await objects.patch(name, {"spec": spec})
            await advance(60)
            kept = (await objects.get(name))["spec"]
            assert (kept == changed["spec"]) is (name == "exempt")  # the other is brought back: it isn't the operator's
            return
        with pytest.raises(StatusError, match=problem):
            await objects.patch(name, {"spec": spec})

    run(scenario)
