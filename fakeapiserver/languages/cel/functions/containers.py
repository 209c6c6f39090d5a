"""Access to the items of lists, maps and optionals."""

from collections.abc import Sequence
from typing import Any

from fakeapiserver.apimachinery.field import go_float
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.functions.comparisons import not_equal
from fakeapiserver.languages.cel.values import NONE, JSONPatch, Lazy, Optional, Sparse, found_in, key_text, type_of


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


def in_map(key: Any, container: dict[Any, Any]) -> bool:
    return found_in(container, key)[0]


def contains(items: Sequence[Any], item: Any) -> bool:
    return any(not not_equal(other, item) for other in items)


def in_list(item: Any, items: list[Any]) -> bool:
    return contains(items, item)


def insert(into: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key in into:
        raise CelError(f"insert failed: key {key_text(key)} already exists")
    return {**into, key: value}


def insert_all(into: dict[Any, Any], entries: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in entries.items():
        into = insert(into, key, value)
    return into
