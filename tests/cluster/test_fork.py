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


def pod(name: str) -> dict[str, Any]:
    spec = {"nodeName": "node-1", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def is_ready(cluster: Cluster, node: str) -> str:
    conditions = cluster.get("nodes", node)["status"]["conditions"]
    return str(next(row["status"] for row in conditions if row["type"] == "Ready"))


def test_nodes_keep_their_scripts_and_states() -> None:
    with Cluster(nodes=2) as cluster:
        cluster.settle()
        cluster.clock.stop()
        cluster.nodes.script(runs_for=1, exit_codes=[3])
        cluster.nodes.stop("node-2")
        with cluster.fork() as other:
            other.apply(pod("fails-there"))
            other.clock.advance("2m")
            other.settle()
            ended = other.get("pods", "fails-there")["status"]["containerStatuses"][0]["state"]["terminated"]
            assert ended["exitCode"] == 3
            assert (is_ready(other, "node-1"), is_ready(other, "node-2")) == ("True", "Unknown")
            other.nodes.clear_scripts()
            other.nodes.start("node-2")
        assert is_ready(cluster, "node-2") == "True"  # no time has passed here
        cluster.apply(pod("fails-here"))
        cluster.clock.advance("2m")
        cluster.settle()
        assert cluster.get("pods", "fails-here")["status"]["phase"] == "Failed"
        assert (is_ready(cluster, "node-1"), is_ready(cluster, "node-2")) == ("True", "Unknown")


def test_a_stateful_set_goes_back_to_a_revision_from_before_the_fork() -> None:
    container = {"name": "web", "image": "web:1", "command": ["serve", "a && b > c"]}
    web = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"b": "1", "a": "2"}},
                "spec": {"containers": [container]},
            },
        },
    }
    image = "/spec/template/spec/containers/0/image"
    with Cluster(nodes=1) as cluster:
        cluster.apply(web)
        cluster.settle()
        [first] = cluster.list("controllerrevisions")
        with cluster.fork() as fork:
            for value in ("web:2", "web:1"):
                fork.patch("statefulsets/web", [{"op": "replace", "path": image, "value": value}])
                fork.settle()
            status = fork.get("statefulsets/web")["status"]
            assert (status["currentRevision"], status["readyReplicas"]) == (first["metadata"]["name"], 1)
