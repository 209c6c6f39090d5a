"""The meaning of YAML scalars in Go: booleans such as `on`, octal `0644`, floats, and everything else a string.

Upstream: go.yaml.in/yaml/v2/resolve.go.
"""

import base64
import binascii
import calendar
import math
import re
from decimal import Decimal
from typing import Any, Final

from fakeapiserver.apimachinery.serializer.go_json import YAMLError

TAG: Final = "tag:yaml.org,2002:"
STR: Final = TAG + "str"
BOOL: Final = TAG + "bool"
INT: Final = TAG + "int"
FLOAT: Final = TAG + "float"
NULL: Final = TAG + "null"
TIMESTAMP: Final = TAG + "timestamp"
BINARY: Final = TAG + "binary"
MERGE: Final = TAG + "merge"
_RESOLVABLE: Final = ("", STR, BOOL, INT, FLOAT, NULL, TIMESTAMP)


def _spellings(*words: str) -> tuple[str, ...]:
    return tuple(spelling for word in words for spelling in (word, word.capitalize(), word.upper()))


_WORDS: Final[dict[str, tuple[str, Any]]] = {
    **dict.fromkeys(_spellings("y", "yes", "true", "on"), (BOOL, True)),
    **dict.fromkeys(_spellings("n", "no", "false", "off"), (BOOL, False)),
    **dict.fromkeys(("", "~", *_spellings("null")), (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (FLOAT, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (FLOAT, -math.inf)),
    "<<": (MERGE, "<<"),
}
_MAY_BE_NUMBER: Final = frozenset("+-.0123456789")
_POINT_FLOAT: Final = re.compile(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER: Final = re.compile(r"([-+]?)(?:(0[xX])([0-9a-fA-F]+)|(0[bB])([01]+)|(0[oO]?)([0-7]+)|(0|[1-9][0-9]*))")
_SIGNED_BINARY: Final = re.compile(r"0b([-+][01]+)")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:([Tt])| )([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_UINT64_END: Final = 1 << 64
_INT64_END: Final = 1 << 63


def resolve(tag: str, text: str) -> tuple[str, Any]:
    """The tag and value of a scalar: None, bool, int (up to uint64), float or str. `tag` is empty where none was written.

    Raises YAMLError where the tag contradicts the text. A timestamp's value is its text.
    """
    if tag not in _RESOLVABLE:
        return tag, _from_base64(text) if tag == BINARY else text
    tag_of_value: str
    value: Any
    tag_of_value, value = (STR, text) if tag == STR else _resolve_plain(text, tag)
    if tag in ("", tag_of_value, STR):
        return tag_of_value, value
    if tag == FLOAT and tag_of_value == INT and value < _INT64_END:
        return FLOAT, float(value)
    raise YAMLError(f"yaml: cannot decode {short_tag(tag_of_value)} `{text}` as a {short_tag(tag)}")


def _resolve_plain(text: str, tag: str) -> tuple[str, Any]:
    word = _WORDS.get(text)
    if word:
        return word
    if text[0] not in _MAY_BE_NUMBER:
        return STR, text
    if text[0] == ".":
        return _float(text) if _POINT_FLOAT.fullmatch(text) else (STR, text)
    if tag in ("", TIMESTAMP) and is_timestamp(text):
        return TIMESTAMP, text
    plain = text.replace("_", "")
    whole = _integer(plain)
    if whole is not None:
        return INT, whole
    if _FLOAT.fullmatch(plain):
        number = _float(plain)
        return number if number[0] == FLOAT else (STR, text)
    signed = _SIGNED_BINARY.fullmatch(plain)
    return (INT, int(signed[1], 2)) if signed else (STR, text)


def _float(text: str) -> tuple[str, Any]:
    value = float(text)
    return (STR, text) if math.isinf(value) else (FLOAT, value)


def _integer(text: str) -> int | None:
    """Parses an integer by Go's prefixes; None for other texts and for integers beyond int64 and (without a sign)
    uint64.
    """
    match = _INTEGER.fullmatch(text)
    if not match or len(text) > 80:
        return None
    sign, hexadecimal, binary, octal = match[1], match[3], match[5], match[7]
    if hexadecimal:
        value = int(hexadecimal, 16)
    elif binary:
        value = int(binary, 2)
    else:
        value = int(octal, 8) if octal else int(match[8])
    value = -value if sign == "-" else value
    return value if -_INT64_END <= value < (_INT64_END if sign else _UINT64_END) else None


def is_timestamp(text: str) -> bool:
    """Reports whether Go reads it as a date or time, which only matters for quoting: the value stays a string."""
    match = _TIMESTAMP.fullmatch(text) if text[4:5] == "-" else None
    if not match:
        return False
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= _days(year, month):
        return False
    if match[5] is None:
        return True
    in_range = int(match[5]) < 24 and int(match[6]) < 60 and int(match[7]) < 60
    return in_range and bool(match[4]) == bool(match[8])


def _days(year: int, month: int) -> int:
    # calendar.monthrange refuses the year 0, which Go takes.
    return calendar.monthrange(year or 2000, month)[1]


def _from_base64(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        raise YAMLError("yaml: !!binary value contains invalid base64 data") from None
    return data.decode("utf-8", "fakeapiserver-go")


def short_tag(tag: str) -> str:
    """`!!int` for `tag:yaml.org,2002:int`."""
    return "!!" + tag[len(TAG) :] if tag.startswith(TAG) else tag


def go_g(value: float) -> str:
    """A finite float as Go's shortest %g: an exponent below 1e-4 and from 1e6 on."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return f"{number:f}"
    digits = "".join(map(str, number.as_tuple().digits))
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{'-' if value < 0 else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
