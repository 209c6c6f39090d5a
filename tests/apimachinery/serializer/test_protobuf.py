"""Protobuf gives the objects that their JSON gives, and back again the bytes a real server writes for them."""

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.exchange import recorded, scenarios
from fakeapiserver.apimachinery.serializer import protobuf
from fakeapiserver.apis.protobuf import decoder, encoder, message_finder


def field(number: int, value: bytes | int | str) -> bytes:
    """Encodes a field: a varint or a length-delimited value."""
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
    return protobuf.decode(data, message_finder(), decoder())


KEY = field(1, "k")
AB = field(2, field(1, "a") + field(2, "1")) + field(2, field(1, "b") + field(2, "2"))
NEW_YEAR = field(1, 1767225600)
YEAR_ONE = field(1, 2**64 - 62135596800) + field(2, 0)
YEAR_NONE = field(1, 2**64 - 62162035200) + field(2, 0)


def http_get(port: bytes) -> bytes:
    return field(1, "") + field(2, port) + field(3, "") + field(4, "")


def condition(time: bytes) -> bytes:
    return field(1, "") + field(2, "") + field(4, time) + field(5, "") + field(6, "")


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


def test_what_go_writes_without_need_is_left_out() -> None:
    meta = field(1, "a") + field(2, "") + field(7, 0) + field(8, b"")
    assert decode(envelope("v1", "ConfigMap", field(1, meta)))["metadata"] == {"name": "a"}


# What every ObjectMeta has: name, generateName, namespace, selfLink, uid, resourceVersion, generation, creationTimestamp.
NO_META = b"".join([*(field(number, "") for number in range(1, 7)), field(7, 0), field(8, b"")])


@pytest.mark.parametrize(
    ("message", "obj", "raw"),
    [
        ("core.v1.ConfigMap", {}, field(1, NO_META)),
        ("core.v1.ConfigMap", {"data": {"b": "2", "a": "1"}}, field(1, NO_META) + AB),
        ("core.v1.Secret", {"metadata": {}, "data": {"k": "AAE="}}, field(1, NO_META) + field(2, KEY + field(2, b"\0\1")) + field(3, "")),
        # by value, though its fields are not: an empty volume still says which source it has none of
        ("core.v1.Volume", {"name": "v"}, field(1, "v") + field(2, b"")),
        ("core.v1.Volume", {"name": "v", "emptyDir": {}}, field(1, "v") + field(2, field(2, field(1, "")))),
        ("core.v1.Toleration", {"tolerationSeconds": 0}, b"".join(field(n, "") for n in range(1, 5)) + field(5, 0)),
        ("core.v1.ResourceFieldSelector", {}, field(1, "") + field(2, "") + field(3, field(1, "0"))),
        ("core.v1.HTTPGetAction", {"port": "web"}, http_get(field(1, 1) + field(2, 0) + field(3, "web"))),
        ("core.v1.HTTPGetAction", {"port": -1}, http_get(field(1, 0) + field(2, 2**64 - 1) + field(3, ""))),
        ("apps.v1.ControllerRevision", {"revision": 2}, field(1, NO_META) + field(2, b"") + field(3, 2)),
        ("apps.v1.ControllerRevision", {"data": {"a": 1}}, field(1, NO_META) + field(2, field(1, '{"a":1}')) + field(3, 0)),
        ("coordination.v1.LeaseSpec", {"renewTime": "2026-01-01T00:00:00.5Z"}, field(4, NEW_YEAR + field(2, 5 * 10**8))),
        ("core.v1.NamespaceCondition", {"lastTransitionTime": "0001-01-01T00:00:00Z"}, condition(YEAR_ONE)),
        ("core.v1.NamespaceCondition", {"lastTransitionTime": "0000-03-01T00:00:00Z"}, condition(YEAR_NONE)),
    ],
)  # fmt: skip
def test_encodes_as_go_does(message: str, obj: dict[str, object], raw: bytes) -> None:
    assert encoder().message("k8s.io.api." + message)(obj).hex() == raw.hex()


def recorded_objects() -> Iterator[dict[str, object]]:
    """Every object of a built-in kind that the real server has answered in the recorded exchanges."""
    find = message_finder()
    for _, path in scenarios():
        for answer in recorded(path):
            body = answer.get("body")
            if answer["type"] == "application/cbor":
                continue  # written down in a notation of its own
            if isinstance(body, dict) and "kind" in body and find(str(body.get("apiVersion", "")), str(body["kind"])):
                yield body


@pytest.mark.slow
def test_recorded_objects_come_back_as_they_were() -> None:
    """Through protobuf and back, whatever JSON shows without need left aside: zeros, and null for none."""
    find, seen = message_finder(), set()
    for obj in recorded_objects():
        api_version, kind = str(obj.get("apiVersion", "")), str(obj["kind"])
        name = find(api_version, kind)
        assert name is not None
        data = protobuf.envelope(api_version, kind, [encoder().message(name)(obj)])
        assert meaning(decode(data)) == meaning({"apiVersion": api_version, **obj}), kind
        seen.add(kind)
    assert len(seen) > 50


