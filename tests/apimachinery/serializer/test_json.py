"""JSON by Go's rules. Every expected text and value here is what Go's decoder gives."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery.serializer.go_json import JSONParser
from fakeapiserver.apimachinery.serializer.json import DecodeError, decode, duplicate_fields, encode, encode_pretty

ERRORS = {
    b"": "unexpected end of JSON input",
    b"{": "unexpected end of JSON input",
    b'{"a"': "unexpected end of JSON input",
    b"x": "invalid character 'x' looking for beginning of value",
    b"[1,]": "invalid character ']' looking for beginning of value",
    b'{"a":1,}': "invalid character '}' looking for beginning of object key string",
    b'{"a" 1}': "invalid character '1' after object key",
    b'{"a":1 2}': "invalid character '2' after object key:value pair",
    b"[1 2]": "invalid character '2' after array element",
    b"{}x": "invalid character 'x' after top-level value",
    b"01": "invalid character '1' after top-level value",
    b"-x": "invalid character 'x' in numeric literal",
    b"1.x": "invalid character 'x' after decimal point in numeric literal",
    b"1ex": "invalid character 'x' in exponent of numeric literal",
    b"nul!": "invalid character '!' in literal null (expecting 'l')",
    b'"\n"': "invalid character '\\n' in string literal",
    b'"\\x"': "invalid character 'x' in string escape code",
    b'"\\u12g4"': "invalid character 'g' in \\u hexadecimal character escape",
    b"'": "invalid character '\\'' looking for beginning of value",
    b"\xef\xbb\xbf{}": "invalid character '\xef' looking for beginning of value",
    b"[" * 10_001: "invalid character '[' exceeded max depth",
    b"1e400": "json: cannot unmarshal number 1e400 into Go value of type float64",
}


@pytest.mark.parametrize(("data", "text"), ERRORS.items(), ids=lambda v: repr(v)[:40])
def test_errors(data: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(data)
    assert str(caught.value) == text


VALUES = {
    b"9223372036854775807": 9223372036854775807,
    b"9223372036854775808": 9223372036854775808.0,
    b"1.0": 1.0,
    b"-0": 0,
    b'"\\ud800x"': "\ufffdx",
    b'"\\ud83d\\ude00"': "\U0001f600",
    b'"\\ud800\\u0041"': "\ufffdA",
    b'"\xff\xfe"': "\ufffd\ufffd",
    b'"\xed\xa0\x80"': "\ufffd\ufffd\ufffd",
}


@pytest.mark.parametrize(("data", "value"), VALUES.items(), ids=repr)
def test_values(data: bytes, value: object) -> None:
    found = decode(data)
    assert (found, type(found)) == (value, type(value))


def test_nesting_up_to_the_limit() -> None:
    assert decode(b"[" * 10_000 + b"]" * 10_000)


DUPLICATES = {
    b'{"a":1,"b":2}': [],
    b'{"a": {"b": 1,"b": 2}, "a": 3}': ["a.b", "a"],
    b'{"metadata":{"name":"x","name":"y"}}': ["metadata.name"],
    b'{"spec":{"c":[{},{"n":1,"n":2,"n":3}]}}': ["spec.c[1].n"],
    b'{"a":1,"A":2}': [],
}


@pytest.mark.parametrize(("data", "paths"), DUPLICATES.items(), ids=repr)
def test_duplicate_fields(data: bytes, paths: list[str]) -> None:
    assert duplicate_fields(data, decode(data)) == [f'duplicate field "{path}"' for path in paths]


FLOATS = {
    1.0: b"1",
    -1.5: b"-1.5",
    1e16: b"10000000000000000",
    1e20: b"100000000000000000000",
    1e21: b"1e+21",
    1.5e300: b"1.5e+300",
    1e-6: b"0.000001",
    1e-7: b"1e-7",
    0.1: b"0.1",
    123.456: b"123.456",
    0.0: b"0",
}


@pytest.mark.parametrize(("value", "text"), FLOATS.items())
def test_floats(value: float, text: bytes) -> None:
    assert encode(value) == text
    assert encode({"a": [value]}) == b'{"a":[' + text + b"]}"


def test_pretty() -> None:
    assert encode_pretty({"a": [], "b": {"c": [1]}}) == (b'{\n  "a": [],\n  "b": {\n    "c": [\n      1\n    ]\n  }\n}')


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_both_decoders_agree(value: object) -> None:
    data = json.dumps(value).encode()
    assert decode(data) == JSONParser(data).parse() == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_survive(value: float) -> None:
    assert math.isclose(float(encode(value)), value, rel_tol=0)


@given(st.binary(max_size=12) | st.text('{}[]",:\\u0e.- tn', max_size=10).map(str.encode))
def test_the_fast_decoder_takes_nothing_go_refuses(data: bytes) -> None:
    def outcome(read: object) -> object:
        try:
            return repr(read(data))  # type: ignore[operator]
        except DecodeError as error:
            return str(error)

    assert outcome(decode) == outcome(lambda d: JSONParser(d).parse())
