"""The standard functions of CEL, and the extensions for lists, sets and optionals, by overload.

Upstream: github.com/google/cel-go/{common/stdlib,common/types,cel/library.go,ext/lists.go,ext/sets.go},
k8s.io/apiserver/pkg/cel/library/lists.go
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC
from functools import partial
from itertools import pairwise
from typing import Any, Final

from fakeapiserver.apimachinery.field import go_float
from fakeapiserver.apimachinery.strconv import parse_int, parse_uint
from fakeapiserver.languages.cel import text, times
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.types import Type
from fakeapiserver.languages.cel.values import (
    NONE,
    Duration,
    JSONPatch,
    Lazy,
    MapList,
    Optional,
    SetList,
    Sparse,
    StringList,
    Timestamp,
    UInt,
    compared,
    equal,
    found_in,
    int64,
    key_text,
    type_of,
    uint64,
)

Function = Callable[..., Any]
_INT64: Final = 1 << 63

# ------------------------------------------------------------- arithmetic


def _divided(one: int, other: int) -> int:
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


_ARITHMETIC: Final[dict[str, Function]] = {
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
    "divide_int64": lambda a, b: int64(_divided(a, b)),
    "divide_uint64": lambda a, b: UInt(_divided(a, b)),
    "divide_double": _divided_doubles,
    "modulo_int64": _modulo,
    "modulo_uint64": lambda a, b: UInt(_modulo(a, b)),
    "negate_int64": lambda a: int64(-a),
    "negate_double": lambda a: -a,
    "logical_not": lambda a: not a,
    "not_strictly_false": lambda a: a,
}


# ------------------------------------------------------------ comparisons


def _comparisons() -> dict[str, Function]:
    tests: dict[str, Function] = {
        "less": lambda a, b: a < b,
        "less_equals": lambda a, b: a <= b,
        "greater": lambda a, b: a > b,
        "greater_equals": lambda a, b: a >= b,
    }

    def ordered(test: Function) -> Function:
        return lambda a, b: test(compared(a, b), 0)

    functions: dict[str, Function] = {}
    for name, test in tests.items():
        for kind in (
            "bool",
            "int64",
            "int64_uint64",
            "uint64",
            "uint64_int64",
            "string",
            "bytes",
            "timestamp",
            "duration",
        ):
            functions[f"{name}_{kind}"] = test
        for kind in ("int64_double", "uint64_double", "double", "double_int64", "double_uint64"):
            functions[f"{name}_{kind}"] = ordered(test)
    return functions


# ------------------------------------------------------------ conversions


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


_CONVERSIONS: Final[dict[str, Function]] = {
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
CONVERSIONS: Final[dict[str, Function]] = {
    "duration": lambda a: times.to_duration(a) if isinstance(a, str) else _int_to_duration(a),
    "timestamp": lambda a: times.to_timestamp(a) if isinstance(a, str) else times.checked_timestamp(a * times.SECOND),
}


# ----------------------------------------------------------------- clocks


def _clocks() -> dict[str, Function]:
    def here(name: str, at: Timestamp) -> Any:
        return times.part(name, times.in_zone(at, UTC), at.ns)

    def there(name: str, at: Timestamp, zone: str) -> Any:
        return times.part(name, times.in_zone(at, times.zone_of(zone)), at.ns)

    names = {
        "getFullYear": "year",
        "getMonth": "month",
        "getDayOfYear": "day_of_year",
        "getDayOfMonth": "day_of_month",
        "getDate": "day_of_month_1_based",
        "getDayOfWeek": "day_of_week",
        "getHours": "hours",
        "getMinutes": "minutes",
        "getSeconds": "seconds",
        "getMilliseconds": "milliseconds",
    }
    functions: dict[str, Function] = {}
    for method, name in names.items():
        functions[f"timestamp_to_{name}"] = partial(here, method)
        functions[f"timestamp_to_{name}_{'' if name == 'seconds' else 'with_'}tz"] = partial(there, method)
    second = times.SECOND
    for name, unit in (
        ("hours", 3600 * second),
        ("minutes", 60 * second),
        ("seconds", second),
        ("milliseconds", 10**6),
    ):
        functions[f"duration_to_{name}"] = lambda a, unit=unit: _divided(a.ns, unit)
    return functions


# ------------------------------------------------------------ collections


def index(container: Any, key: Any) -> Any:
    """`container[key]` and, where a field is selected, `container.key`."""
    if isinstance(container, list):
        place = _place(key)
        if not 0 <= place < len(container):
            raise CelError(f"index out of bounds: {place}")
        return container[place]
    if isinstance(container, dict):
        is_there, value = found_in(container, key)
        if is_there:
            return value
        if isinstance(container, Sparse):
            return {}
        raise CelError(f"no such key: {key_text(key)}")
    if isinstance(container, Optional):
        return Optional(True, index(container.value, key)) if container.has_value else container
    if isinstance(container, Lazy | JSONPatch):
        return container.get(key)
    raise CelError(f"no such key: {key_text(key)}")


def _place(key: Any) -> int:
    """Returns the index in a list for a key."""
    if isinstance(key, float):
        if not key.is_integer():
            raise CelError(f"unsupported index value {go_float(key)} in list")
        return int(key)
    if isinstance(key, bool) or not isinstance(key, int):
        raise CelError(f"unsupported index type '{type_of(key).full_name}' in list")
    return key


def optional_index(container: Any, key: Any) -> Any:
    """`container[?key]` and `container.?key`."""
    if isinstance(container, Optional):
        return optional_index(container.value, key) if container.has_value else container
    if isinstance(container, list):
        place = _place(key)
        return Optional(True, container[place]) if 0 <= place < len(container) else NONE
    if isinstance(container, dict):
        is_there, value = found_in(container, key)
        if isinstance(container, Sparse):
            return Optional(True, value if is_there else {})
        return Optional(True, value) if is_there else NONE
    return NONE


def _in_map(key: Any, container: dict[Any, Any]) -> bool:
    return found_in(container, key)[0]


def contains(items: Sequence[Any], item: Any) -> bool:
    return any(not _not_equal(other, item) for other in items)


def _in_list(item: Any, items: list[Any]) -> bool:
    return contains(items, item)


def _is_sorted(items: list[Any]) -> bool:
    return not any(_is_order(a, b, 1) for a, b in pairwise(items))


def _not_equal(one: Any, other: Any) -> bool:
    """Reports whether two values differ; values that can't be compared differ."""
    with suppress(CelError):
        return not equal(one, other)
    return True


