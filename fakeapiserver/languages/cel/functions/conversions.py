"""Conversions between types."""

import math
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import parse_int, parse_uint
from fakeapiserver.languages.cel import text, times
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.values import Duration, UInt, int64, type_of, uint64


def _unconverted(value: Any, to: str) -> CelError:
    return CelError(f"type conversion error from '{type_of(value).full_name}' to '{to}'")


def _int_to_duration(value: int) -> Duration:
    """Declared, but integers don't convert themselves to durations."""
    raise _unconverted(value, "google.protobuf.Duration")


def _whole_number(value: str, to: str, *, signed: bool) -> int:
    try:
        return parse_int(value) if signed else parse_uint(value)
    except ValueError:
        raise _unconverted(value, to) from None


def _double_to_int(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise CelError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if not 0 <= value < 2.0**64:
        raise CelError("unsigned integer overflow")
    return UInt(int(value))


def _to_double(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise _unconverted(value, "double") from None
    if value != value.strip() or (math.isinf(number) and "n" not in value.lower()):
        raise _unconverted(value, "double")
    return number


_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _to_bool(value: str) -> bool:
    if value not in _BOOLS:
        raise _unconverted(value, "bool")
    return _BOOLS[value]


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


ALL_CONVERSIONS: Final[dict[str, Function]] = {
    **{
        name: lambda a: a
        for name in (
            *("bool_to_bool", "int64_to_int64", "uint64_to_uint64", "double_to_double", "string_to_string", "to_dyn"),
            *("bytes_to_bytes", "duration_to_duration", "timestamp_to_timestamp"),
        )
    },
    "type": type_of,
    "string_to_bool": _to_bool,
    "double_to_int64": _double_to_int,
    "duration_to_int64": lambda a: a.ns,
    "string_to_int64": lambda a: _whole_number(a, "int", signed=True),
    "timestamp_to_int64": lambda a: a.ns // times.SECOND,
    "uint64_to_int64": lambda a: int64(int(a)),
    "double_to_uint64": _double_to_uint,
    "int64_to_uint64": uint64,
    "string_to_uint64": lambda a: UInt(_whole_number(a, "uint", signed=False)),
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": _to_double,
    "string_to_bytes": lambda a: a.encode(),
    "bool_to_string": lambda a: "true" if a else "false",
    "bytes_to_string": _bytes_text,
    "double_to_string": text.double_text,
    "duration_to_string": times.duration_text,
    "int64_to_string": str,
    "uint64_to_string": str,
    "timestamp_to_string": times.timestamp_text,
    "int64_to_duration": _int_to_duration,
    "string_to_duration": times.to_duration,
    "string_to_timestamp": times.to_timestamp,
    "int64_to_timestamp": lambda a: times.checked_timestamp(a * times.SECOND),
}
# What the checker tries literals with.
LITERAL_CONVERSIONS: Final[dict[str, Function]] = {
    "duration": lambda a: times.to_duration(a) if isinstance(a, str) else _int_to_duration(a),
    "timestamp": lambda a: times.to_timestamp(a) if isinstance(a, str) else times.checked_timestamp(a * times.SECOND),
}
