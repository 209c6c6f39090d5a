"""Objects that a server reads for its own decisions are those that are stored, whatever was read and kept before."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.endpoints.object_getter import ObjectGetter

_MAPS = "configmaps"
_WIDGETS = "widgets.example.com"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=(), seed=1) as cluster:
        cluster.apply(config_map("a", "default", "1"))
        cluster.apply(config_map("b", "kube-public", "1"))
        yield cluster


def config_map(name: str, namespace: str, value: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}}


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _WIDGETS},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def define(cluster: Cluster) -> None:
    cluster.apply(definition())
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}
    cluster.eventually(lambda: cluster.apply(widget))


def read(cluster: Cluster, getter: ObjectGetter) -> tuple[object, ...]:
    """Returns what the getter finds, in the loop of the cluster."""

    async def found() -> tuple[object, ...]:
        objects = [getter.get(_MAPS, namespace, name) for namespace, name in (("default", "a"), ("kube-public", "b"))]
        lists = [getter.list(resource, namespace) for resource in (_MAPS, _WIDGETS) for namespace in ("", "default")]
        return (objects, lists)

    return cluster._run(found)


def number(cluster: Cluster, getter: ObjectGetter) -> int:
    async def generation() -> int:
        return getter.generation((_MAPS, _WIDGETS))

    return cluster._run(generation)


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.apply(config_map("a", "default", "2")),
        lambda cluster: cluster.apply(config_map("c", "default", "1")),
        lambda cluster: cluster.apply(config_map("b", "kube-public", "2")),
        lambda cluster: cluster.delete("cm/a"),
        lambda cluster: (cluster.delete("cm/a"), cluster.apply(config_map("a", "default", "1"))),
        define,
    ],
    ids=["update", "create", "another namespace", "delete", "delete and create", "definition"],
)
def test_a_change_is_read(cluster: Cluster, change: Callable[[Cluster], object]) -> None:
    scopes = cluster._server.api.scopes
    getter = ObjectGetter(scopes)
    before, generation = read(cluster, getter), number(cluster, getter)
    assert read(cluster, getter) == before
    assert number(cluster, getter) == generation
    snapshot = cluster.snapshot()
    change(cluster)
    after = read(cluster, getter)
    assert after == read(cluster, ObjectGetter(scopes))
    assert after != before
    assert number(cluster, getter) > generation
    cluster.restore(snapshot)
    assert read(cluster, getter) == read(cluster, ObjectGetter(scopes))
    assert number(cluster, getter) > generation
