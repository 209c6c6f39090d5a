"""The order of a merged list: that of the patch (or of $setElementOrder), with what only the server has in between.

Upstream: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go (normalizeElementOrder and what it calls).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.patch.go_format import go_type, go_value
from fakeapiserver.apimachinery.patch.patch_meta import (
    bad_argument,
    failure,
    no_lists_of_lists,
    no_merge_key,
    panic,
)

Key = tuple[type, Any]
KeyOf = Callable[[Any], Key]
IsLess = Callable[[int, int], bool]

_BLOCK: Final = 20


def identity(value: Any) -> Key:
    """Returns the key by which Go compares values: 1, 1.0 and true differ. Maps and lists can't be compared."""
    if isinstance(value, dict | list):
        raise panic()
    return type(value), value


def key_function(merge_key: str) -> KeyOf:
    """Returns the function that identifies elements: by their merge key, or without one by themselves."""
    if not merge_key:
        return identity

    def by_merge_key(element: Any) -> Key:
        checked_map(element)
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        return identity(element[merge_key])

    return by_merge_key


def checked_map(element: Any) -> dict[str, Any]:
    if not isinstance(element, dict):
        raise bad_argument("map[string]interface {}", element)
    return element


def element_type(*lists: list[Any]) -> str:
    """The one Go type of all elements. Raises for several, none, and lists of lists."""
    types = [go_type(element) for elements in lists for element in elements]
    if not types:
        raise failure("no elements in any of the given slices")
    if not types[0]:
        raise panic()
    if types[0] == go_type([]):
        raise no_lists_of_lists()
    if any(kind != types[0] for kind in types):
        raise failure(f"list element types are not identical: {go_value(list(lists))}")
    return types[0]


def partition(elements: list[Any], by: list[Any], key: KeyOf) -> tuple[list[Any], list[Any]]:
    """The elements that `by` has too, and the others."""
    inside: list[Any] = []
    outside: list[Any] = []
    if elements and isinstance(elements[0], dict):
        _check_maps(by)
    known = {key(element) for element in by}
    for element in elements:
        (inside if key(element) in known else outside).append(element)
    return inside, outside


def _check_maps(elements: list[Any]) -> None:
    for index, element in enumerate(elements):
        if not isinstance(element, dict):
            raise failure(f"value for key {index} is not a map")


def in_order(
    patch: list[Any], server_only: list[Any], patch_order: list[Any], server_order: Sequence[Any], key: KeyOf
) -> list[Any]:
    """Both lists in their own orders, merged into one by the places of their elements in `server_order`."""
    places = _places(server_order, key)
    left = _sorted(server_only, places, key)
    right = _sorted(patch, _places(patch_order, key), key)
    return _interleaved(left, right, places, key)


def _places(order: Iterable[Any], key: KeyOf) -> dict[Key, int]:
    places: dict[Key, int] = {}
    for index, element in enumerate(order):
        places.setdefault(key(element), index)
    return places


def _sorted(elements: list[Any], places: dict[Key, int], key: KeyOf) -> list[Any]:
    """Sorted by place, deletions last."""
    kept = [element for element in elements if not _is_deletion(element)]
    deletions = [element for element in elements if _is_deletion(element)]
    live_places = [places.get(key(element), -1) for element in kept]
    if -1 not in live_places:
        return [kept[i] for i in sorted(range(len(kept)), key=live_places.__getitem__)] + deletions
    return [kept[i] for i in _insertion_order(live_places)] + deletions


def _is_deletion(element: Any) -> bool:
    return isinstance(element, dict) and element.get("$patch") == "delete"


def _insertion_order(places: list[int]) -> list[int]:
    """Sorts with Go's stable sort and upstream's comparison, for which an element without a place is less than any other. Since that is
    no order, the result depends on which elements are compared: blocks of 20 are sorted by insertion, and then merged (SymMerge).

    Upstream: Go's sort/zsortfunc.go (stable_func)."""
    order = list(range(len(places)))

    def is_less(left: int, right: int) -> bool:
        return _less(places[order[left]], places[order[right]])

    size = len(order)
    for start in range(0, size, _BLOCK):
        _insertion_sort(order, start, min(start + _BLOCK, size), is_less)
    block = _BLOCK
    while block < size:
        for start in range(0, size - block, 2 * block):
            _merge(order, start, start + block, min(start + 2 * block, size), is_less)
        block *= 2
    return order


def _insertion_sort(order: list[int], start: int, end: int, is_less: IsLess) -> None:
    for first in range(start + 1, end):
        at = first
        while at > start and is_less(at, at - 1):
            order[at], order[at - 1] = order[at - 1], order[at]
            at -= 1


def _merge(order: list[int], start: int, middle: int, end: int, is_less: IsLess) -> None:
    """Merges two sorted runs, from `start` and from `middle` on."""
    if middle - start == 1:
        at = _first(middle, end, lambda i: not is_less(i, start))
        order[start:at] = order[middle:at] + order[start:middle]
        return
    if end - middle == 1:
        at = _first(start, middle, lambda i: is_less(middle, i))
        order[at:end] = order[middle:end] + order[at:middle]
        return
    half = (start + end) // 2
    mirrored = half + middle
    low, high = (mirrored - end, half) if middle > half else (start, middle)
    left = _first(low, high, lambda i: is_less(mirrored - 1 - i, i))
    right = mirrored - left
    if left < middle < right:
        order[left:right] = order[middle:right] + order[left:middle]
    if start < left < half:
        _merge(order, start, left, half, is_less)
    if half < right < end:
        _merge(order, half, right, end, is_less)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Returns the first index from `low` up to `high` for which the condition holds, by halving; `high` if it holds for none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _less(left: int, right: int) -> bool:
    return left < right if left >= 0 and right >= 0 else True


def _interleaved(left: list[Any], right: list[Any], places: dict[Key, int], key: KeyOf) -> list[Any]:
    """Merges two lists: each of `left` goes before the first remaining element of `right` that has a later place."""
    merged: list[Any] = []
    waiting = iter(left)
    element = next(waiting, None)
    for position, other in enumerate(right):
        place = places.get(key(other), -1)
        while element is not None and 0 <= places.get(key(element), -1) < place:
            merged.append(element)
            element = next(waiting, None)
        if element is None:
            return merged + right[position:]
        merged.append(other)
    return merged if element is None else [*merged, element, *waiting]
