"""The stored form of objects, where the revision goes, and how the type is added."""

import json
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.key_order import arrangement
from fakeapiserver.apis import scheme
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.registry.generic import canonical
from fakeapiserver.storage.versioner import restamp, stamp

UID = "4f1c7d9e-0000-4000-8000-000000000000"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
LOCK = GroupVersionKind("example.com", "v1", "Lock")


def _encode_config_map(obj: Object) -> canonical.Encoded:
    arrange = arrangement(scheme.load().definitions, "io.k8s.api.core.v1.ConfigMap", field_order)
    return canonical.built_in_encoder(arrange)(obj)


def _meta(**fields: Any) -> dict[str, Any]:
    return {"uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z", **fields, "name": "x", "resourceVersion": "3"}


@pytest.mark.parametrize(
    ("gvk", "obj", "served"),
    [
        (
            CONFIG_MAP,
            {"data": {"b": "1", "a": "2"}, "metadata": _meta(labels={"b": "1", "a": "2"})},
            f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"x","uid":"{UID}","resourceVersion":"7",'
            '"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"2","b":"1"}},"data":{"a":"2","b":"1"}}',
        ),
        # Texts that look like what the revision is put behind.
        (
            CONFIG_MAP,
            {"metadata": _meta(generateName='"uid":"', namespace='"uid":"x",')},
            '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","generateName":"\\"uid\\":\\"",'
            f'"namespace":"\\"uid\\":\\"x\\",","uid":"{UID}","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z"}}}}',
        ),
        (
            LOCK,
            {"spec": {"b": 1, "a": 2.0}, "metadata": _meta(labels={"b": "1", "a": "2"})},
            '{"apiVersion":"example.com/v1","kind":"Lock","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z",'
            f'"labels":{{"a":"2","b":"1"}},"name":"x","resourceVersion":"7","uid":"{UID}"}},"spec":{{"a":2,"b":1}}}}',
        ),
        # Annotations and owners have such keys themselves.
        (
            LOCK,
            {"metadata": _meta(annotations={"uid": "1", "resourceVersion": "2"}, ownerReferences=[{"uid": "3"}])},
            '{"apiVersion":"example.com/v1","kind":"Lock","metadata":{"annotations":{"resourceVersion":"2","uid":"1"},'
            '"creationTimestamp":"2026-01-01T00:00:00Z","name":"x","ownerReferences":[{"uid":"3"}],"resourceVersion":"7",'
            f'"uid":"{UID}"}}}}',
        ),
        # Keys in front of metadata, of the type and between the two.
        (
            LOCK,
            {"zeta": 1, "data": {"metadata": {}}, "alpha": 1, "metadata": {"uid": UID, "name": "x"}, "l": 1},
            '{"alpha":1,"apiVersion":"example.com/v1","data":{"metadata":{}},"kind":"Lock","l":1,'
            f'"metadata":{{"name":"x","resourceVersion":"7","uid":"{UID}"}},"zeta":1}}',
        ),
    ],
)
def test_keys_are_in_the_order_in_which_go_writes_them(gvk: GroupVersionKind, obj: Object, served: str) -> None:
    encoded = canonical.encode_custom(obj) if gvk is LOCK else _encode_config_map(obj)
    prefix = canonical.TypePrefix(gvk, custom=gvk is LOCK)
    stamped = stamp(encoded.value, encoded.offset, 12)
    assert prefix.added(restamp(stamped, encoded.offset, 7)).decode() == served
    assert prefix.added(encoded.with_revision("7")).decode() == served
    assert prefix.added_to_all([encoded.with_revision("7")] * 2).decode() == f"{served},{served}"
    assert canonical.decode(stamped, gvk) == {
        **json.loads(served),
        "metadata": {**obj["metadata"], "resourceVersion": "12"},
    }
