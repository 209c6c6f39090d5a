"""Integers and booleans in text from outside, read as Go reads them.

Python's int() takes more than Go does (spaces, underscores, the digits of all scripts) and refuses more than 4,300 digits in
words of its own. Upstream: Go's package strconv, and its conversions of numbers.
"""

import re
from typing import Final

from fakeapiserver.apimachinery.go.quote import go_quote

_DIGITS: Final = re.compile(r"[0-9]*")
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class RangeError(ValueError):
    """The text is a number that doesn't fit into the bits."""


def parse_int(text: str, bits: int = 64, function: str = "ParseInt") -> int:
    """Returns a decimal integer, with a sign or without, that fits into `bits` bits.

    Raises ValueError in Go's words, as `function` says them: RangeError for a number that doesn't fit.

    >>> parse_int("-7"), parse_int("007", 32)
    (-7, 7)
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    limit = 1 << bits - 1
    magnitude = _magnitude(digits, 1 << bits)
    if magnitude is None:
        raise ValueError(f"strconv.{function}: parsing {go_quote(text)}: invalid syntax")
    number = -magnitude if text[0] == "-" else magnitude
    if not -limit <= number < limit:
        raise RangeError(f"strconv.{function}: parsing {go_quote(text)}: value out of range")
    return number


def atoi(text: str) -> int:
    """Returns an integer as parse_int does. Its errors name Go's Atoi."""
    return parse_int(text, function="Atoi")


def parse_uint(text: str, bits: int = 64) -> int:
    """Returns a decimal integer without a sign that fits into `bits` bits. Raises ValueError as parse_int does."""
    magnitude = _magnitude(text, 1 << bits)
    if magnitude is None:
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: invalid syntax")
    if magnitude >= 1 << bits:
        raise RangeError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return magnitude


def _magnitude(text: str, limit: int) -> int | None:
    """Returns the number that the text starts with, `limit` if it is that large or larger; None where the text isn't a number.

    Go stops at the digit that is too much, so that it never sees what follows.
    """
    digits = _DIGITS.match(text)
    assert digits is not None
    significant = digits[0].lstrip("0")
    if len(significant) > len(str(limit)) or (number := int(significant or "0")) >= limit:
        return limit
    return number if text and digits.end() == len(text) else None


def parse_bool(text: str) -> bool:
    """Returns a boolean. Raises ValueError in Go's words."""
    if text not in _BOOLEANS:
        raise ValueError(f"strconv.ParseBool: parsing {go_quote(text)}: invalid syntax")
    return _BOOLEANS[text]


def to_int64(number: float) -> int:
    """Returns a finite float64 as Go converts it to int64: a number that doesn't fit becomes the least one, as on amd64."""
    whole = int(number)
    return whole if -(1 << 63) <= whole < 1 << 63 else -(1 << 63)