def _is_order(one: Any, other: Any, sign: int) -> bool:
    """Reports whether two values compare so; what has no order doesn't."""
    with suppress(CelError, TypeError):
        return compared(one, other) == sign
    return False


def _best(name: str, sign: int) -> Function:
    def best(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        winner = items[0]
        for item in items[1:]:
            if _is_order(winner, item, sign):
                winner = item
        return winner

    return best


def _index_of(items: list[Any], item: Any) -> int:
    return next((i for i, other in enumerate(items) if equal(other, item)), -1)


def _last_index_of(items: list[Any], item: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if equal(items[i], item)), -1)


def _sum(check: Callable[[Any], Any], zero: Any) -> Function:
    def total(items: list[Any]) -> Any:
        sum_so_far = zero
        for item in items:
            sum_so_far = check(sum_so_far + item)
        return sum_so_far

    return total


def _sum_durations(items: list[Duration]) -> Duration:
    return times.checked_duration(sum(item.ns for item in items))


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if not items:
        return items
    if any(type(key) is not type(keys[0]) for key in keys):
        raise CelError("list elements must have the same type")
    if not isinstance(keys[0], bool | int | float | str | bytes | Duration | Timestamp):
        raise CelError("list elements must be comparable")
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    if depth == 0:
        return list(items)
    flat: list[Any] = []
    for item in items:
        flat += _flatten(item, depth - 1) if isinstance(item, list) else [item]
    return flat


