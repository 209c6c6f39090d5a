"""Operations on values: order, arithmetic, texts. Arguments are never changed."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.serializer.json import encode
from fakeapiserver.languages.jq.errors import JqError

MAX_LENGTH: Final = 1 << 20


def kind(value: Any) -> str:
    """jq's `type`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def shown(value: Any) -> str:
    """In a message: its kind, and its beginning."""
    text = to_json(value)
    return f"{kind(value)} ({text if len(text) <= 30 else text[:27] + '...'})"


def to_json(value: Any) -> str:
    """Compact, keys sorted; what is no number is null, what is infinite the largest."""
    return encode(_sorted(value)).decode()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [*map(_sorted, value)]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return math.copysign(1.7976931348623157e308, value)
        return int(value) if value.is_integer() and abs(value) < 1e17 else value
    return value


def truthy(value: Any) -> bool:
    """Everything is but null and false."""
    return value is not None and value is not False


_ORDER: Final = {"null": 0, "number": 3, "string": 4, "array": 5, "object": 6}


def compare(one: Any, other: Any) -> int:
    """-1, 0 or 1: null, false, true, numbers, strings, arrays, objects; objects by their sorted keys first."""
    left, right = _rank(one), _rank(other)
    if left != right:
        return -1 if left < right else 1
    if left == 3:
        return -1 if math.isnan(one) else int(one > other) - int(one < other)
    if left == 4:
        return int(one > other) - int(one < other)
    if left == 5:
        for a, b in zip(one, other, strict=False):
            if order := compare(a, b):
                return order
        return (len(one) > len(other)) - (len(one) < len(other))
    if left == 6:
        keys = sorted(one)
        return compare(keys, sorted(other)) or compare([one[key] for key in keys], [other[key] for key in keys])
    return 0


def _rank(value: Any) -> int:
    if isinstance(value, bool):
        return 2 if value else 1
    return _ORDER[kind(value)]


