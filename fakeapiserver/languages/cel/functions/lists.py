"""Methods of lists."""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

from fakeapiserver.languages.cel import times
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.functions.containers import contains
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.values import NONE, Duration, Optional, Timestamp, UInt, compared, equal, int64, uint64


def _is_sorted(items: list[Any]) -> bool:
    return not any(_is_order(a, b, 1) for a, b in pairwise(items))


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


def list_functions() -> dict[str, Function]:
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