def _distinct(items: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for item in items:
        if not contains(distinct, item):
            distinct.append(item)
    return distinct


def insert(into: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key in into:
        raise CelError(f"insert failed: key {key_text(key)} already exists")
    return {**into, key: value}


def _insert_all(into: dict[Any, Any], entries: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in entries.items():
        into = insert(into, key, value)
    return into


def _lists() -> dict[str, Function]:
    functions: dict[str, Function] = {
        "list_a_index_of_int": _index_of,
        "list_a_last_index_of_int": _last_index_of,
        "list_int_sum_int": _sum(int64, 0),
        "list_uint_sum_uint": _sum(uint64, UInt(0)),
        "list_double_sum_double": _sum(float, 0.0),
        "list_duration_sum_duration": _sum_durations,
        "list_slice": _slice,
        "list_reverse": lambda a: list(reversed(a)),
        "list_distinct": _distinct,
        "list_flatten": _flatten,
        "list_flatten_int": _flatten,
        "list_first": lambda a: Optional(True, a[0]) if a else NONE,
        "list_last": lambda a: Optional(True, a[-1]) if a else NONE,
        "lists_range": lambda a: list(range(a)),
    }
    kinds = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
    for kind in kinds:
        functions[f"list_{kind}_is_sorted_bool"] = _is_sorted
        functions[f"list_{kind}_min_{kind}"] = _best("min", 1)
        functions[f"list_{kind}_max_{kind}"] = _best("max", -1)
        full = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}.get(kind, kind)
        functions[f"list_{full}_sort"] = lambda a: _sort_by(a, a)
        functions[f"list_{full}_sortByAssociatedKeys"] = _sort_by
    return functions


# -------------------------------------------------------------- optionals


def _value(a: Optional) -> Any:
    if not a.has_value:
        raise CelError("optional.none() dereference")
    return a.value


def _is_zero(value: Any) -> bool:
    if isinstance(value, Duration):
        return value.ns == 0
    if isinstance(value, Timestamp):
        return value.ns == times.ZERO_NS
    if isinstance(value, bool | int | float | str | bytes | list | dict) or value is None:
        return not value
    return isinstance(value, Optional) and not value.has_value


_OPTIONALS: Final[dict[str, Function]] = {
    "optional_of": lambda a: Optional(True, a),
    "optional_none": lambda: NONE,
    "optional_ofNonZeroValue": lambda a: NONE if _is_zero(a) else Optional(True, a),
    "optional_value": _value,
    "optional_hasValue": lambda a: a.has_value,
    "optional_unwrap": lambda a: [item.value for item in a if item.has_value],
    "optional_unwrapOpt": lambda a: [item.value for item in a if item.has_value],
}


def _split(value: str, separator: str, limit: int = -1) -> StringList:
    return StringList(text.split(value, separator, limit))


def _find_all(value: str, pattern: str, limit: int = -1) -> StringList:
    return StringList(text.find_all(value, pattern, limit))


_STRINGS: Final[dict[str, Function]] = {
    "contains_string": lambda a, b: b in a,
    "starts_with_string": lambda a, b: a.startswith(b),
    "ends_with_string": lambda a, b: a.endswith(b),
    "matches": text.matches,
    "matches_string": text.matches,
    "string_char_at_int": text.char_at,
    "string_index_of_string": text.index_of,
    "string_index_of_string_int": text.index_of,
    "string_last_index_of_string": text.last_index_of,
    "string_last_index_of_string_int": text.last_index_of,
    "string_lower_ascii": text.lower_ascii,
    "string_upper_ascii": text.upper_ascii,
    "string_replace_string_string": text.replace,
    "string_replace_string_string_int": text.replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": text.substring,
    "string_substring_int_int": text.substring,
    "string_trim": text.trim,
    "list_join": text.join,
    "list_join_string": text.join,
    "strings_quote": text.quote,
    "string_format": text.format_text,
    "string_find_string": text.find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}

FUNCTIONS: Final[dict[str, Function]] = {
    **_ARITHMETIC,
    **_comparisons(),
    **_CONVERSIONS,
    **_clocks(),
    **_lists(),
    **_OPTIONALS,
    **_STRINGS,
    "equals": equal,
    "not_equals": _not_equal,
    "in_list": _in_list,
    "in_map": _in_map,
    **{f"size_{kind}": len for kind in ("bytes", "list", "map", "string")},
    **{f"{kind}_size": len for kind in ("bytes", "list", "map", "string")},
    "list_sets_contains_list": lambda a, b: all(contains(a, item) for item in b),
    "list_sets_intersects_list": lambda a, b: any(contains(b, item) for item in a),
    "list_sets_equivalent_list": lambda a, b: all(contains(a, i) for i in b) and all(contains(b, i) for i in a),
    "string_jsonpatch_escapeKey_string": lambda a: a.replace("~", "~0").replace("/", "~1"),
    "@mapInsert_map_key_value": insert,
    "@mapInsert_map_map": _insert_all,
}

# What a runtime value must be for an overload's argument.
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (UInt,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "null": (type(None),),
    "duration": (Duration,),
    "timestamp": (Timestamp,),
    "list": (list, SetList, MapList),
    "map": (dict,),
    "type": (Type,),
    "opaque": (Optional,),
}


def fits(value: Any, wanted: Type) -> bool:
    """Reports whether an overload takes a value as this argument."""
    if wanted.kind in ("dyn", "param"):
        return True
    kinds = _KINDS.get(wanted.kind)
    if kinds is not None:
        # Upstream looks at the first item only.
        return type(value) in kinds and (wanted.kind != "list" or not value or fits(value[0], wanted.params[0]))
    return type_of(value).name == wanted.name
