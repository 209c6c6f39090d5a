"""Booleans as Go reads them (strconv.ParseBool)."""

from typing import Final

from fakeapiserver.apimachinery.field import go_quote

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_bool(text: str) -> bool:
    """Raises ValueError in Go's words."""
    if text not in _BOOLEANS:
        raise ValueError(f"strconv.ParseBool: parsing {go_quote(text)}: invalid syntax")
    return _BOOLEANS[text]
