"""The last requests of clients: what became of each, and nothing secret."""

from collections.abc import Iterator

import pytest

from fakeapiserver import Cluster
from fakeapiserver.evidence.request_log import RequestEntry, RequestLog
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def log(cluster: Cluster) -> RequestLog:
    log = cluster._server.api.request_log  # type: ignore[union-attr]
    assert log is not None
    log.forget()
    return log


def outline(entry: RequestEntry) -> tuple[str, str, str, str, int, str]:
    return entry.user, entry.verb, entry.resource, entry.name, entry.status, entry.reason


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", CONFIG_MAPS, None, ("list", "configmaps", "", 200, "")),
        ("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, ("create", "configmaps", "", 201, "")),
        ("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, ("create", "configmaps", "", 409, "AlreadyExists")),
        ("GET", f"{CONFIG_MAPS}/none", None, ("get", "configmaps", "none", 404, "NotFound")),
        ("GET", "/version", None, ("get", "", "", 200, "")),
    ],
)
def test_each_request_has_an_entry(
    method: str, path: str, body: object, expected: tuple[str, ...], cluster: Cluster, log: RequestLog
) -> None:
    Client(cluster).status(method, path, body)
    (entry,) = log.entries
    assert outline(entry) == ("system:apiserver", *expected)
    assert (entry.method, entry.path, entry.user_agent[:13]) == (method, path, "Python-urllib")
    assert 0 < entry.duration < 60
    assert abs(entry.time - cluster.clock.now()) < 60
    assert entry.refused is (entry.status >= 400)


def test_nothing_secret_is_kept(cluster: Cluster, log: RequestLog) -> None:
    client = Client(cluster)
    client.status("GET", f"{CONFIG_MAPS}?labelSelector=password%3Dhidden1")
    client.status(
        "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "hidden2!"}, "data": {"k": "hidden3"}}
    )
    client.status("GET", "/api/v1/nodes", token="hidden4")
    assert [(entry.status, entry.user) for entry in log.entries] == [
        (200, "system:apiserver"),
        (400, "system:apiserver"),
        (401, "system:anonymous"),
    ]
    assert "hidden" not in str(log.entries)


def test_only_the_last_thousand_are_kept(cluster: Cluster, log: RequestLog) -> None:
    for _ in range(1100):
        log._entries.append(RequestEntry(0, 0, *[""] * 12, 200))
    assert len(log.entries) == 1000


def test_the_clusters_own_requests_are_left_out() -> None:
    with Cluster() as cluster:
        cluster.settle()
        assert cluster._server.api.request_log.entries == []  # type: ignore[union-attr]
