"""Numbers of fields that are float64 in Go."""

import pytest

from fakeapiserver.apimachinery.schema.decoders import State, number
from fakeapiserver.apimachinery.serializer import json


@pytest.mark.parametrize(
    ("value", "shown"),
    [(7, b"7"), (2**53, b"9007199254740992"), (2**63 - 1, b"9223372036854776000"), (-(2**63), b"-9223372036854776000")],
)
def test_what_no_float_holds_is_rounded(value: int, shown: bytes) -> None:
    assert json.encode(number("float64").decode(value, State())) == shown
