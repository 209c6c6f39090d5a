"""Functions of lists."""

from typing import Any

from fakeapiserver.languages.gotemplate.sprig.conversions import kind, strings, to_int
from fakeapiserver.languages.gotemplate.sprig.defaults import empty
from fakeapiserver.languages.gotemplate.values import TemplateError, shown, type_name


def _list_of(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise TemplateError(f"Cannot find {name} on type {kind(value)}")
    return value


def new_list(*values: Any) -> list[Any]:
    return [*values]


def first(value: Any) -> Any:
    items = _list_of(value, "first")
    return items[0] if items else None


def last(value: Any) -> Any:
    items = _list_of(value, "last")
    return items[-1] if items else None


def rest(value: Any) -> list[Any]:
    return _list_of(value, "rest")[1:]


def initial(value: Any) -> list[Any]:
    return _list_of(value, "initial")[:-1]


def append(value: Any, item: Any) -> list[Any]:
    return [*_list_of(value, "push"), item]


def prepend(value: Any, item: Any) -> list[Any]:
    return [item, *_list_of(value, "prepend")]


def reverse(value: Any) -> list[Any]:
    return _list_of(value, "reverse")[::-1]


def uniq(value: Any) -> list[Any]:
    unique: list[Any] = []
    for item in _list_of(value, "uniq"):
        if not has(item, unique):
            unique.append(item)
    return unique


def without(value: Any, *gone: Any) -> list[Any]:
    return [item for item in _list_of(value, "without") if not has(item, [*gone])]


def has(item: Any, value: Any) -> bool:
    if value is None:
        return False
    return any(type_name(item) == type_name(other) and item == other for other in _list_of(value, "has"))


def compact(value: Any) -> list[Any]:
    return [item for item in _list_of(value, "compact") if not empty(item)]


def slice_of(value: Any, *bounds: Any) -> Any:
    items = _list_of(value, "slice")
    if not items:
        return None
    start = to_int(bounds[0]) if bounds else 0
    end = to_int(bounds[1]) if len(bounds) > 1 else len(items)
    if not 0 <= start <= end <= len(items):
        raise TemplateError("reflect.Value.Slice: slice index out of bounds")
    return items[start:end]


def concat(*values: Any) -> list[Any]:
    return [item for value in values for item in _list_of(value, "concat")]


def chunk(size: int, value: Any) -> list[Any]:
    items = _list_of(value, "chunk")
    if size <= 0:
        raise TemplateError("runtime error: integer divide by zero")
    return [items[at : at + size] for at in range(0, len(items), size)] or [[]]


def sort_alpha(value: Any) -> list[Any]:
    return sorted(strings(value)) if isinstance(value, list) else [shown(value)]
