"""Integers and booleans as Go's strconv reads them."""

import re

import pytest

from fakeapiserver.apimachinery.go.strconv import RangeError, atoi, parse_bool, parse_int, parse_uint

_MANY_DIGITS = "9" * 10_000


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("+5", 5), ("-05", -5), ("0" * 10_000 + "7", 7), (str(2**63 - 1), 2**63 - 1), (str(-(2**63)), -(2**63))],
)
def test_an_integer_is_read(text: str, value: int) -> None:
    assert parse_int(text) == value
    assert atoi(text) == value


# Go's digits are ASCII's, without spaces and underscores.
@pytest.mark.parametrize("text", ["", "x", "1.5", " 1", "1 ", "1\n", "1_0", "٣", "²", "-", "+", "+-1", "1e3", "0x1"])
def test_other_text_has_invalid_syntax(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape("strconv.ParseInt: parsing ")) as refused:
        parse_int(text)
    assert str(refused.value).endswith(": invalid syntax")
    with pytest.raises(ValueError, match=r"^strconv.Atoi: .*: invalid syntax$"):
        atoi(text)
    with pytest.raises(ValueError, match=r"^strconv.ParseUint: .*: invalid syntax$"):
        parse_uint(text)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        (str(2**63), 64),
        (str(-(2**63) - 1), 64),
        (_MANY_DIGITS, 64),
        ("-" + _MANY_DIGITS, 64),
        # Go stops at the digit that is too much.
        (_MANY_DIGITS + "x", 64),
        ("2147483648", 32),
        ("65535", 16),
    ],
)
def test_a_large_integer_is_out_of_range(text: str, bits: int) -> None:
    with pytest.raises(RangeError, match=r'^strconv.ParseInt: parsing "[-0-9x]*": value out of range$'):
        parse_int(text, bits)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("007", 7), (str(2**64 - 1), 2**64 - 1)])
def test_an_unsigned_integer_is_read(text: str, value: int) -> None:
    assert parse_uint(text) == value


@pytest.mark.parametrize(("text", "bits"), [(str(2**64), 64), (_MANY_DIGITS, 64), ("65536", 16), ("256", 8)])
def test_a_large_unsigned_integer_is_out_of_range(text: str, bits: int) -> None:
    with pytest.raises(RangeError, match=r'^strconv.ParseUint: parsing "[0-9]*": value out of range$'):
        parse_uint(text, bits)


@pytest.mark.parametrize("text", ["-1", "+1"])
def test_an_unsigned_integer_has_no_sign(text: str) -> None:
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_uint(text)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("t", True), ("TRUE", True), ("0", False), ("False", False)])
def test_a_boolean_is_read(text: str, value: bool) -> None:
    assert parse_bool(text) is value


@pytest.mark.parametrize("text", ["", "yes", "tRUE", " true"])
def test_other_text_is_no_boolean(text: str) -> None:
    with pytest.raises(ValueError, match=r"^strconv.ParseBool: parsing .*: invalid syntax$"):
        parse_bool(text)
