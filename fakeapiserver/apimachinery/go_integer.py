"""Whole numbers as Go reads them.

Upstream: Go's strconv.ParseInt with base 10.
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
