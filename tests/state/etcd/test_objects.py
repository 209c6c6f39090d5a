"""The objects in files of etcd: which are read, and why the others are not."""

from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import cbor, json, protobuf
from fakeapiserver.apis import protobuf as protobuf_messages
from fakeapiserver.state.etcd.objects import objects_of
from tests.state.etcd.keyspace_builder import Etcd
from tests.storage.encryption.examples import RULES, STORED, transformers, written

WIDGET: Object = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "left", "namespace": "shop"},
    "spec": {"ratio": 1.5, "count": 3},
}
CONFIG_MAP: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "shop", "creationTimestamp": "2026-01-02T03:04:05Z"},
    "data": {"k": "v"},
}
SCALER: Object = {
    "apiVersion": "autoscaling/v1",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3},
    "status": {"currentReplicas": 2, "desiredReplicas": 3},
}


def enveloped(obj: Object, message: str) -> bytes:
    """An object as API servers store built-in kinds."""
    return protobuf.envelope(obj["apiVersion"], obj["kind"], [protobuf_messages.encoder().message(message)(obj)])


def with_revision(obj: Object, revision: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


def test_objects_have_their_stored_version_and_their_revision() -> None:
    etcd = Etcd().put(b"/registry/configmaps/shop/a", b"{}")
    etcd.put(b"/registry/example.com/widgets/shop/left", json.encode(WIDGET))
    etcd.put(
        b"/registry/horizontalpodautoscalers/shop/web",
        enveloped(SCALER, "k8s.io.api.autoscaling.v1.HorizontalPodAutoscaler"),
    )
    etcd.put(b"/registry/configmaps/shop/a", enveloped(CONFIG_MAP, "k8s.io.api.core.v1.ConfigMap"))
    etcd.put(b"/registry/example.com/widgets/shop/right", cbor.encode(WIDGET))
    etcd.put(b"/registry/example.com/widgets/shop/gone", b"{}").delete(b"/registry/example.com/widgets/shop/gone")
    snapshot = objects_of(etcd.file())
    assert [*snapshot.objects] == [
        ("/registry/configmaps/shop/a", with_revision(CONFIG_MAP, 5)),
        ("/registry/example.com/widgets/shop/left", with_revision(WIDGET, 3)),
        ("/registry/example.com/widgets/shop/right", with_revision(WIDGET, 6)),
        ("/registry/horizontalpodautoscalers/shop/web", with_revision(SCALER, 4)),
    ]
    assert [*snapshot.untaken] == []
    assert (snapshot.revision, snapshot.compacted) == (8, 0)


@pytest.mark.parametrize("prefix", ["/kubernetes.io", "kubernetes.io/", "/kubernetes.io/"])
def test_the_prefix_is_that_of_the_api_server(prefix: str) -> None:
    etcd = (
        Etcd().put(b"/kubernetes.io/widgets/left", json.encode(WIDGET)).put(b"/kubernetes.iota/x", json.encode(WIDGET))
    )
    snapshot = objects_of(etcd.file(), prefix)
    assert [key for key, _ in snapshot.objects] == ["/kubernetes.io/widgets/left"]
    assert [*snapshot.untaken] == [
        ("/kubernetes.iota/x", "is not below /kubernetes.io/, where the API server keeps its objects")
    ]


UNKNOWN = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta1", "kind": "FlowSchema"}
ENDPOINTS: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "kubernetes"}}
UNTAKEN: dict[bytes, tuple[bytes, str]] = {
    b"compact_rev_key": (b"123", "is not below /registry/, where the API server keeps its objects"),
    b"/registry/masterleases/10.0.0.1": (
        enveloped(ENDPOINTS, "k8s.io.api.core.v1.Endpoints"),
        "is the record by which an API server announces its address to the others",
    ),
    b"/registry/ranges/serviceips": (
        protobuf.envelope("v1", "RangeAllocation", []),
        "is a record of allocated addresses or ports, which API servers keep for themselves",
    ),
    b"/registry/health": (b"", "is a key that checks of etcd's health read"),
    b"/registry/secrets/shop/a": (
        b"k8s:enc:aescbc:v1:key1:\x01\x02",
        "is encrypted by the provider aescbc with the key key1; "
        "load it with its --encryption-provider-config, or save a snapshot of it with the provider identity",
    ),
    b"/registry/secrets/shop/b": (
        b"k8s:enc:kms:v2:vault:\xff",
        "is encrypted by the provider kms with the key vault; "
        "load it with its --encryption-provider-config, or save a snapshot of it with the provider identity",
    ),
    b"/registry/flowschemas/a": (
        protobuf.envelope(UNKNOWN["apiVersion"], UNKNOWN["kind"], []),
        "is a FlowSchema of flowcontrol.apiserver.k8s.io/v1beta1, which Kubernetes v1.37 doesn't have",
    ),
    b"/registry/pods/shop/a": (
        protobuf.envelope("v1", "Pod", [b"\x0a\x7f"]),
        "is not a valid Pod of v1: unexpected EOF",
    ),
    b"/registry/pods/shop/b": (protobuf.envelope("v1", "Pod", []), "is not an object: it has no metadata with a name"),
    b"/registry/pods/shop/c": (b"k8s\x00\x0a\x7f", "is not valid protobuf: unexpected EOF"),
    b"/registry/widgets/a": (b"{}", "is not an object: it has no apiVersion and kind"),
    b"/registry/widgets/b": (b'{"apiVersion":"v1",', "is not valid JSON: unexpected end of JSON input"),
    b"/registry/widgets/c": (b"\xd9\xd9\xf7\xa1", "is not valid CBOR: unexpected EOF"),
    b"/registry/widgets/d": (b"\x01", "is neither protobuf, JSON, CBOR nor encrypted: it begins with 01"),
    b"/registry/widgets/e": (b"", "is neither protobuf, JSON, CBOR nor encrypted: it is empty"),
    b"/registry/widgets/f": (
        b"[" * 100_000,
        "is neither protobuf, JSON, CBOR nor encrypted: it begins with 5b5b5b5b5b5b5b5b",
    ),
    b"/registry/widgets/g": (b'{"a":' * 100_000, "is not valid JSON: invalid character '{' exceeded max depth"),
}


