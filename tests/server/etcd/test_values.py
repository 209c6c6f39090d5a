"""The bytes of objects in etcd: what a real API server reads, and what is read of a real one's."""

import asyncio
import json

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.registry.core.service.port_record import Recorded
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.etcd.port_record import EtcdPortRecord
from fakeapiserver.server.etcd.values import ServerValues
from fakeapiserver.server.options.config import Config
from fakeapiserver.state.etcd import objects
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.messages import RangeRequest

JSON = "application/json"
MAGIC = b"k8s\x00"


def values(media_type: str = "application/vnd.kubernetes.protobuf", version: str = NEWEST) -> ServerValues:
    made = ServerValues(media_type)
    made.scopes = APIServer(Config(kubernetes_version=version)).scopes
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


@pytest.mark.parametrize("media_type", ["application/vnd.kubernetes.protobuf", JSON])
@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_objects_are_written_in_a_version_that_is_not_served_and_read_in_all(media_type: str, version: str) -> None:
    """kube-apiserver 1.36.3 serves MutatingAdmissionPolicies in v1, and stores them in v1beta1."""
    policy = {
        "apiVersion": f"admissionregistration.k8s.io/{version}",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"reinvocationPolicy": "Never"},
    }
    there, key = values(media_type, "v1.36"), "/registry/mutatingadmissionpolicies/p"
    decoded = there.decode(key, json.dumps(policy).encode())
    assert decoded is not None
    data = there.encode(key, decoded.value, decoded.index)
    assert objects.decode_value(data, "v1.36")["apiVersion"] == "admissionregistration.k8s.io/v1beta1"
    assert there.decode(key, data) == decoded


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


@pytest.mark.parametrize(
    ("media_type", "stored"),
    [
        (
            "application/vnd.kubernetes.protobuf",
            b'k8s\x00\n\x15\n\x02v1\x12\x0fRangeAllocation\x12"\n\x10\n\x00\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00'
            b'\x12\x0b30000-32767\x1a\x01\x81\x1a\x00"\x00',
        ),
        (
            JSON,
            b'{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"30000-32767","data":"gQ=="}\n',
        ),
    ],
)
def test_the_record_of_node_ports_has_the_bytes_of_a_real_server(
    shared_etcd: EtcdProcess, prefix: str, media_type: str, stored: bytes
) -> None:
    """Recorded from kube-apiserver 1.36.3 with the node ports 30000 and 30007."""

    async def scenario() -> None:
        client, key = Client.of([shared_etcd.url]), f"{prefix}ranges/servicenodeports".encode()
        record = EtcdPortRecord(client, values(media_type), prefix)
        assert await record.read() == Recorded()
        assert await record.replace(Recorded(), 1 | 1 << 7, "30000-32767")
        (kv,) = (await client.range(RangeRequest(key))).kvs
        assert kv.value == stored
        recorded = await record.read()
        assert recorded == Recorded(1 | 1 << 7, kv.mod_revision, "30000-32767")
        assert not await record.replace(Recorded(), 0, "30000-32767")
        assert await record.read() == recorded
        assert await record.replace(recorded, 0, "30000-32767")
        assert (await record.read()).bits == 0
        await client.close()

    asyncio.run(scenario())
