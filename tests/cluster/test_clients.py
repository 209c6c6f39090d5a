"""`cluster.client`: clients of other packages, for the admin or another user."""

import asyncio
import importlib
import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from fakeapiserver import AsyncCluster, Cluster

PACKAGES = ("kubernetes", "kubernetes_asyncio", "kr8s", "lightkube")
# lightkube-models, which is always there, brings a folder `lightkube` as well.
MODULES = {"lightkube": "lightkube.core"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=("serviceaccount",)) as found:
        yield found


def kubernetes_names(client: Any) -> list[str]:
    api = importlib.import_module("kubernetes.client").CoreV1Api(client)
    with client:
        return [item.metadata.name for item in api.list_namespace().items]


async def kubernetes_asyncio_names(client: Any) -> list[str]:
    api = importlib.import_module("kubernetes_asyncio.client").CoreV1Api(client)
    async with client:
        return [item.metadata.name for item in (await api.list_namespace()).items]


def lightkube_names(client: Any) -> list[str]:
    namespace = importlib.import_module("lightkube.resources.core_v1").Namespace
    return [item.metadata.name for item in client.list(namespace)]


async def lightkube_names_in_a_loop(client: Any) -> list[str]:
    namespace = importlib.import_module("lightkube.resources.core_v1").Namespace
    return [item.metadata.name async for item in client.list(namespace)]


READ: dict[str, Callable[[Any], list[str]]] = {
    "kubernetes": kubernetes_names,
    "kr8s": lambda client: [item.name for item in client.get("namespaces")],
    "lightkube": lightkube_names,
}


@pytest.mark.parametrize("package", READ)
def test_a_blocking_client(cluster: Cluster, package: str) -> None:
    pytest.importorskip(MODULES.get(package, package))
    assert "default" in READ[package](cluster.client(package))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_client_in_the_event_loop_of_the_cluster(package: str) -> None:
    pytest.importorskip(MODULES.get(package, package))

    async def scenario() -> list[str]:
        async with AsyncCluster(controllers=()) as cluster:
            client = await cluster.client(package)
            if package == "kubernetes":
                return await asyncio.to_thread(kubernetes_names, client)
            if package == "kubernetes_asyncio":
                return await kubernetes_asyncio_names(client)
            if package == "lightkube":
                return await lightkube_names_in_a_loop(client)
            return [item.name async for item in client.get("namespaces")]

    assert "default" in asyncio.run(scenario())


def test_an_asynchronous_client_beside_a_cluster_in_a_thread(cluster: Cluster) -> None:
    pytest.importorskip("kubernetes_asyncio")

    async def scenario() -> list[str]:
        return await kubernetes_asyncio_names(cluster.client("kubernetes-asyncio"))

    assert "default" in asyncio.run(scenario())
    with pytest.raises(ValueError, match="belongs to an event loop: call it inside a coroutine"):
        cluster.client("kubernetes_asyncio")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "kubernetes-admin"),
        ({"user": "jane", "groups": "dev"}, "jane"),
        ({"user": "default/default"}, "system:serviceaccount:default:default"),
    ],
)
def test_of_a_user(cluster: Cluster, options: Any, name: str) -> None:
    client = pytest.importorskip("kubernetes.client")
    with cluster.client("kubernetes", **options) as api:
        found = client.AuthenticationV1Api(api).create_self_subject_review({})
    assert found.status.user_info.username == name


def test_an_unknown_package_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="client: 'pykube' is not one of the known packages: kubernetes, "):
        cluster.client("pykube")


def test_a_mere_folder_is_no_package(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ModuleType("lightkube")
    folder.__file__ = None
    monkeypatch.setattr("fakeapiserver.cluster.clients.import_module", lambda name: folder)
    with pytest.raises(ModuleNotFoundError, match=r"the package lightkube is not installed: pip install lightkube$"):
        cluster.client("lightkube")


def test_a_package_that_is_not_installed_is_named(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr("fakeapiserver.cluster.clients.import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"the package kr8s is not installed: pip install kr8s$"):
        cluster.client("kr8s")


def test_two_clusters_have_clients_of_their_own(cluster: Cluster) -> None:
    pytest.importorskip("kr8s")
    with Cluster(controllers=()) as other:
        other.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "only-here"}})
        found = {
            name: "only-here" in READ["kr8s"](each.client("kr8s")) for name, each in (("a", cluster), ("b", other))
        }
    assert json.dumps(found) == '{"a": false, "b": true}'
