"""Protobuf bodies give the objects that their JSON gives. The bytes are what the real kubectl 1.36 sent."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery.serializer import protobuf
from fakeapiserver.apis.protobuf import message_finder, messages


def field(number: int, value: bytes | int | str) -> bytes:
    """One field on the wire: a varint or a length-delimited value."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return protobuf.MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def decode(data: bytes) -> dict[str, object]:
    return protobuf.decode(data, message_finder(), messages())


META = field(1, "a") + field(11, field(1, "x") + field(2, "y"))


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        ("v1/ConfigMap", field(1, META), {"metadata": {"name": "a", "labels": {"x": "y"}}}),
        ("v1/ConfigMap", field(2, field(1, "k") + field(2, "v")), {"data": {"k": "v"}}),
        ("v1/Secret", field(2, field(1, "k") + field(2, b"\x00\x01")), {"data": {"k": "AAE="}}),
        ("v1/Pod", field(2, field(4, 30)), {"spec": {"terminationGracePeriodSeconds": 30}}),
        # a struct that JSON shows inline: Volume.volumeSource.emptyDir
        (
            "v1/Pod",
            field(2, field(1, field(1, "v") + field(2, field(2, b"")))),
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        ),
        # inline, though its tag names no protobuf field: EphemeralContainer.ephemeralContainerCommon
        (
            "v1/Pod",
            field(2, field(34, field(1, field(1, "d")) + field(2, "c"))),
            {"spec": {"ephemeralContainers": [{"name": "d", "targetContainerName": "c"}]}},
        ),
        (
            "v1/Service",
            field(2, field(1, field(4, field(1, 1) + field(3, "http")))),
            {"spec": {"ports": [{"targetPort": "http"}]}},
        ),
        ("v1/Service", field(2, field(1, field(4, field(2, 80)))), {"spec": {"ports": [{"targetPort": 80}]}}),
        (
            "v1/ResourceQuota",
            field(2, field(1, field(1, "pods") + field(2, field(1, "3")))),
            {"spec": {"hard": {"pods": "3"}}},
        ),
        (
            "meta.k8s.io/v1/DeleteOptions",
            field(1, 0) + field(4, "Background"),
            {"gracePeriodSeconds": 0, "propagationPolicy": "Background"},
        ),
    ],
)
def test_decodes_as_json_would(kind: str, raw: bytes, expected: dict[str, object]) -> None:
    api_version, _, name = kind.rpartition("/")
    assert decode(envelope(api_version, name, raw)) == {"apiVersion": api_version, "kind": name, **expected}


def test_an_unset_time_is_null() -> None:
    found = decode(envelope("v1", "ConfigMap", field(1, field(8, b""))))
    assert found["metadata"] == {"creationTimestamp": None}


def test_fields_of_a_later_version_are_skipped() -> None:
    assert decode(envelope("v1", "ConfigMap", field(4095, "new"))) == {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"{}", "expected prefix"),
        (protobuf.MAGIC + b"\x0a\xff", "unexpected EOF"),
        (protobuf.MAGIC + b"\x0a\x05a", "unexpected EOF"),
        (protobuf.MAGIC + b"\x0b", "illegal wireType 3"),
        (envelope("v1", "Nothing", b""), 'no kind "Nothing" is registered'),
        (envelope("v1", "ConfigMap", b"\x0a"), "unexpected EOF"),
        # numbers where bytes belong, which must not become that many bytes
        (protobuf.MAGIC + field(1, 1), "wrong wireType = 0"),
        (protobuf.MAGIC + field(1, field(1, 1 << 40)), "wrong wireType = 0"),
        (protobuf.MAGIC + field(2, 1 << 40), "wrong wireType = 0"),
        (envelope("v1", "ConfigMap", field(1, 1)), "wrong wireType = 0"),
        (envelope("v1", "ConfigMap", field(1, field(1, 1 << 40))), "wrong wireType = 0"),
        (envelope("v1", "ConfigMap", field(2, 1)), "wrong wireType = 0"),
        (envelope("v1", "Secret", field(2, field(2, 1 << 40))), "wrong wireType = 0"),
        (envelope("v1", "Pod", field(2, field(1, field(2, 1)))), "wrong wireType = 0"),
        (envelope("v1", "Pod", field(2, field(4, "x"))), "wrong wireType = 2"),
        (envelope("v1", "ResourceQuota", field(2, field(1, field(2, field(1, 1 << 40))))), "wrong wireType = 0"),
        (envelope("v1", "ConfigMap", field(1, field(8, field(1, 1 << 60)))), "year outside of range"),
    ],
)
def test_refuses_what_is_no_message(data: bytes, complaint: str) -> None:
    with pytest.raises(protobuf.DecodeError, match=complaint):
        decode(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_refusal(raw: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode(envelope("v1", "Pod", raw))
