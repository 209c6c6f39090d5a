"""The test control as a test in any language uses it: plain HTTP below /fakeapiserver/."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakeapiserver import Cluster
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return Client(cluster)


def test_a_snapshot_brings_objects_definitions_and_allocations_back(client: Client) -> None:
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}})
    service = client.ask("POST", SERVICES, {"metadata": {"name": "kept"}, "spec": {"ports": [{"port": 80}]}})
    client.ask("POST", DEFINITIONS, WIDGETS)
    before = client.ask("GET", "/fakeapiserver/state")
    taken = client.ask("POST", "/fakeapiserver/snapshots")
    assert taken["revision"] >= before["revision"]  # the server renews its lease beside us

    client.ask("DELETE", f"{CONFIG_MAPS}/kept")
    client.ask("DELETE", f"{SERVICES}/kept")
    client.ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "later"}})
    gadgets = json.loads(json.dumps(WIDGETS).replace("widget", "gadget").replace("Widget", "Gadget"))
    client.ask("POST", DEFINITIONS, gadgets)

    after = client.ask("POST", f"/fakeapiserver/snapshots/{taken['id']}/restore")
    assert after["revision"] > before["revision"]
    assert client.status("GET", f"{CONFIG_MAPS}/kept") == 200
    assert client.status("GET", f"{CONFIG_MAPS}/later") == 404
    assert client.status("GET", "/apis/example.com/v1/widgets") == 200
    assert client.status("GET", "/apis/example.com/v1/gadgets") == 404
    address = service["spec"]["clusterIP"]
    same = {"metadata": {"name": "other"}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}}
    assert client.status("POST", SERVICES, same) == 422


def test_snapshots_are_listed_and_forgotten(client: Client) -> None:
    number = client.ask("POST", "/fakeapiserver/snapshots")["id"]
    assert number in [taken["id"] for taken in client.ask("GET", "/fakeapiserver/snapshots")]
    assert client.status("DELETE", f"/fakeapiserver/snapshots/{number}") == 204
    assert client.status("POST", f"/fakeapiserver/snapshots/{number}/restore") == 404


def test_forgotten_history_answers_410(client: Client) -> None:
    old = client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"]
    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "newer"}})
    state = client.ask("POST", "/fakeapiserver/compact", {})
    assert state["compacted"] == state["revision"]
    assert client.status("GET", f"{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact") == 410


def test_a_lost_watch_ends(cluster: Cluster, client: Client) -> None:
    cluster.settle()  # controllers write ConfigMaps too
    with client.open("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={revision(client)}") as watch:
        assert client.ask("GET", "/fakeapiserver/state")["watches"] >= 1
        assert client.ask("POST", "/fakeapiserver/watches/lose")["watches"] >= 1
        assert watch.read() == b""


def revision(client: Client) -> str:
    return str(client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("method", "path", "body", "token", "status"),
    [
        ("GET", "/fakeapiserver/docs", None, None, 200),
        ("GET", "/fakeapiserver/openapi.json", None, None, 200),
        ("GET", "/fakeapiserver/state", None, "", 403),
        ("GET", "/fakeapiserver/state", None, "wrong", 401),
        ("GET", "/fakeapiserver/nothing", None, None, 404),
        ("DELETE", "/fakeapiserver/state", None, None, 405),
        ("POST", "/fakeapiserver/compact", {"revision": "x"}, None, 422),
        ("POST", "/fakeapiserver/compact", {"revision": 10**9}, None, 400),
        ("POST", "/fakeapiserver/snapshots/0/restore", None, None, 422),
    ],
)
def test_answers(client: Client, method: str, path: str, body: object, token: str | None, status: int) -> None:
    assert client.status(method, path, body, token=token) == status


def test_a_cluster_has_the_same_in_python() -> None:
    with Cluster() as cluster:
        client = Client(cluster)
        empty = cluster.snapshot()
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        cluster.restore(empty)
        assert client.status("GET", f"{CONFIG_MAPS}/a") == 404
        assert cluster.lose_watches() >= 1  # the definitions' own


def test_the_path_is_not_listed_among_upstreams(client: Client) -> None:
    assert not [path for path in client.ask("GET", "/")["paths"] if "fakeapiserver" in path]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "settle?timeout=20s", None, 200),
        ("POST", "settle?timeout=2m", None, 200),
        ("POST", "settle?timeout=20", None, 400),
        ("POST", "settle?timeout=0s", None, 400),
        ("POST", "settle?timeout=-1s", None, 400),
        ("POST", "settle?timeout=11m", None, 400),
        ("PUT", "controllers/deploymnt", {"mode": "run"}, 400),
        ("PUT", "controllers/node-route-controller", {"mode": "run"}, 400),
        ("PUT", "controllers/deployment", {"mode": "fly"}, 422),
        ("PUT", "controllers/deployment", {}, 422),
        ("PUT", "controllers/deployment", [], 422),
        ("POST", "controllers/deployment/step", None, 400),  # it runs by itself
        ("PUT", "clock", {"advance": "-5s"}, 400),
        ("PUT", "clock", {"advance": "soon"}, 400),
        ("PUT", "clock", {"advance": "9999999999999h"}, 400),
        ("PUT", "clock", {"stopped": "perhaps"}, 422),
    ],
)
def test_what_can_not_be_asked_for_is_refused(
    client: Client, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    assert client.status(method, f"/fakeapiserver/{path}", body) == status
