"""Protobuf answers that recordings don't hold: errors of watches, what is encoded once, custom resources."""

import asyncio
import json
from typing import Any

import pytest

from conformance.exchange import Answer, Client
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.endpoints.negotiation import protobuf
from fakeapiserver.endpoints.negotiation.partial import PartialForm

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())

PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = PROTOBUF + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture
def client(fake_cluster: Cluster) -> Client:
    return Client(fake_cluster.url, fake_cluster.token)


def send(client: Client, method: str, path: str, accept: str, **request: Any) -> Answer:
    return client.send({"method": method, "path": path, "accept": accept, **request}, [])


def test_a_watch_from_a_forgotten_revision_gets_one_error(fake_cluster: Cluster, client: Client) -> None:
    fake_cluster.restore(fake_cluster.snapshot())
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion=2&timeoutSeconds=1"
    shown = send(client, "GET", path, "application/json")["body"]
    answer = send(client, "GET", path, PROTOBUF)
    assert answer["status"] == 200
    (event,) = answer["frames"]
    assert event["type"] == shown["type"] == "ERROR"
    (_, type_meta), (_, status), *_ = event["object"]
    assert type_meta == [[1, "v1"], [2, "Status"]]
    values = dict(status)
    assert (values[2], values[3], values[4], values[6]) == ("Failure", shown["object"]["message"], "Expired", 410)


@pytest.fixture
def widgets(client: Client) -> Client:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert send(client, "POST", path, PROTOBUF, body=body)["status"] == 201
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "size": 1}
    assert send(client, "POST", WIDGETS, "application/json", body=widget)["status"] == 201
    return client


@pytest.mark.parametrize(
    ("accept", "status", "media_type"),
    [
        (PROTOBUF, 406, PROTOBUF),
        (f"{PROTOBUF},application/json", 200, "application/json"),
        (METADATA, 200, PROTOBUF),
        (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1", 406, "application/json"),
        ("application/cbor", 406, "application/json"),
        ("application/*", 200, "application/json"),
    ],
)
@pytest.mark.parametrize("query", ["", "?watch=1&timeoutSeconds=1"])
def test_custom_resources_have_only_metadata_as_protobuf(
    widgets: Client, accept: str, status: int, media_type: str, query: str
) -> None:
    listed = accept.replace("Metadata;", "MetadataList;") if not query else accept
    answer = send(widgets, "GET", WIDGETS + query, listed)
    assert (answer["status"], answer["type"]) == (status, media_type)


def test_a_write_that_can_not_be_answered_is_not_done(widgets: Client) -> None:
    assert send(widgets, "DELETE", f"{WIDGETS}/a", PROTOBUF)["status"] == 406
    assert send(widgets, "GET", f"{WIDGETS}/a", "application/json")["status"] == 200


def stored(name: str, revision: int = 1) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": str(revision), "name": name}, "data": {"k": "v"}}).encode()


def test_each_stored_object_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every reader, list and watch, until it changes; what is kept is bounded."""
    encoded: list[str] = []

    def encode(obj: Any) -> bytes:
        encoded.append(obj["metadata"]["name"])
        return b"x" * 10

    monkeypatch.setattr(protobuf, "message_encoder", lambda api_version, kind: encode)
    monkeypatch.setattr(protobuf, "_KEPT", 25)
    form = protobuf.StoredForm(GroupVersionKind("", "v1", "ConfigMap"), "ConfigMapList", lambda value: value)
    form.object(stored("a"))
    asyncio.run(form.list([stored("a"), stored("b")], {}))
    form.object(stored("b"))
    assert encoded == ["a", "b"]
    form.object(stored("a", 2))
    form.object(stored("a"))
    assert encoded == ["a", "b", "a", "a"]


def test_metadata_alone_is_taken_from_the_stored_bytes() -> None:
    """Internal annotations, which conversion makes, are left out."""
    value = b'{"metadata":{"resourceVersion":"7","name":"a","annotations":{"in":"0"}},"spec":{"a":1}}'
    plain = PartialForm("v1", lambda value: value, {})
    assert json.loads(plain.object(value)) == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7", "name": "a", "annotations": {"in": "0"}},
    }
    internal = PartialForm("v1beta1", lambda value: value, {"in": "0"})
    assert json.loads(internal.list([value], {"resourceVersion": "9"})) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1beta1",
        "metadata": {"resourceVersion": "9"},
        "items": [
            {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1beta1",
                "metadata": {"resourceVersion": "7", "name": "a"},
            }
        ],
    }


def test_a_rules_review_shows_nothing_of_the_question(client: Client) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = send(client, "POST", path, "application/json", body={"spec": {"namespace": "default"}})["body"]
    assert (answer["metadata"], answer["spec"]) == ({}, {})
    assert answer["status"]["resourceRules"]