@pytest.mark.parametrize("key", UNTAKEN)
def test_a_key_that_holds_no_object_is_listed_with_the_reason(key: bytes) -> None:
    value, reason = UNTAKEN[key]
    snapshot = objects_of(Etcd().put(key, value).file())
    assert [*snapshot.untaken] == [(key.decode(), reason)]
    assert [*snapshot.objects] == []


def test_an_older_version_knows_fewer_kinds() -> None:
    """The kinds are those of the version that loads the objects."""
    workload: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "metadata": {"name": "a"},
    }
    data = Etcd().put(b"/registry/workloads/a", protobuf.envelope(workload["apiVersion"], "Workload", [])).file()
    assert [*objects_of(data, version="v1.33").untaken] == [
        ("/registry/workloads/a", "is a Workload of scheduling.k8s.io/v1alpha2, which Kubernetes v1.33 doesn't have")
    ]


def test_encrypted_values_are_read_with_their_configuration() -> None:
    """Values that a real server has stored; those without a key are listed."""
    pytest.importorskip("nacl", reason="the extra [etcd] isn't installed")
    store = Etcd()
    for key, value in STORED.items():
        store.put(key.encode(), value)
    rules = {name: providers for name, providers in RULES.items() if name != "*.apps"}
    loaded = objects_of(store.file(), encryption=transformers(rules))
    assert {key: obj["kind"] for key, obj in loaded.objects} == {
        "/registry/secrets/default/s1": "Secret",
        "/registry/configmaps/default/c1": "ConfigMap",
        "/registry/serviceaccounts/default/sa1": "ServiceAccount",
        "/registry/example.com/widgets/default/w": "Widget",
    }
    ((key, reason),) = loaded.untaken
    assert key == "/registry/deployments/default/d1"
    assert reason.startswith(
        "is encrypted by the provider aescbc with the key a; load it with its --encryption-provider-config"
    )


def test_a_cluster_loads_encrypted_values(tmp_path: Path) -> None:
    pytest.importorskip("nacl", reason="the extra [etcd] isn't installed")
    store, snapshot, rules = Etcd(), tmp_path / "snapshot.db", tmp_path / "rules.json"
    store.put(b"/registry/secrets/default/s1", STORED["/registry/secrets/default/s1"])
    store.put(b"/registry/configmaps/shop/a", json.encode(CONFIG_MAP))
    snapshot.write_bytes(store.file())
    rules.write_bytes(written(RULES))
    with Cluster.load(snapshot, controllers=(), encryption_provider_config=rules) as cluster:
        assert cluster.get("secret/s1")["data"]
    with Cluster.load(snapshot, controllers=()) as cluster:
        assert "is encrypted by the provider secretbox with the key box1" in str(cluster.load_report)
