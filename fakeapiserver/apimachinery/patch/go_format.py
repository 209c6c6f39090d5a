"""JSON values as Go's fmt prints them, for the messages that show parts of a patch.

Upstream: Go's fmt package (verbs %v and %s on map[string]interface{}, []interface{} and scalars).
"""

from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote


class GoValue(Struct, frozen=True):
    """A value that JSON doesn't have, as %v and %#v print it."""

    shown: str
    syntax: str
    go_type: str


_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def go_type(value: Any) -> str:
    """The Go type a JSON value is decoded to, empty for null."""
    if isinstance(value, GoValue):
        return value.go_type
    return _TYPES.get(type(value), "")


def go_value(value: Any) -> str:
    """%v: `map[a:1 b:[x <nil>]]`, keys sorted."""
    return _shown(value, bad_verb=False)


def go_string(value: Any) -> str:
    """%s, which complains about scalars that are no strings: `%!s(int64=5)`."""
    return _shown(value, bad_verb=True)


def go_syntax(value: Any) -> str:
    """%#v: `map[string]interface {}{"a":1}`, keys sorted."""
    if isinstance(value, dict):
        members = ", ".join(f"{go_quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return "map[string]interface {}{" + members + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, GoValue):
        return value.syntax
    return "interface {}(nil)" if value is None else _scalar(value)


def go_type_verb(value: Any) -> str:
    """%s of the value's type."""
    return go_type(value) or "%!s(<nil>)"


def _shown(value: Any, bad_verb: bool) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_shown(value[key], bad_verb)}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_shown(item, bad_verb) for item in value) + "]"
    if isinstance(value, str):
        return value
    if isinstance(value, GoValue):
        return value.shown
    if value is None:
        return "%!s(<nil>)" if bad_verb else "<nil>"
    text = _scalar(value)
    return f"%!s({go_type(value)}={text})" if bad_verb else text


def _scalar(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    number = Decimal(repr(value)).normalize()
    if not number or -4 <= number.adjusted() < 6:
        return f"{number:f}"
    digits = "".join(map(str, number.as_tuple().digits))
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    sign = "-" if number.is_signed() else ""
    return f"{sign}{mantissa}e{'+' if number.adjusted() > 0 else '-'}{abs(number.adjusted()):02d}"
