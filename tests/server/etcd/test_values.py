"""The bytes of objects in etcd: what a real API server reads, and what is read of a real one's."""

import json

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.etcd.values import ServerValues
from fakeapiserver.server.options.config import Config
from fakeapiserver.state.etcd import objects

JSON = "application/json"
MAGIC = b"k8s\x00"


def values(media_type: str = "application/vnd.kubernetes.protobuf") -> ServerValues:
    made = ServerValues(media_type)
    made.scopes = APIServer(Config()).scopes
    return made


def pod(**metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "labels": {"app": "web"}, **metadata},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }


@pytest.mark.parametrize(("media_type", "begin"), [("application/vnd.kubernetes.protobuf", MAGIC), (JSON, b'{"kind":')])
def test_a_built_in_kind_in_both_forms(media_type: str, begin: bytes) -> None:
    there = values(media_type)
    key = "/registry/pods/default/web"
    decoded = there.decode(key, json.dumps(pod(resourceVersion="7")).encode())
    assert decoded is not None
    assert (decoded.index.labels, decoded.index.uid, decoded.index.version) == ({"app": "web"}, "u", "v1")
    assert decoded.index.fields["spec.restartPolicy"] == "Always"
    data = there.encode(key, decoded.value, decoded.index)
    assert data.startswith(begin)
    assert b"resourceVersion" not in data
    assert objects.decode_value(data, "v1.36")["spec"]["restartPolicy"] == "Always"
    for reader in (there, values(JSON), values()):
        assert reader.decode(key, data) == decoded


@pytest.mark.parametrize(
    ("key", "data", "reason"),
    [
        ("/registry/pods/default/web", b"", "is neither protobuf, JSON, CBOR nor encrypted: it is empty"),
        (
            "/registry/secrets/default/s",
            b"k8s:enc:aescbc:v1:key1:x",
            "identity transformer tried to read encrypted data",
        ),
        ("/registry/pods/default/web", b'{"kind":"Pod"}', "is not an object: it has no apiVersion and kind"),
        (
            "/registry/pods/default/web",
            b'{"apiVersion":"v9","kind":"Pod","metadata":{"name":"a"}}',
            "is a Pod of v9, which isn't served",
        ),
        (
            "/registry/oddities/default/web",
            b'{"apiVersion":"v1","kind":"Oddity","metadata":{"name":"a"}}',
            "is one of the oddities, which this server doesn't serve",
        ),
    ],
)
def test_values_that_cannot_be_read(key: str, data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        values().decode(key, data)


@pytest.mark.parametrize("key", ["ranges/serviceips", "masterleases/10.0.0.1", "peerserverleases/x", "health"])
def test_keys_that_api_servers_keep_for_themselves_are_no_objects(key: str) -> None:
    assert values().decode(f"/registry/{key}", b"k8s\x00anything") is None


def test_a_custom_resource_is_read_before_its_definition_and_kept_as_it_was() -> None:
    widget = {
        "apiVersion": "apps.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default", "uid": "u"},
        "spec": {"size": 1},
    }
    there = values()
    decoded = there.decode("/registry/apps.example.com/widgets/default/a", json.dumps(widget).encode())
    assert decoded is not None
    assert json.loads(decoded.value) == {"metadata": widget["metadata"], "spec": {"size": 1}}
    assert decoded.index.fields == {"metadata.name": "a", "metadata.namespace": "default"}
    assert decoded.index.version == "v1"
    assert [*there.defined()] == []


@pytest.mark.parametrize(
    ("key", "seconds"), [("events/default/e", 3600), ("pods/default/p", 0), ("services/specs/default/s", 0)]
)
def test_events_expire(key: str, seconds: int) -> None:
    assert values().seconds(f"/registry/{key}") == seconds
