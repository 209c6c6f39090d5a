"""Whole numbers as Go reads them."""

import pytest

from fakeapiserver.apimachinery.go_integer import parse_int64


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("+5", 5), ("-05", -5), ("9223372036854775807", 2**63 - 1)])
def test_a_number_is_read(text: str, value: int) -> None:
    assert parse_int64(text) == value


@pytest.mark.parametrize("text", ["", "x", "1.5", " 1", "1_0", "٣", "-"])
def test_what_is_none_is_bad_syntax(text: str) -> None:
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_int64(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "9" * 10_000])
def test_what_is_too_large_is_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="value out of range"):
        parse_int64(text)
