"""Queries for requests of clients, as tests ask them."""

import threading
from collections.abc import Iterator

import pytest

from fakeapiserver import Cluster
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.query import parse
from fakeapiserver.evidence.requests import RequestList
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def entry(verb: str, resource: str, subresource: str = "", name: str = "web-0", seq: int = 1) -> RequestEntry:
    path = f"/api/v1/namespaces/default/{resource}/{name}"
    kind = ("", "v1", resource, subresource, "default", name)
    return RequestEntry(0, 0.001, "GET", path, verb, *kind, "", "jane", "op/1 (x)", 200, seq=seq)


ENTRIES = RequestList(
    [
        entry("get", "pods", "", "web-0", 1),
        entry("patch", "pods", "status", "web-1", 2),
        entry("delete", "pods", "", "db-0", 3),
        entry("watch", "secrets", "", "", 4),
    ]
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("get pods", [1]),
        ("patch pods/status", [2]),
        ("patch pods", []),
        ("* pods", [1, 3]),
        ("* pods/*", [1, 2, 3]),
        ("* *", [1, 2, 3, 4]),
        ("get,delete pods", [1, 3]),
        ("* pods/* default/web-*", [1, 2]),
        ("* pods other/*", []),
        ("delete pods db-0", [3]),
        ("* pods.apps", []),
    ],
)
def test_a_query_finds_its_requests(query: str, expected: list[int]) -> None:
    assert [found.seq for found in ENTRIES[query]] == expected


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("pods", "a query is a verb, a resource"),
        ("updat leases", "did you mean update?"),
        ("x y", "the verbs are get,"),
    ],
)
def test_an_invalid_query_is_explained(query: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("?", "[?]")):
        parse(query)


def test_parts_of_the_requests() -> None:
    assert [e.seq for e in ENTRIES.writes] == [2, 3]
    assert [e.seq for e in ENTRIES.reads] == [1]
    assert [e.seq for e in ENTRIES.watches] == [4]
    assert [e.seq for e in ENTRIES.since(2)] == [3, 4]
    assert [e.seq for e in ENTRIES.where(name="web-*", refused=False)] == [1, 2]
    assert not ENTRIES.by(user_agent="other*")
    with pytest.raises(ValueError, match="unknown field 'verbs'"):
        ENTRIES.where(verbs="get")  # type: ignore[call-arg]


def test_a_wrong_count_shows_the_requests() -> None:
    with pytest.raises(AssertionError, match=r"1 requests, not 2:\n00:00:00.000 op/1 get /api/v1/.*/web-0 200 1.0 ms"):
        ENTRIES["get pods"].assert_count(2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def test_a_wait_ends_with_the_request(cluster: Cluster) -> None:
    mark = cluster.requests.mark()
    sender = threading.Timer(0.05, Client(cluster).status, ("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}))
    sender.start()
    found = cluster.requests.wait_for("create configmaps", since=mark)
    sender.join()
    assert [e.status for e in found] == [201]
    assert cluster.requests.since(mark)["create configmaps"] == found


def test_a_wait_in_vain_shows_requests_with_other_verbs(cluster: Cluster) -> None:
    Client(cluster).status("GET", f"{CONFIG_MAPS}/none")
    with pytest.raises(TimeoutError, match=r"0 of 1 requests 'delete configmaps \*/none'(.|\n)* get .*404"):
        cluster.requests.wait_for("delete configmaps */none", timeout=0.01)


def test_a_query_is_in_the_requests() -> None:
    assert "patch pods/status" in ENTRIES
    assert "patch pods" not in ENTRIES
    assert ENTRIES[0] in ENTRIES


def test_requests_are_compared_with_queries() -> None:
    assert ENTRIES.writes == ["patch pods/status */web-1", "delete pods"]
    assert ENTRIES.writes != ["delete pods", "patch pods/status"]
    assert ENTRIES.writes != ["patch pods/status"]
    assert ENTRIES[:0] == []
    assert ENTRIES != 4


def test_no_requests_and_their_order() -> None:
    ENTRIES.assert_none("create *")
    ENTRIES.assert_order("get pods", "delete pods", "watch secrets")
    with pytest.raises(AssertionError, match=r"1 requests 'delete pods', not 0:\n.* delete .*"):
        ENTRIES.assert_none("delete pods")
    with pytest.raises(
        AssertionError, match="no request 'patch pods/status' after 'delete pods'; the order should be delete"
    ):
        ENTRIES.assert_order("delete pods", "patch pods/status")
