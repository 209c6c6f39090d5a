"""Watches of custom resources end with their definition as it was, and begin with the storage that follows."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver.testing.background import running_server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "gears.w.example.com"
GEARS = "/apis/w.example.com/v1/gears"
DEFINITION = {
    "metadata": {"name": NAME},
    "spec": {
        "group": "w.example.com",
        "scope": "Cluster",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.client = Client(url, token)

    def send(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        request = {"method": method, "path": path} | ({"body": body} if body is not None else {})
        if method == "PATCH":
            request["type"] = "application/merge-patch+json"
        return self.client.send(request, [])

    def watch(self, revision: str, seconds: int = 1) -> list[Any]:
        path = f"{GEARS}?watch=1&timeoutSeconds={seconds}&resourceVersion={revision}"
        answer = Client(self.url, self.token).send({"method": "GET", "path": path}, [])
        return answer["events"] if "events" in answer else [answer["body"]]

    def create(self, name: str) -> str:
        answer = self.send(
            "POST", GEARS, {"apiVersion": "w.example.com/v1", "kind": "Gear", "metadata": {"name": name}}
        )
        return str(answer["body"]["metadata"]["resourceVersion"])


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as found:
        server = Server(found.url, found.admin_token)
        server.send("POST", DEFINITIONS, DEFINITION)
        yield server


def names(events: list[Any]) -> list[Any]:
    return [event["object"].get("code") or event["object"]["metadata"]["name"] for event in events]


def test_no_watch_begins_before_the_first_request(server: Server) -> None:
    definition = server.send("GET", f"{DEFINITIONS}/{NAME}")["body"]["metadata"]["resourceVersion"]
    first = server.create("a")
    server.create("b")
    assert names(server.watch("1")) == [410]
    assert names(server.watch(first)) == ["b"]
    assert int(definition) < int(first)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, ["b"]),
        ({"spec": {"names": {"shortNames": ["gr"]}}}, [410]),
    ],
)
def test_another_definition_has_another_storage(server: Server, change: dict[str, Any], found: list[Any]) -> None:
    first = server.create("a")
    server.create("b")
    server.send("PATCH", f"{DEFINITIONS}/{NAME}", change)
    assert names(server.watch(first)) == found


@pytest.mark.parametrize(
    ("method", "change"), [("PATCH", {"spec": {"names": {"categories": ["all"]}}}), ("DELETE", None)]
)
def test_an_open_watch_ends_with_the_definition(server: Server, method: str, change: dict[str, Any] | None) -> None:
    newest = server.create("a")
    seen: list[list[Any]] = []
    watching = threading.Thread(target=lambda: seen.append(server.watch(newest, seconds=30)))
    watching.start()
    while not server.send("GET", "/metrics")["text"].count(
        'apiserver_longrunning_requests{component="apiserver",group="w.'
    ):
        pass
    server.send(method, f"{DEFINITIONS}/{NAME}", change)
    watching.join(60)
    assert not watching.is_alive()
