"""Values of expressions.

Upstream: github.com/google/cel-go/common/types, k8s.io/apiserver/pkg/cel/common/valuesunstructured.go

bool, int, float, str, bytes, None, list and dict stand for themselves; what Python has no type for is here.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from fakeapiserver.apimachinery.field import go_float
from fakeapiserver.languages.cel import types
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.types import Type

_INT64: Final = 1 << 63


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """Nanoseconds, in 64 bits."""

    ns: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970, of the years 1 to 9999; `offset` are the seconds of the zone it is written in."""

    ns: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """`value` counts only if there is one."""

    has_value: bool
    value: Any = None


NONE: Final = Optional(False)


@dataclass(frozen=True, slots=True)
class BadField:
    """A field whose value does not fit its schema: an error for expressions that read it."""

    message: str


@dataclass(frozen=True, slots=True)
class StructValue:
    """A struct that an expression has made."""

    cel_type: Type
    fields: dict[str, Any]


class JSONPatch(StructValue):
    """Unlike other structs that are made it can be read."""

    __slots__ = ()

    def has(self, name: str) -> bool:
        return name in self.fields and (name == "value" or bool(self.fields[name]))

    def get(self, name: str) -> Any:
        return self.fields.get(name) if name == "value" else self.fields.get(name, "")


class Lazy:
    """A struct whose fields are worked out when they are first read; `find` raises CelError, and does so only once."""

    cel_type: ClassVar[Type] = types.struct("kubernetes.variables")

    def __init__(self, names: Collection[str], find: Callable[[str], Any]) -> None:
        self._names = names
        self._find = find
        self._known: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        return name in self._names

    def get(self, name: str) -> Any:
        if name not in self._known:
            try:
                self._known[name] = self._find(name)
            except CelError as error:
                self._known[name] = error
        value = self._known[name]
        if isinstance(value, CelError):
            raise value
        return value


class SetList(list[Any]):
    """A list with x-kubernetes-list-type: set. Equal in any order; `+` is the union."""

    def is_equal(self, other: list[Any]) -> bool:
        return len(self) == len(other) and all(_contains(self, item) for item in other)

    def plus(self, other: Iterable[Any]) -> "SetList":
        joined = SetList(self)
        for item in other:
            if not _contains(joined, item):
                joined.append(item)
        return joined


class MapList(list[Any]):
    """A list with x-kubernetes-list-type: map. Equal in any order; `+` replaces what has the same keys."""

    keys: tuple[str, ...] = ()

    def _key(self, item: Any) -> tuple[Any, ...]:
        return tuple(item.get(key) for key in self.keys)

    def is_equal(self, other: list[Any]) -> bool:
        if len(self) != len(other):
            return False
        mine = {self._key(item): item for item in self}
        return all((key := self._key(item)) in mine and equal(mine[key], item) for item in other)

    def plus(self, other: Iterable[Any]) -> "MapList":
        joined = MapList(self)
        joined.keys = self.keys
        places = {self._key(item): i for i, item in enumerate(joined)}
        for item in other:
            key = self._key(item)
            if key in places:
                joined[places[key]] = item
            else:
                joined.append(item)
        return joined


class Sparse(dict[str, Any]):
    """A map that finds an empty map under a key that isn't in it."""

    cel_type: ClassVar[Type] = types.map_of(types.DYN, types.DYN)


class StringList(list[Any]):
    """The result of `split` and `findAll`: for expressions a list like any other, but Go's []string for the caller."""


def _contains(items: Iterable[Any], item: Any) -> bool:
    return any(equal(other, item) for other in items)


_NUMBERS: Final = frozenset({int, UInt, float})
_PLAIN: Final = frozenset({int, UInt, float, str, bool, bytes, type(None), Duration, Timestamp})
_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: types.list_of(types.DYN),
    SetList: types.list_of(types.DYN),
    MapList: types.list_of(types.DYN),
    StringList: types.list_of(types.DYN),
    dict: types.map_of(types.DYN, types.DYN),
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Type: types.type_of(),
    Optional: types.optional_of(types.DYN),
}


def type_of(value: Any) -> Type:
    kind = _TYPES.get(type(value))
    if kind is not None:
        return kind
    declared: Type = value.cel_type  # a value of the library knows its own
    return declared


def go_type(value: Any) -> str:
    """Returns Go's name of a value's type, which some errors show."""
    if value is None:
        return "types.Null"
    if isinstance(value, Optional):
        return "*types.Optional"
    return f"types.{type_of(value).full_name.rpartition('.')[2].capitalize()}"


def equal(one: Any, other: Any) -> bool:
    """CEL's ==: numbers by value, everything else of the same type only."""
    kind, other_kind = type(one), type(other)
    if kind in _PLAIN:
        if kind is other_kind or (kind in _NUMBERS and other_kind in _NUMBERS):
            return bool(one == other)
        return False
    if isinstance(one, list):
        if not isinstance(other, list):
            return False
        if isinstance(one, SetList | MapList):
            return one.is_equal(other)
        return len(one) == len(other) and all(map(_item_equal, one, other))
    if kind is dict:
        if other_kind is not dict or len(one) != len(other):
            return False
        return all(key in other and equal(value, other[key]) for key, value in one.items())
    if kind is Type and other_kind is Type:
        return bool(one.full_name == other.full_name)
    if kind is Optional and other_kind is Optional:
        return one.has_value == other.has_value and equal(one.value, other.value)
    return kind is other_kind and bool(one == other)


def _item_equal(one: Any, other: Any) -> bool:
    """Upstream's lists differ where items do, and items that can't be compared don't."""
    try:
        return equal(one, other)
    except CelError:
        return True


def compared(one: Any, other: Any) -> int:
    """-1, 0 or 1 of two values that have an order."""
    if any(isinstance(value, float) and math.isnan(value) for value in (one, other)):
        raise CelError("NaN values cannot be ordered")
    return int(one > other) - int(one < other)


def size_of(value: Any) -> int:
    """Returns the size that costs depend on: the length in bytes, code points or items, else 1."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, Optional) and value.has_value:
        return size_of(value.value)
    sized: Callable[[], int] | None = getattr(value, "cel_size", None)
    return 1 if sized is None else sized()


def int64(value: int) -> int:
    if not -_INT64 <= value < _INT64:
        raise CelError("integer overflow")
    return value


def uint64(value: int) -> UInt:
    if not 0 <= value < 2 * _INT64:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def found_in(mapping: Mapping[Any, Any], key: Any) -> tuple[bool, Any]:
    """A map's value by a key, which may be any number that equals it."""
    if isinstance(key, bool | str):
        if key in mapping and (type(key) is not bool or any(k is key for k in mapping)):
            return True, mapping[key]
        return False, None
    if type(key) not in _NUMBERS:
        raise CelError(f"unsupported key type: {type_of(key).full_name}")
    if key not in mapping or (key in (0, 1) and any(k is bool(key) for k in mapping)):
        return False, None
    return True, mapping[key]


def key_text(key: Any) -> str:
    """A key as errors show it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return go_float(key) if isinstance(key, float) else str(key)
