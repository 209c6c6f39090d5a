"""Tests how discovery and OpenAPI change with a definition, as soon as its write has a response."""

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver.testing.background import running_server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OPENAPI = "apis/d.example.com/v1"


@pytest.fixture
def client() -> Iterator[Client]:
    with running_server() as server:
        yield Client(server.url, server.admin_token)


def definition(kind: str, versions: tuple[str, ...] = ("v1",), **names: Any) -> dict[str, Any]:
    plural = kind.lower() + "s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    rows = [
        {"name": name, "served": True, "storage": name == versions[0], "schema": {"openAPIV3Schema": anything}}
        for name in versions
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.d.example.com"},
        "spec": {
            "group": "d.example.com",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": rows,
        },
    }


def send(client: Client, method: str, path: str, body: Any = None, **more: str) -> Any:
    request = {"method": method, "path": path, **more}
    return client.send(request | ({"body": body} if body is not None else {}), [])


def merge(client: Client, name: str, patch: dict[str, Any]) -> Any:
    return send(client, "PATCH", f"{DEFINITIONS}/{name}", patch, type="application/merge-patch+json")


def resources(client: Client, version: str = "v1") -> list[Any]:
    body: dict[str, Any] = send(client, "GET", f"/apis/d.example.com/{version}").get("body") or {}
    return body.get("resources", [])


def conditions(client: Client, name: str) -> dict[str, tuple[str, str]]:
    status = send(client, "GET", f"{DEFINITIONS}/{name}")["body"]["status"]
    return {row["type"]: (row["status"], row["reason"]) for row in status["conditions"]}


def test_every_document_follows_a_definition(client: Client) -> None:
    def seen() -> tuple[Any, ...]:
        groups = send(client, "GET", "/apis")["body"]["groups"]
        index = send(client, "GET", "/openapi/v3").get("body")["paths"]
        older = send(client, "GET", "/openapi/v2")["body"]["definitions"]
        return (
            [row["version"] for group in groups if group["name"] == "d.example.com" for row in group["versions"]],
            index.get(OPENAPI),
            "com.example.d.v1.Gear" in older,
            send(client, "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.d.example.com")["status"],
        )

    assert seen() == ([], None, False, 404)
    send(client, "POST", DEFINITIONS, definition("Gear"))
    versions, url, older, api_service = seen()
    assert (versions, older, api_service) == (["v1"], True, 200)
    body = definition("Gear", ("v1", "v2beta1"))
    merge(client, "gears.d.example.com", {"spec": {"versions": body["spec"]["versions"]}})
    assert seen()[0] == ["v1", "v2beta1"]
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "string"}}}}
    merge(client, "gears.d.example.com", {"spec": {"versions": [{**body["spec"]["versions"][0], "schema": schema}]}})
    assert seen()[0] == ["v1"]
    assert seen()[1] != url
    send(client, "DELETE", f"{DEFINITIONS}/gears.d.example.com")
    assert seen() == ([], None, False, 404)


def test_names_and_subresources_change_in_place(client: Client) -> None:
    send(client, "POST", DEFINITIONS, definition("Gear"))
    merge(client, "gears.d.example.com", {"spec": {"names": {"shortNames": ["gr"], "categories": ["all"]}}})
    (row,) = resources(client)
    assert (row["shortNames"], row["categories"]) == (["gr"], ["all"])
    versions = definition("Gear")["spec"]["versions"]
    merge(client, "gears.d.example.com", {"spec": {"versions": [{**versions[0], "subresources": {"status": {}}}]}})
    assert [row["name"] for row in resources(client)] == ["gears", "gears/status"]


def test_a_name_is_served_once_and_handed_on_when_it_is_free(client: Client) -> None:
    send(client, "POST", DEFINITIONS, definition("Gear", shortNames=["gr"]))
    send(client, "POST", DEFINITIONS, definition("Cog", ("v2",), shortNames=["gr"]))
    assert conditions(client, "cogs.d.example.com") == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    # announced by the aggregator, but not served
    versions = send(client, "GET", "/apis/d.example.com")["body"]["versions"]
    assert [row["version"] for row in versions] == ["v2", "v1"]
    assert send(client, "GET", "/apis/d.example.com/v2")["status"] == 404
    send(client, "DELETE", f"{DEFINITIONS}/gears.d.example.com")
    assert conditions(client, "cogs.d.example.com") == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert [row["shortNames"] for row in resources(client, "v2")] == [["gr"]]


def test_a_definition_on_its_way_out_takes_no_new_objects(client: Client) -> None:
    send(client, "POST", DEFINITIONS, definition("Gear"))
    held = {
        "apiVersion": "d.example.com/v1",
        "kind": "Gear",
        "metadata": {"name": "a", "finalizers": ["d.example.com/x"]},
    }
    send(client, "POST", "/apis/d.example.com/v1/gears", held)
    send(client, "DELETE", f"{DEFINITIONS}/gears.d.example.com")
    assert [row["verbs"] for row in resources(client)] == [["delete", "deletecollection", "get", "list", "watch"]]
    refused = send(client, "POST", "/apis/d.example.com/v1/gears", {**held, "metadata": {"name": "b"}})
    assert refused["status"] == 403
    free = {"metadata": {"finalizers": None}}
    send(client, "PATCH", "/apis/d.example.com/v1/gears/a", free, type="application/merge-patch+json")
    assert send(client, "GET", f"{DEFINITIONS}/gears.d.example.com")["status"] == 404


def test_an_index_that_changed_within_the_second_is_not_taken_for_the_old_one(client: Client) -> None:
    """kubectl keeps the index and asks with If-Modified-Since, whose unit is the second."""
    show = {"method": "GET", "path": "/openapi/v3", "show": ["Last-Modified"]}
    before = client.send(show, [])["headers"]["Last-Modified"]
    send(client, "POST", DEFINITIONS, definition("Gear"))
    after = client.send({**show, "headers": {"If-Modified-Since": before}}, [])
    assert after["status"] == 200
    assert OPENAPI in after["body"]["paths"]


def test_a_definition_without_its_conditions_is_not_served(client: Client) -> None:
    """Names that are accepted already aren't decided on again, so nothing brings the conditions back."""
    send(client, "POST", DEFINITIONS, definition("Gear"))
    status = f"{DEFINITIONS}/gears.d.example.com/status"
    found = send(client, "PATCH", status, {"status": {"conditions": []}}, type="application/merge-patch+json")
    assert found["body"]["status"]["conditions"] == []
    assert conditions(client, "gears.d.example.com") == {}
    assert send(client, "GET", "/apis/d.example.com/v1/gears")["status"] == 404
    merge(client, "gears.d.example.com", {"spec": {"names": {"shortNames": ["gr"]}}})
    assert send(client, "GET", "/apis/d.example.com/v1/gears")["status"] == 200


def test_a_long_definition_is_established_before_the_next_request(client: Client) -> None:
    body = definition("Long")
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {f"field{number}": {"type": "string"} for number in range(10_000)}
    assert send(client, "POST", DEFINITIONS, body)["status"] == 201
    conditions = send(client, "GET", f"{DEFINITIONS}/longs.d.example.com")["body"]["status"]["conditions"]
    assert {row["type"]: row["status"] for row in conditions} == {"NamesAccepted": "True", "Established": "True"}
