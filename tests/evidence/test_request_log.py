"""The last requests of clients: what became of each, and nothing secret."""

import json
import tracemalloc
from collections.abc import Iterator
from random import Random

import pytest

from fakeapiserver import Cluster
from fakeapiserver.clock import SystemClock
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.request_info import RequestInfo
from fakeapiserver.evidence.entry import RequestEntry, head
from fakeapiserver.evidence.request_log import RequestLog
from fakeapiserver.storage.interface import StoredObject
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
        ("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, ("create", "configmaps", "a", 201, "")),
        ("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, ("create", "configmaps", "a", 409, "AlreadyExists")),
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


def test_test_control_has_no_entry(cluster: Cluster, log: RequestLog) -> None:
    assert Client(cluster).status("GET", "/fakeapiserver/requests") == 200
    assert log.entries == []


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


class Storage:
    """A storage without history."""

    revision = 7

    def changes_now(self, revision: int) -> Iterator[tuple[StoredObject | None, StoredObject | None]]:
        raise NotImplementedError


def served(log: RequestLog, path: str, body: bytes, answer: bytes, resource: str = "configmaps") -> None:
    request = Request("PUT", path, {}, [(b"content-type", b"application/json")], receive, {"client": ("127.0.0.1", 9)})
    with log.entry(request):
        request.info = RequestInfo(path, "update", True, "", "v1", "default", resource, "", "a")
        request.content = body
        request.response = Response(200, answer)


async def receive() -> dict[str, object]:
    raise NotImplementedError


@pytest.mark.parametrize("seed", range(5))
def test_the_log_keeps_to_its_bounds(seed: int) -> None:
    """A model: the last entries that fit, by number and by bytes."""
    dice = Random(seed)
    log = RequestLog(SystemClock(), Storage(), 50, 200_000)
    model: list[tuple[str, int]] = []
    for number in range(400):
        path, body, answer = f"/{number}", bytes(dice.randrange(300_000)), bytes(dice.randrange(30_000))
        served(log, path, body, answer)
        kept = len(body) if len(body) <= 256 * 1024 else 0
        model.append((path, 1024 + len(path) + kept + len(answer)))
        while len(model) > 50 or sum(size for _, size in model) > 200_000:
            model.pop(0)
        assert log.bytes == sum(size for _, size in model)
        assert [entry.path for entry in log.entries] == [path for path, _ in model]
    assert log.last == 400
    assert not log.in_flight


def test_ten_thousand_requests_stay_within_the_bytes() -> None:
    log = RequestLog(SystemClock(), Storage(), 1_000_000, 2_000_000)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(10_000):
        served(log, "/" + "x" * 100, bytes(bytearray(700)), bytes(bytearray(700)))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 500_000 < grown < 2_000_000
    assert len(log.entries) < 1000


OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "states"}, "data": {"size": "1"}}
MERGE = "application/merge-patch+json"


def test_the_object_before_and_after_a_write(cluster: Cluster, log: RequestLog) -> None:
    client = Client(cluster)
    client.status("POST", CONFIG_MAPS, OBJECT)
    for _ in range(2):
        client.status("PATCH", f"{CONFIG_MAPS}/states", {"data": {"size": "2"}}, MERGE)
    client.status("PATCH", f"{CONFIG_MAPS}/states?dryRun=All", {"data": {"size": "3"}}, MERGE)
    client.status("DELETE", f"{CONFIG_MAPS}/states")

    def size(state: dict[str, dict[str, str]] | None) -> str | None:
        return None if state is None else state["data"]["size"]

    assert [(entry.verb, entry.changed, size(entry.before), size(entry.after)) for entry in log.entries] == [
        ("create", True, None, "1"),
        ("patch", True, "1", "2"),
        ("patch", False, None, None),
        ("patch", False, None, None),
        ("delete", True, "2", None),
    ]
    created, patched, same, dry, _ = log.entries
    assert created.body == OBJECT
    assert created.answer["metadata"]["uid"]
    assert created.revision < patched.revision == same.revision
    assert (dry.dry_run, dry.query, patched.dry_run, patched.patch_type) == (True, "dryRun=All", False, MERGE)
    assert created.response_bytes > created.request_bytes > 50
    assert created.connection.startswith("127.0.0.1:")


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.kubernetes.protobuf"])
def test_taking_the_last_finalizer_away_deletes(cluster: Cluster, log: RequestLog, accept: str) -> None:
    client = Client(cluster)
    client.status("POST", CONFIG_MAPS, {"metadata": {"name": "held", "finalizers": ["example.com/a", "example.com/b"]}})
    client.status("DELETE", f"{CONFIG_MAPS}/held")
    log.forget()
    for finalizers in (["example.com/b"], None):
        change = {"metadata": {"finalizers": finalizers}}
        client.status("PATCH", f"{CONFIG_MAPS}/held", change, MERGE, accept=accept)
    fewer, none = log.entries
    assert (fewer.changed, none.changed, none.after) == (True, True, None)
    assert fewer.after["metadata"]["finalizers"] == none.before["metadata"]["finalizers"] == ["example.com/b"]


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("JSON", json.dumps(OBJECT | {"metadata": {"name": "a", "resourceVersion": "7"}}).encode(), ("a", 7)),
        ("a list", b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12"},"items":[', ("", 12)),
        ("text", b"ok", ("", 0)),
        ("no protobuf", b"k8s\x00\x0a", ("", 0)),
    ],
)
def test_the_head_of_an_answer(kind: str, data: bytes, expected: tuple[str, int]) -> None:
    assert (head(data).name, head(data).revision) == expected


def test_the_head_of_protobuf(cluster: Cluster, log: RequestLog) -> None:
    client = Client(cluster)
    client.status("POST", CONFIG_MAPS, {"metadata": {"name": "binary"}})
    for path in (f"{CONFIG_MAPS}/binary", CONFIG_MAPS):
        client.status("GET", path, accept="application/vnd.kubernetes.protobuf")
    created, found, listed = log.entries
    assert found.revision == created.revision == listed.revision > 0
    assert found.answer["metadata"]["name"] == "binary"


def test_a_watch_counts_its_events(cluster: Cluster, log: RequestLog) -> None:
    Client(cluster).status("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1")
    (entry,) = log.entries
    assert (entry.verb, entry.ended) == ("watch", "time")
    assert entry.events >= 1


def test_the_clusters_own_requests_are_left_out() -> None:
    with Cluster() as cluster:
        cluster.settle()
        assert cluster._server.api.request_log.entries == []  # type: ignore[union-attr]
