"""Whole numbers as Go reads them.

Upstream: Go's strconv.ParseInt with base 10, and its conversions.
"""

import re
from typing import Final

from fakeapiserver.apimachinery.field import go_quote

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


def parse_int64(text: str) -> int:
    """ValueError in Go's words."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
    # A text of any length is out of range long before it is slow to read.
    if len(text) > 400 or not -(1 << 63) <= (value := int(text)) < 1 << 63:
        raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
    return value


def to_int64(number: float) -> int:
    """Go's conversion of a finite float64: what doesn't fit becomes the least number, on amd64."""
    whole = int(number)
    return whole if -(1 << 63) <= whole < 1 << 63 else -(1 << 63)
