"""Forks by the test control: servers of their own in the process of the server, which end with it."""

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

FORKS = "/fakeapiserver/forks"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def is_open(url: str) -> bool:
    """Reports whether something listens at the address."""
    parts = urlsplit(url)
    with socket.socket() as client:
        return client.connect_ex((parts.hostname, parts.port)) == 0


def fork(cluster: Cluster) -> Any:
    return Client(cluster).ask("POST", FORKS)


def test_a_fork_goes_its_own_way(cluster: Cluster) -> None:
    cluster.apply(CONFIG_MAP)
    made = fork(cluster)
    assert made["revision"] == int(cluster.get("configmap", "settings")["metadata"]["resourceVersion"])
    assert made["has_page"] is False
    other = Client(cluster, url=made["url"])
    path = "/api/v1/namespaces/default/configmaps/settings"
    assert other.ask("GET", path) == cluster.get("configmap", "settings")
    other.ask("DELETE", path)
    assert cluster.get("configmap", "settings")["metadata"]["name"] == "settings"
    assert Client(cluster).ask("GET", FORKS) == [made]
    assert Client(cluster).status("DELETE", f"{FORKS}/{made['id']}") == 204
    assert not is_open(made["url"])
    assert Client(cluster).ask("GET", FORKS) == []


def test_forks_and_their_forks_end_with_the_server() -> None:
    with Cluster(controllers=("replicaset",)) as cluster:
        first = fork(cluster)
        second = Client(cluster, url=first["url"]).ask("POST", FORKS)
        assert is_open(first["url"])
        assert is_open(second["url"])
    assert not is_open(first["url"])
    assert not is_open(second["url"])


def test_a_fork_of_a_server_with_a_page_has_one() -> None:
    with Cluster(controllers=(), ui=True) as cluster:
        made = fork(cluster)
        assert made["has_page"] is True
        link = Client(cluster).ask("POST", f"{FORKS}/{made['id']}/links")["url"]
        assert urlsplit(link).port not in (urlsplit(cluster.page.link()).port, urlsplit(made["url"]).port)
        assert is_open(link)
    assert not is_open(link)


def test_forks_are_bounded(cluster: Cluster) -> None:
    for _ in range(8):
        fork(cluster)
    assert Client(cluster).status("POST", FORKS) == 409
    Client(cluster).ask("DELETE", f"{FORKS}/3")
    assert fork(cluster)["id"] == 9


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("DELETE", "/7", 404), ("POST", "/7/links", 404), ("DELETE", "/0", 422), ("POST", "/1/links", 404)],
)
def test_what_is_refused(cluster: Cluster, method: str, path: str, status: int) -> None:
    fork(cluster)
    assert Client(cluster).status(method, FORKS + path) == status
