"""Numbers of fields that are float64 in Go."""

import pytest

from fakeapiserver.apimachinery.schema.decoders import State, number
from fakeapiserver.apimachinery.schema.validate_value import go_number
from fakeapiserver.apimachinery.serializer import json


@pytest.mark.parametrize(
    ("value", "shown"),
    [(7, b"7"), (2**53, b"9007199254740992"), (2**63 - 1, b"9223372036854776000"), (-(2**63), b"-9223372036854776000")],
)
def test_what_no_float_holds_is_rounded(value: int, shown: bytes) -> None:
    assert json.encode(number("float64").decode(value, State())) == shown


@pytest.mark.parametrize(
    ("number", "text"), [(-0.0, "-0"), (0.0, "0"), (-3.0, "-3"), (100000.0, "100000"), (0.5, "0.5"), (1e21, "1e+21")]
)
def test_floats_are_shown_as_go_shows_them(number: float, text: str) -> None:
    assert go_number(number) == text