def meaning(value: object) -> object:
    """Without what says nothing; items of lists have no type of their own in protobuf."""
    if isinstance(value, dict):
        items = {key: meaning(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item not in (None, "", 0, False, [], {})}
    if isinstance(value, list):
        return [
            meaning(
                {k: v for k, v in i.items() if k not in ("kind", "apiVersion")}
                if isinstance(i, dict) and "metadata" in i
                else i
            )
            for i in value
        ]
    return value


def test_a_watch_frame_has_its_length_before_it() -> None:
    """The frame is the real server's for a namespace's bookmark."""
    frame = protobuf.watch_frame("BOOKMARK", protobuf.envelope("v1", "Namespace", [b"\x0a\x00"]))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    raw = envelope("v1", "Namespace", b"\x0a\x00") + field(3, "") + field(4, "")
    assert frame[4:] == field(1, "BOOKMARK") + field(2, field(1, raw))


def test_a_message_that_comes_twice_is_merged() -> None:
    """Protobuf merges repeated messages: later texts win, and lists are concatenated."""
    first, second = field(1, "a") + field(14, "x") + field(5, "u"), field(14, "y") + field(5, "v")
    found = decode(envelope("v1", "ConfigMap", field(1, first) + field(1, second)))
    assert found["metadata"] == {"name": "a", "finalizers": ["x", "y"], "uid": "v"}


@pytest.mark.parametrize(
    ("quantity", "found"), [(b"", "0"), (field(1, "2"), "2"), (field(9, "later"), "0")], ids=["empty", "set", "unknown"]
)
def test_an_unset_quantity_is_zero(quantity: bytes, found: str) -> None:
    hard = field(1, "pods") + field(2, quantity)
    quota = decode(envelope("v1", "ResourceQuota", field(2, field(1, hard))))
    assert quota["spec"] == {"hard": {"pods": found}}


def test_what_an_entry_of_a_map_says_may_go_on_behind_it() -> None:
    entry = field(1, "a") + field(2, "b!")[:-1]
    found = decode(envelope("v1", "ConfigMap", field(2, entry) + field(4095, "")))
    assert found["data"] == {"a": "b" + varint(4095 << 3 | 2)[:1].decode(errors="replace")}


def test_fields_of_a_later_version_are_skipped() -> None:
    assert decode(envelope("v1", "ConfigMap", field(4095, "new"))) == {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"{}", "expected prefix"),
        (protobuf.MAGIC + b"\x0a\xff", "unexpected EOF"),
        (protobuf.MAGIC + b"\x0a\x05a", "unexpected EOF"),
        (protobuf.MAGIC + b"\x0b", "wrong wireType = 3 for field TypeMeta"),
        (envelope("v1", "Nothing", b""), 'no kind "Nothing" is registered'),
        (envelope("v1", "ConfigMap", b"\x0a"), "unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\x0c"), "proto: ConfigMap: wiretype end group for non-group"),
        (envelope("v1", "ConfigMap", field(1, b"\x00")), "proto: ObjectMeta: illegal tag 0 .wire type 0."),
        (envelope("v1", "ConfigMap", field(1, field(5, 1))), "wrong wireType = 0 for field UID"),
        (envelope("v1", "ConfigMap", varint((1 << 31) << 3 | 2)), "illegal tag -2147483648 .wire type 17179869186."),
        (envelope("v1", "ConfigMap", field(2, field(1, "a") + field(3, "bcd")[:-1]) + b"x"), "unexpected EOF"),
        (envelope("v1", "ConfigMap", field(1, field(8, b"\xff"))), "unexpected EOF"),
        (envelope("v1", "ConfigMap", varint(99 << 3 | 3)), "unexpected EOF"),
        # numbers where bytes belong, which must not become that many bytes
        (protobuf.MAGIC + field(1, 1), "wrong wireType = 0"),
        (protobuf.MAGIC + field(1, field(1, 1 << 40)), "wrong wireType = 0"),
        (protobuf.MAGIC + field(2, 1 << 40), "wrong wireType = 0"),
        (envelope("v1", "ConfigMap", field(1, 1)), "wrong wireType = 0"),
        (envelope("v1", "ConfigMap", field(1, field(1, 1 << 40))), "wrong wireType = 0"),
        (envelope("v1", "ConfigMap", field(2, 1)), "wrong wireType = 0"),
        (envelope("v1", "Secret", field(2, field(2, 1 << 40))), "unexpected EOF"),
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


@pytest.mark.parametrize(("extra", "refusal"), [(0, ""), (1, "containers has more than 250000 items")])
def test_a_list_of_messages_is_bounded(extra: int, refusal: str) -> None:
    spec = field(2, b"") * (protobuf.MAX_ITEMS + extra)
    with contextlib.nullcontext() if not refusal else pytest.raises(protobuf.DecodeError, match=refusal):
        assert len(decode(envelope("v1", "Pod", field(2, spec)))["spec"]["containers"]) == protobuf.MAX_ITEMS  # type: ignore[index]