def add(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    kinds = {kind(one), kind(other)}
    if kinds == {"object"}:
        return {**one, **other}
    if len(kinds) == 1 and kinds <= {"number", "string", "array"}:
        return one + other
    raise JqError(f"cannot add: {shown(one)} and {shown(other)}")


def subtract(one: Any, other: Any) -> Any:
    if kind(one) == kind(other) == "number":
        return one - other
    if isinstance(one, list) and isinstance(other, list):
        return [item for item in one if all(compare(item, gone) for gone in other)]
    raise JqError(f"cannot subtract: {shown(one)} and {shown(other)}")


def multiply(one: Any, other: Any) -> Any:
    if kind(one) == kind(other) == "number":
        return one * other
    if isinstance(one, str) != isinstance(other, str):
        text, times = (one, other) if isinstance(one, str) else (other, one)
        if kind(times) == "number":
            return _repeated(text, times)
    if isinstance(one, dict) and isinstance(other, dict):
        return _merged(one, other)
    raise JqError(f"cannot multiply: {shown(one)} and {shown(other)}")


def _repeated(text: str, times: float) -> str | None:
    if math.isnan(times) or times < 0:
        return None
    if times == 0:
        return ""
    if len(text) * times > MAX_LENGTH:
        raise JqError("repeat string result too long")
    return text * max(int(times), 1)


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for key, value in other.items():
        before = merged.get(key)
        merged[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def divide(one: Any, other: Any) -> Any:
    if kind(one) == kind(other) == "number":
        if other == 0:
            raise JqError(f"cannot divide {shown(one)} by: {shown(other)}")
        whole = isinstance(one, int) and isinstance(other, int) and one % other == 0
        return one // other if whole else one / other
    if isinstance(one, str) and isinstance(other, str):
        return split(one, other)
    raise JqError(f"cannot divide: {shown(one)} and {shown(other)}")


def modulo(one: Any, other: Any) -> Any:
    if not kind(one) == kind(other) == "number":
        raise JqError(f"cannot modulo: {shown(one)} and {shown(other)}")
    if math.isnan(one) or math.isnan(other):
        return math.nan
    left, right = to_index(one), abs(to_index(other))
    if right == 0:
        raise JqError(f"cannot modulo {shown(one)} by: {shown(other)}")
    return int(math.fmod(left, right)) if abs(left) < 1 << 52 else (abs(left) % right) * (1 if left > 0 else -1)


def split(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [*text]


def to_index(value: float) -> int:
    """A whole number, as Go makes one of a float."""
    if isinstance(value, int):
        return value
    if math.isnan(value):
        return 0
    return int(max(min(value, float(1 << 62)), -float(1 << 62)))


def contains(one: Any, other: Any) -> bool:
    """jq's `contains`: parts of strings, of arrays in any order, of objects."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(key in one and contains(one[key], value) for key, value in other.items())
    if isinstance(one, list) and isinstance(other, list):
        return all(any(_contains_safely(has, wanted) for has in one) for wanted in other)
    if isinstance(one, str) and isinstance(other, str):
        return other in one
    if kind(one) == kind(other):
        return compare(one, other) == 0
    raise JqError(f"contains({shown(other)}) cannot be applied to: {shown(one)}")


def _contains_safely(one: Any, other: Any) -> bool:
    return kind(one) == kind(other) and contains(one, other)


def field(value: Any, key: Any) -> Any:
    """`value[key]`."""
    if value is None and (key is None or isinstance(key, str | dict) or kind(key) == "number"):
        return None
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key)
    if isinstance(value, list) and kind(key) == "number":
        if math.isnan(key):
            return None
        at = to_index(key if isinstance(key, int) else math.floor(key))
        return value[at] if -len(value) <= at < len(value) else None
    if isinstance(value, list) and isinstance(key, list):
        return indices(value, key)
    if isinstance(key, dict) and ("start" in key or "end" in key):
        return piece(value, key.get("start"), key.get("end"))
    if isinstance(value, list):
        raise JqError(f"expected an index for an array but got: {shown(key)}")
    if isinstance(value, dict):
        raise JqError(f"expected a string for object key but got: {shown(key)}")
    raise JqError(f"expected an {'object' if isinstance(key, str) else 'array'} but got: {shown(value)}")


def piece(value: Any, start: Any, end: Any) -> Any:
    """`value[start:end]`."""
    if value is None:
        return None
    if not isinstance(value, str | list):
        raise JqError(f"expected an array but got: {shown(value)}")
    if not (start is None or kind(start) == "number") or not (end is None or kind(end) == "number"):
        raise JqError("expected a number for indexing an array but got: " + shown(end if start is None else start))
    first = None if start is None else to_index(math.floor(start))
    last = None if end is None else to_index(math.ceil(end))
    return value[first:last]


def indices(value: Sequence[Any], wanted: Sequence[Any]) -> list[int] | None:
    """Returns the indexes at which `wanted` begins in `value`."""
    if not wanted:
        return None
    size = len(wanted)
    if isinstance(value, str):
        return [at for at in range(len(value) - size + 1) if value.startswith(wanted, at)]  # type: ignore[arg-type]
    return [at for at in range(len(value) - size + 1) if compare([*value[at : at + size]], [*wanted]) == 0]


def elements(value: Any) -> Sequence[Any]:
    """Returns the elements of an array, or the values of an object in the order of its keys."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    raise JqError(f"cannot iterate over: {shown(value)}")


def get_path(value: Any, path: Sequence[Any]) -> Any:
    """Null from where there is nothing any more."""
    for key in path:
        if value is None:
            return None
        value = field(value, key)
    return value


def set_path(value: Any, path: Sequence[Any], new: Any) -> Any:
    """A copy with `new` there, and containers on the way that weren't."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(key, str) and isinstance(value, dict | None):
        copy = dict(value or {})
        copy[key] = set_path(copy.get(key), rest, new)
        return copy
    if kind(key) == "number" and isinstance(value, list | None):
        items = [*(value or ())]
        at = to_index(key)
        if at < 0 and (at := at + len(items)) < 0:
            raise JqError("out of bounds negative array index")
        if at >= MAX_LENGTH:
            raise JqError("array index too large")
        items += [None] * (at + 1 - len(items))
        items[at] = set_path(items[at], rest, new)
        return items
    if isinstance(key, dict) and isinstance(value, list | None):
        items = [*(value or ())]
        first, last, _ = slice(
            *(None if key.get(end) is None else to_index(key[end]) for end in ("start", "end"))
        ).indices(len(items))
        changed = set_path(items[first:last], rest, new)
        if not isinstance(changed, list):
            raise JqError("a slice of an array can only be assigned another array")
        return [*items[:first], *changed, *items[max(first, last) :]]
    raise JqError(f"expected an {'object' if isinstance(key, str) else 'array'} but got: {shown(value)}")


def delete_paths(value: Any, paths: Sequence[Sequence[Any]]) -> Any:
    """From the last to the first, so that places stay what they were."""
    ordered: list[Sequence[Any]] = []
    for path in sort([*paths], [*paths]):
        ordered.insert(0, path)
    for path in ordered:
        value = _deleted(value, path)
    return value


def _deleted(value: Any, path: Sequence[Any]) -> Any:
    if value is None or not path:
        return None
    key, rest = path[0], path[1:]
    if rest:
        inner = field(value, key)
        return value if inner is None else set_path(value, [key], _deleted(inner, rest))
    if isinstance(value, dict) and isinstance(key, str):
        return {name: kept for name, kept in value.items() if name != key}
    if isinstance(value, list) and kind(key) == "number":
        at = to_index(key)
        at += len(value) if at < 0 else 0
        return [kept for place, kept in enumerate(value) if place != at]
    if isinstance(value, list) and isinstance(key, dict):
        return set_path(value, [key], [])
    raise JqError(f"cannot delete {shown(key)} of {shown(value)}")


class _Key:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "_Key") -> bool:
        return compare(self.value, other.value) < 0


def sort(items: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    """`items` in the order of their `keys`; equal ones stay as they are."""
    places = sorted(range(len(items)), key=lambda at: _Key(keys[at]))
    return [items[at] for at in places]


def group(items: Sequence[Any], keys: Sequence[Any]) -> list[list[Any]]:
    """`items` by equal `keys`, in the order of the keys."""
    groups: list[list[Any]] = []
    last: Any = None
    for at in sorted(range(len(items)), key=lambda at: _Key(keys[at])):
        if groups and compare(last, keys[at]) == 0:
            groups[-1].append(items[at])
        else:
            groups.append([items[at]])
            last = keys[at]
    return groups
