"""Objects stored under another version or schema are stored again by a write that changes nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

Json = dict[str, Any]
Ask = Callable[..., Json]
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def version(name: str, *fields: str, storage: bool = False, served: bool = True) -> Json:
    spec = {"type": "object", "properties": {field: {"type": "integer"} for field in fields}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": served, "storage": storage, "schema": schema}


def path(of: str, name: str = "") -> str:
    return f"/apis/example.com/{of}/namespaces/default/moves{name}"


@pytest.fixture
def ask(fake_cluster: Cluster) -> Ask:
    client = Client(fake_cluster.url, fake_cluster.token)

    def send(method: str, at: str, body: Any = None) -> Json:
        return client.send({"method": method, "path": at, "body": body, "type": MERGE if method == "PATCH" else ""}, [])

    names = {"plural": "moves", "kind": "Move"}
    versions = [version("v1", "a", "c", storage=True), version("v2", "a")]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    assert (
        client.send(
            {"method": "POST", "path": DEFINITION, "body": {"metadata": {"name": "moves.example.com"}, "spec": spec}},
            [],
        )["status"]
        == 201
    )
    obj = {"apiVersion": "example.com/v1", "kind": "Move", "metadata": {"name": "x"}, "spec": {"a": 1, "c": 1}}
    assert client.send({"method": "POST", "path": path("v1"), "body": obj}, [])["status"] == 201
    return send


def test_what_a_version_does_not_know_is_lost_with_a_write_through_it(ask: Ask) -> None:
    assert ask("GET", path("v2", "/x"))["body"]["spec"] == {"a": 1}
    assert ask("GET", path("v1", "/x"))["body"]["spec"] == {"a": 1, "c": 1}
    ask("PATCH", path("v2", "/x"), {})
    assert ask("GET", path("v1", "/x"))["body"]["spec"] == {"a": 1}


def revision(answer: Json) -> str:
    return str(answer["body"]["metadata"]["resourceVersion"])


def test_a_write_that_changes_nothing_is_skipped_if_the_stored_form_stays_the_same(ask: Ask) -> None:
    before = revision(ask("GET", path("v1", "/x")))
    assert revision(ask("PATCH", path("v1", "/x"), {})) == before
    assert revision(ask("PATCH", path("v2", "/x"), {})) != before


@pytest.mark.parametrize(
    "left",
    [
        pytest.param([], marks=pytest.mark.fake_cluster(kubernetes_version="1.36")),
        pytest.param(["example.com/v1", "example.com/v2"], marks=pytest.mark.fake_cluster(kubernetes_version="1.37")),
    ],
)
def test_fields_stay_with_who_wrote_in_a_version_that_is_not_served_any_more(ask: Ask, left: list[str]) -> None:
    def owners() -> list[str]:
        managed = ask("PATCH", path("v2", "/x"), {"metadata": {"labels": {"again": "1"}}})["body"]["metadata"]
        return [entry["apiVersion"] for entry in managed.get("managedFields", [])]

    for first in (version("v1", "a", "c", served=False), None):
        versions = [found for found in (first, version("v2", "a", storage=True)) if found]
        if first is None:
            ask("PATCH", f"{DEFINITION}/moves.example.com/status", {"status": {"storedVersions": ["v2"]}})
        assert ask("PATCH", f"{DEFINITION}/moves.example.com", {"spec": {"versions": versions}})["status"] == 200
        if first is not None:
            assert owners() == ["example.com/v1", "example.com/v2"]
    # With the version its schema is gone, and with it, until 1.36, all owners.
    ask("PATCH", path("v2", "/x"), {"metadata": {"labels": {"again": "2"}}})
    assert owners() == left
