"""The values of templates, and their text in Go."""

import inspect
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, get_origin

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote

MAX_OUTPUT: Final = 16 << 20  # characters, and elements of a list


class TemplateError(ValueError):
    """A template can't be read or carried out; one line."""


class Number(str):
    """A JSON number, as it was written (Go's json.Number, which is a string in most respects)."""

    __slots__ = ()


class _Missing:
    """A missing value: a key that a map doesn't have (Go's zero reflect.Value)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<no value>"


MISSING: Final = _Missing()
# A parameter that takes what isn't there, too.
Raw = Annotated[Any, "raw"]


class Time(Struct, frozen=True):
    """Go's time.Time, in UTC."""

    seconds: float


class Version(dict[str, Any]):
    """A semantic version: its parts, and `Original`."""


class Function(Struct, frozen=True):
    """`kinds`: of the parameters; `more`: of any number of further ones, "" for none."""

    name: str
    call: Callable[..., Any]
    kinds: Sequence[str]
    more: str


def function(name: str, call: Callable[..., Any]) -> Function:
    """Returns a function with the parameters of its annotations."""
    kinds, more = [], ""
    for parameter in inspect.signature(call).parameters.values():
        kind = _kind_of(parameter.annotation)
        if parameter.kind is parameter.VAR_POSITIONAL:
            more = kind
        else:
            kinds.append(kind)
    return Function(name, call, kinds, more)


_KINDS: Final[dict[Any, str]] = {
    str: "string",
    int: "int",
    float: "float64",
    bool: "bool",
    Time: "time.Time",
    Raw: "raw",
}


