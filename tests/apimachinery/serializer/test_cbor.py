"""CBOR as Kubernetes reads and writes it: upstream's words for what isn't well-formed or doesn't fit, and bounds for hostile input."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery.schema.cbor import documents as cbor_documents
from fakeapiserver.apimachinery.schema.cbor import shapes
from fakeapiserver.apimachinery.serializer import cbor
from fakeapiserver.apis.scheme import load

DEFINITIONS = load().definitions
CORE = "io.k8s.api.core.v1."
BODY_LIMIT = 3 * 1024 * 1024


def _map(value: str) -> Any:
    """Decodes the map {"a": value}, its value in hexadecimal, and returns the value."""
    return (cbor.decode_map(bytes.fromhex("a14161" + value)) or {})["a"]


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("00", 0),
        ("1818", 24),
        ("1b7fffffffffffffff", 2**63 - 1),
        ("20", -1),
        ("3b7fffffffffffffff", -(2**63)),
        ("4161", "a"),
        ("6161", "a"),
        ("41ff", "\ufffd"),
        ("5f41614162ff", "ab"),
        ("7f61616162ff", "ab"),
        ("80", []),
        ("9f01f6ff", [1, None]),
        ("a0", {}),
        ("bf416101ff", {"a": 1}),
        ("f4", False),
        ("f5", True),
        ("f93e00", 1.5),
        ("fa3fc00000", 1.5),
        ("fb3ff199999999999a", 1.1),
        ("d9d9f74161", "a"),
        ("d863 01", 1),
        ("d5 42 fbff", "-_8"),
        ("d6 42 fbff", "+/8="),
        ("d7 42 fbff", "fbff"),
        ("d6 82 4161 d7 4161", ["YQ==", "61"]),
        ("c1 00", "1970-01-01T00:00:00Z"),
        ("c1 f93e00", "1970-01-01T00:00:01.5Z"),
        ("c1 3a 000151 7f", "1969-12-31T00:00:00Z"),
    ],
)
def test_items_are_read_as_json_has_them(encoded: str, value: object) -> None:
    found = _map(encoded)
    assert found == value
    assert type(found) is type(value)


def _time(text: str) -> Any:
    return _map("c0" + f"78{len(text):02x}" + text.encode().hex())


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:02:03.500+01:00", "2026-01-01T01:02:03.5+01:00"),
        ("2026-01-01T01:02:03.000+00:00", "2026-01-01T01:02:03Z"),
        ("2026-01-01T01:02:03,1234567891Z", "2026-01-01T01:02:03.123456789Z"),
    ],
)
def test_tagged_times_are_texts(text: str, canonical: str) -> None:
    assert _time(text) == canonical


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ("", "EOF"),
        ("a1", "unexpected EOF"),
        ("a0a0", "cbor: 1 bytes of extraneous data starting at index 1"),
        ("ff", 'cbor: unexpected "break" code'),
        ("bf01ff", 'cbor: unexpected "break" code'),
        ("1c", "cbor: invalid additional information 28 for type positive integer"),
        ("f818", "cbor: invalid simple value 24 for type primitives"),
        ("c240", "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
        ("f97e00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"),
        ("fa7f800000", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"),
        ("5f6161ff", "cbor: wrong element type UTF-8 text string for indefinite-length byte string"),
        ("5f5fffff", "cbor: indefinite-length byte string chunk is not definite-length"),
        ("5bffffffffffffffff", "cbor: byte string length 18446744073709551615 is too large, causing integer overflow"),
        ("9affffffff", "cbor: exceeded max number of elements 2147483647 for CBOR array"),
        ("baffffffff", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
        ("80", "cbor: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("a10101", "cbor: cannot unmarshal positive integer into Go value of type string"),
        (
            "a13bffffffffffffffff00",
            "cbor: cannot unmarshal negative integer into Go value of type string (-18446744073709551616 overflows Go's int64)",
        ),
        ("a2416101416102", 'cbor: found duplicate map key "a" at map element index 1'),
        ("a1416161ff", "cbor: invalid UTF-8 string"),
        (
            "a14161f7",
            "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized",
        ),
        (
            "a141611b8000000000000000",
            "cbor: cannot unmarshal positive integer into Go value of type int64 (9223372036854775808 overflows Go's int64)",
        ),
        ("a14161c001", "cbor: tag number 0 must be followed by text string, got positive integer"),
        # The first error is reported, but a repeated key in the same map precedes it.
        ("a3416161ff4162f7416301", "cbor: invalid UTF-8 string"),
        ("a3416161ff41620141 6202", 'cbor: found duplicate map key "b" at map element index 2'),
    ],
)
def test_another_type_than_a_map_has_upstreams_message(document: str, error: str) -> None:
    with pytest.raises(cbor.DecodeError) as raised:
        cbor.decode_map(bytes.fromhex(document))
    assert str(raised.value) == error


@pytest.mark.parametrize(
    "document",
    [
        b"\x81" * 10_001 + b"\x00",
        b"\xc6" * 10_002 + b"\x00",
        b"\x9f" * BODY_LIMIT,
        b"\xbf" * BODY_LIMIT,
        b"\x9a\x7f\xff\xff\xff",
        b"\x5b\x7f" + b"\xff" * 7,
        b"\x9a\x00\x2f\xff\xf0" + b"\x80" * 0x2FFFF0,
        b"\xd8\x18" * (BODY_LIMIT // 2),
    ],
    ids=["deep lists", "deep tags", "open lists", "open maps", "long list", "long string", "wide list", "tags"],
)
def test_hostile_documents_are_refused_soon(document: bytes) -> None:
    started = time.monotonic()
    with pytest.raises(cbor.DecodeError):
        cbor.decode_map(document)
    assert time.monotonic() - started < 10


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_decode_error(document: bytes) -> None:
    for read in (
        cbor.decode_map,
        cbor_documents.type_meta,
        lambda data: cbor_documents.decode(data, DEFINITIONS, CORE + "Pod"),
    ):
        try:
            read(document)
        except cbor.DecodeError:
            continue


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_is_written_is_read_again(obj: dict[str, Any]) -> None:
    document = cbor.encode(obj)
    assert document.startswith(b"\xd9\xd9\xf7")
    assert json.dumps(cbor.decode_map(document)) == json.dumps(obj)


# ----------------------------------------------------------------- Go's types


def _decode(kind: str, obj: dict[str, Any], *, strict: bool = True) -> cbor_documents.Document:
    return cbor_documents.decode(cbor.encode(obj), DEFINITIONS, CORE + kind, strict=strict)


@pytest.mark.parametrize(
    ("kind", "obj", "error"),
    [
        ("Pod", {"spec": 5}, "positive integer into Go struct field v1.Pod.spec of type v1.PodSpec"),
        ("Pod", {"spec": {"containers": {}}}, "map into Go struct field v1.Pod.spec of type []v1.Container"),
        (
            "Pod",
            {"metadata": {"labels": {"a": 1}}},
            "positive integer into Go struct field v1.Pod.metadata of type string",
        ),
        (
            "Pod",
            {"spec": {"priority": 2**31}},
            "positive integer into Go struct field v1.Pod.spec of type int32 (2147483648 overflows int32)",
        ),
        ("Pod", {"spec": {"hostNetwork": "true"}}, "byte string into Go struct field v1.Pod.spec of type bool"),
        (
            "Service",
            {"spec": {"ports": [{"targetPort": 1.5}]}},
            "primitives into Go struct field v1.Service.spec of type int32",
        ),
        (
            "Pod",
            {"spec": {"containers": [[]]}},
            "array into Go struct field v1.Pod.spec of type v1.Container (cannot decode CBOR array to struct without toarray option)",
        ),
    ],
)
def test_mismatches_name_the_outermost_field(kind: str, obj: dict[str, Any], error: str) -> None:
    with pytest.raises(cbor.DecodeError) as raised:
        _decode(kind, obj)
    assert str(raised.value) == f"cbor: cannot unmarshal {error}"


def test_the_first_unknown_field_is_reported_by_its_position_and_dropped() -> None:
    found = _decode("ConfigMap", {"data": {"a": "b"}, "x": 1, "y": 2})
    assert found == ({"data": {"a": "b"}}, "cbor: found unknown field at map element index 1")
    assert _decode("ConfigMap", {"x": 1}, strict=False) == ({}, "")


def test_a_null_in_a_map_of_texts_is_the_text_before_as_in_gos_decoder() -> None:
    assert _decode("ConfigMap", {"data": {"a": "x", "b": None}}).obj == {"data": {"a": "x", "b": "x"}}


def test_bytes_are_base64_unless_a_tag_says_that_they_are_bytes() -> None:
    document = bytes.fromhex("a14464617461a2 4161 4461476b3d 4162 d6 426869")
    assert cbor_documents.decode(document, DEFINITIONS, CORE + "Secret").obj == {"data": {"a": "aGk=", "b": "aGk="}}


def test_bytes_are_written_as_bytes_and_floats_as_floats() -> None:
    shape = shapes.shape_of(DEFINITIONS, CORE + "Secret")
    assert cbor.encode_item({"data": {"b": "aGk="}, "type": "aGk="}, shape).hex() == (
        "a24464617461a14162d642686944747970654461476b3d"
    )
    assert shapes.shape_of(DEFINITIONS, CORE + "Pod") is None


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ("a2416101416281f93e00", "{'a': 1, 'b': [1.5]}"),
        ("bf6161 9f01ff 6162 5f4161ff ff", '{_ "a": [_ 1], "b": (_ \'a\')}'),
        ("84d64161f7f8ff41ff", "[22('a'), undefined, simple(255), h'ff']"),
        ("8343c3a90a7f60ff5fff", "['\\u00e9\\n', (_ \"\"), ''_]"),
        ("8120", "[-1]"),
        ("81f90000", "[0.0]"),
        ("81fb444b1ae4d6e2ef50", "[1.0e+21]"),
        ("81 63efbfbd", "8163efbfbd"),
    ],
)
def test_diagnostic_notation(document: str, shown: str) -> None:
    assert cbor.diagnose(bytes.fromhex(document)) == shown
