"""The detectors, with operators that have the bug, written with a client that people use, and with the repaired ones."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster

kubernetes: Any = pytest.importorskip("kubernetes", reason="pip install -e '.[clients]'")
ApiException = kubernetes.client.exceptions.ApiException
CoreV1Api = Any
BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"size": "1"}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        cluster.apply(BODY)
        yield cluster


@pytest.fixture
def api(cluster: Cluster) -> Iterator[CoreV1Api]:
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(cluster.kubeconfig, client_configuration=configuration)
    with kubernetes.client.ApiClient(configuration) as client:
        yield kubernetes.client.CoreV1Api(client)


def writes_the_same(api: CoreV1Api) -> None:
    for _ in range(5):
        api.patch_namespaced_config_map("settings", "default", {"data": {"size": "1"}})


def writes_what_differs(api: CoreV1Api) -> None:
    for size in range(2, 7):
        api.patch_namespaced_config_map("settings", "default", {"data": {"size": str(size)}})


def polls(api: CoreV1Api) -> None:
    for _ in range(12):
        api.read_namespaced_config_map("settings", "default")


def loops(api: CoreV1Api) -> None:
    for _ in range(25):
        api.list_namespaced_config_map("default")


def reads_once(api: CoreV1Api) -> None:
    api.read_namespaced_config_map("settings", "default")
    api.list_namespaced_config_map("default")


def retries_blindly(api: CoreV1Api) -> None:
    stale = api.read_namespaced_config_map("settings", "default")
    api.patch_namespaced_config_map("settings", "default", {"data": {"size": "2"}})
    for _ in range(2):
        with pytest.raises(ApiException, match="Conflict"):
            api.replace_namespaced_config_map("settings", "default", stale)


def retries_with_what_it_read(api: CoreV1Api) -> None:
    stale = api.read_namespaced_config_map("settings", "default")
    api.patch_namespaced_config_map("settings", "default", {"data": {"size": "2"}})
    with pytest.raises(ApiException, match="Conflict"):
        api.replace_namespaced_config_map("settings", "default", stale)
    api.replace_namespaced_config_map("settings", "default", api.read_namespaced_config_map("settings", "default"))


def watches_again(api: CoreV1Api) -> None:
    for _ in range(6):
        for _ in kubernetes.watch.Watch().stream(api.list_namespaced_config_map, "default", timeout_seconds=1):
            break


@pytest.mark.parametrize(
    ("operator", "found"),
    [
        (writes_the_same, {"unchanged_writes"}),
        (writes_what_differs, set()),
        (polls, {"repeated_reads"}),
        (loops, {"hot_loops", "repeated_reads"}),
        (reads_once, set()),
        (retries_blindly, {"blind_retries"}),
        (retries_with_what_it_read, set()),
        (watches_again, {"reopened_watches"}),
    ],
)
def test_a_client(operator: Callable[[CoreV1Api], None], found: set[str], cluster: Cluster, api: CoreV1Api) -> None:
    mark = cluster.requests.mark()
    operator(api)
    findings = cluster.requests.since(mark).findings()
    assert {finding.detector for finding in findings} == found, "\n".join(map(str, findings))