def _kind_of(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is list:
        return "[]interface {}"
    if origin is dict:
        return "map[string]interface {}"
    return _KINDS.get(annotation, "any")


def type_name(value: Any) -> str:
    """Go's %T."""
    if value is None or value is MISSING:
        return "<nil>"
    if isinstance(value, Number):
        return "json.Number"
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float64"), (str, "string"), (Time, "time.Time")):
        if isinstance(value, kind):
            return name
    return "[]interface {}" if isinstance(value, list) else "map[string]interface {}"


def truth(value: Any) -> bool:
    """Empty is false, as are 0 and what isn't there."""
    if value is None or value is MISSING:
        return False
    return True if isinstance(value, Time) else bool(value)


def go_float(value: float, form: str = "g", precision: int = -1) -> str:
    """Formats as Go's %v does: with an exponent below 1e-4 and from 1e+06 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if form != "g" or precision >= 0:
        return f"{value:.{6 if precision < 0 else precision}{form}}"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    shortest = Decimal(repr(value)).normalize()
    power = shortest.adjusted()
    if -4 <= power < 6:
        return f"{shortest:f}"
    sign, digits, _ = shortest.as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}{'.' * bool(rest)}{''.join(rest)}e{'-' if power < 0 else '+'}{abs(power):02}"


def shown(value: Any) -> str:
    """Go's %v."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if value is MISSING:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, list):
        return f"[{' '.join(map(shown, value))}]"
    if isinstance(value, Version):
        return str(value["Original"])
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, Time):
        return (
            datetime.fromtimestamp(value.seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
            + " +0000 UTC"
        )
    return str(value)


def sprintf(form: str, *given: Any) -> str:
    """Go's fmt.Sprintf."""
    out: list[str] = []
    at, used = 0, 0
    while at < len(form):
        stop = form.find("%", at)
        if stop < 0:
            out.append(form[at:])
            break
        out.append(form[at:stop])
        at = stop + 1
        flags = ""
        while at < len(form) and form[at] in "+-# 0":
            flags += form[at]
            at += 1
        width, at, used = _size(form, at, given, used)
        precision = -1
        if at < len(form) and form[at] == ".":
            precision, at, used = _size(form, at + 1, given, used)
            precision = max(precision, 0)
        if at >= len(form):
            out.append("%!(NOVERB)")
            break
        verb = form[at]
        at += 1
        if verb == "%":
            out.append("%")
            continue
        if used >= len(given):
            out.append(f"%!{verb}(MISSING)")
            continue
        if width > MAX_OUTPUT or precision > 1000:
            raise TemplateError("printf: the width is too large")
        out.append(_padded(_formatted(verb, given[used], flags, precision), flags, width, given[used]))
        used += 1
    if used < len(given):
        rest = ", ".join(f"{type_name(value)}={shown(value)}" for value in given[used:])
        out.append(f"%!(EXTRA {rest})")
    return "".join(out)


def _size(form: str, at: int, given: Sequence[Any], used: int) -> tuple[int, int, int]:
    if at < len(form) and form[at] == "*" and used < len(given) and isinstance(given[used], int):
        return given[used], at + 1, used + 1
    end = at
    while end < len(form) and form[end].isdigit():
        end += 1
    return (int(form[at : min(end, at + 9)]) if end > at else -1), end, used


def _padded(text: str, flags: str, width: int, value: Any) -> str:
    if len(text) >= width:
        return text
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and not isinstance(value, list | dict):
        sign = text[0] if text[:1] in ("-", "+") and not isinstance(value, str) else ""
        return sign + text[len(sign) :].rjust(width - len(sign), "0")
    return text.rjust(width)


def _formatted(verb: str, value: Any, flags: str, precision: int) -> str:
    if verb == "T":
        return type_name(value)
    if verb == "v" and "#" in flags and isinstance(value, str):
        return go_quote(value)
    if isinstance(value, list) and verb not in "vs":
        return f"[{' '.join(_formatted(verb, item, flags, precision) for item in value)}]"
    if verb in "vs":
        return _as_text(verb, value, flags, precision)
    if verb == "q" and isinstance(value, str):
        return go_quote(value)
    if verb == "t" and isinstance(value, bool):
        return shown(value)
    if isinstance(value, int) and not isinstance(value, bool):
        formatted = _integer(verb, value, flags)
        if formatted is not None:
            return formatted
    if isinstance(value, float) and verb in "eEfFgG":
        text = go_float(value, "f" if verb == "F" else verb, precision)
        return f"+{text}" if "+" in flags and value >= 0 else text
    if isinstance(value, str) and verb in "xX":
        digits = value.encode().hex()
        return digits.upper() if verb == "X" else digits
    if value is None or value is MISSING:
        return f"%!{verb}(<nil>)"
    return f"%!{verb}({type_name(value)}={shown(value)})"


def _as_text(verb: str, value: Any, flags: str, precision: int) -> str:
    if value is None or value is MISSING:
        return "<nil>" if verb == "v" else "%!s(<nil>)"
    if verb == "s" and isinstance(value, bool | int | float):
        return f"%!s({type_name(value)}={shown(value)})"
    if verb == "s" and isinstance(value, list):
        return f"[{' '.join(_as_text(verb, item, flags, precision) for item in value)}]"
    text = shown(value)
    if "+" in flags and isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        text = f"+{text}"
    return text[:precision] if precision >= 0 and isinstance(value, str) else text


def _integer(verb: str, value: int, flags: str) -> str | None:
    prefix = "#" in flags
    forms = {"d": "d", "x": "#x" if prefix else "x", "X": "#X" if prefix else "X", "o": "o", "b": "b"}
    if verb in forms:
        text = format(value, forms[verb])
        return f"+{text}" if "+" in flags and value >= 0 else f" {text}" if " " in flags and value >= 0 else text
    if verb in "cqU" and 0 <= value < 0x110000:
        return {"c": chr(value), "q": f"'{chr(value)}'", "U": f"U+{value:04X}"}[verb]
    return None


def sprint(*given: Any) -> str:
    """Go's fmt.Sprint: spaces between two that are no strings."""
    out: list[str] = []
    for at, value in enumerate(given):
        if at and not _is_string(given[at - 1]) and not _is_string(value):
            out.append(" ")
        out.append(shown(value if value is not MISSING else None))
    return "".join(out)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)
