"""`cluster.fork`: another cluster from the present state."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.client.errors import StatusError
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def test_a_fork_has_the_same_objects_at_the_same_resource_versions(cluster: Cluster) -> None:
    cluster.apply(config_map("same"))
    with cluster.fork() as other:
        assert other.url != cluster.url
        assert other.snapshot() == cluster.snapshot()
        assert other.get("cm/same") == cluster.get("cm/same")


def test_a_list_at_an_old_resource_version_works_on_a_fork(cluster: Cluster) -> None:
    created = cluster.apply(config_map("old", k="1"))[0]
    cluster.apply(config_map("old", k="2"))
    with cluster.fork() as other:
        revision = created["metadata"]["resourceVersion"]
        listed = Client(other).ask("GET", f"{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert {"k": "1"} in [item.get("data") for item in listed["items"]]


def test_credentials_stay_valid(cluster: Cluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}})
    with cluster.fork() as other:
        assert (other.ca, other.token) == (cluster.ca, cluster.token)
        token = cluster._core._api.service_account_token("default", "bot", 3600)
        assert other._core._api.access.issuer.keys.jwks() == cluster._core._api.access.issuer.keys.jwks()
        assert token


def test_custom_resources_and_addresses_are_taken_over(cluster: Cluster) -> None:
    service: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}
    cluster.apply([DEFINITION, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}])
    taken = cluster.apply({**service, "metadata": {"name": "web"}})[0]["spec"]["clusterIP"]
    with cluster.fork() as other:
        assert other.get("widgets.example.com", "w") == cluster.get("widgets.example.com", "w")
        with pytest.raises(StatusError, match="already allocated"):
            other.apply({**service, "metadata": {"name": "b"}, "spec": {**service["spec"], "clusterIP": taken}})


def test_the_clock_and_modes_are_the_same() -> None:
    with Cluster(controllers=("namespace-controller",)) as cluster:
        cluster.clock.stop()
        cluster.clock.advance("30m")
        cluster.controllers["namespace-controller"] = "step"
        with cluster.fork() as other:
            assert other.clock.now() == cluster.clock.now()
            assert other.controllers["namespace-controller"] == "step"
            other.clock.advance("1h")
            assert other.clock.now() == cluster.clock.now() + 3600


def test_both_go_on_independently(cluster: Cluster) -> None:
    """Random writes on both, compared with a model of each."""
    chance = random.Random(1)
    with cluster.fork() as other:
        models: list[tuple[Cluster, dict[str, str]]] = [(cluster, {}), (other, {})]
        for number in range(150):
            one, model = chance.choice(models)
            name = f"both-{chance.randrange(8)}"
            if name in model and chance.random() < 0.3:
                one.delete("configmap", name)
                del model[name]
            else:
                one.apply(config_map(name, k=str(number)))
                model[name] = str(number)
        for one, model in models:
            listed = {item["metadata"]["name"]: item["data"]["k"] for item in one.list("cm") if item.get("data")}
            assert {name: value for name, value in listed.items() if name.startswith("both-")} == model


def test_an_async_cluster_forks_and_outlives_its_origin() -> None:
    asyncio.run(fork_and_stop())


async def fork_and_stop() -> None:
    async with AsyncCluster(controllers=()) as cluster:
        await cluster.apply(config_map("a"))
        other = await cluster.fork()
    async with other:
        assert (await other.get("cm/a"))["metadata"]["name"] == "a"
