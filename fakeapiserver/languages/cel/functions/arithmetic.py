"""Arithmetic operators."""

import math
from typing import Any, Final

from fakeapiserver.languages.cel import times
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.values import MapList, SetList, UInt, int64, uint64

_INT64: Final = 1 << 63


def divided(one: int, other: int) -> int:
    if other == 0:
        raise CelError("division by zero")
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _modulo(one: int, other: int) -> int:
    if other == 0:
        raise CelError("modulus by zero")
    if one == -_INT64 and other == -1:
        raise CelError("integer overflow")
    return int(math.copysign(1, one)) * (abs(one) % abs(other)) if one else 0


def _divided_doubles(one: float, other: float) -> float:
    if other:
        return one / other
    if math.isnan(one) or one == 0:
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def _plus_lists(one: list[Any], other: list[Any]) -> list[Any]:
    return one.plus(other) if isinstance(one, SetList | MapList) else [*one, *other]


ARITHMETIC: Final[dict[str, Function]] = {
    "add_int64": lambda a, b: int64(a + b),
    "add_uint64": lambda a, b: uint64(a + b),
    "add_double": lambda a, b: a + b,
    "add_string": lambda a, b: a + b,
    "add_bytes": lambda a, b: a + b,
    "add_list": _plus_lists,
    "add_duration_duration": lambda a, b: times.checked_duration(a.ns + b.ns),
    "add_duration_timestamp": lambda a, b: times.moved(b, a.ns),
    "add_timestamp_duration": lambda a, b: times.moved(a, b.ns),
    "subtract_int64": lambda a, b: int64(a - b),
    "subtract_uint64": lambda a, b: uint64(a - b),
    "subtract_double": lambda a, b: a - b,
    "subtract_duration_duration": lambda a, b: times.checked_duration(a.ns - b.ns),
    "subtract_timestamp_duration": lambda a, b: times.moved(a, -b.ns),
    "subtract_timestamp_timestamp": lambda a, b: times.checked_duration(a.ns - b.ns),
    "multiply_int64": lambda a, b: int64(a * b),
    "multiply_uint64": lambda a, b: uint64(a * b),
    "multiply_double": lambda a, b: a * b,
    "divide_int64": lambda a, b: int64(divided(a, b)),
    "divide_uint64": lambda a, b: UInt(divided(a, b)),
    "divide_double": _divided_doubles,
    "modulo_int64": _modulo,
    "modulo_uint64": lambda a, b: UInt(_modulo(a, b)),
    "negate_int64": lambda a: int64(-a),
    "negate_double": lambda a: -a,
    "logical_not": lambda a: not a,
    "not_strictly_false": lambda a: a,
}
