"""Merging an applied object into the live one, and taking fields out of an object.

Upstream: sigs.k8s.io/structured-merge-diff/v6/typed (merge.go, remove.go).

Results share values with their inputs; neither is changed.
"""

from collections import deque
from typing import Any, Final

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.managedfields.compare import grouped
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, below, has
from fakeapiserver.apimachinery.managedfields.typed import Node

ABSENT: Final[Any] = object()
_NOTHING: Final = Node("untyped")


def merge(node: Node, live: Any, applied: Any) -> Any:
    """The live value with the applied one's fields laid over it. ABSENT for a side that has no such value."""
    if applied is ABSENT:
        return live
    try:
        if isinstance(applied, dict) and node.is_map:
            if node.atomic_map or not (applied or (isinstance(live, dict) and live)):
                return applied
            return _merge_maps(node, live if isinstance(live, dict) else {}, applied)
        if isinstance(applied, list) and node.items is not None:
            if node.atomic_list or not (applied or (isinstance(live, list) and live)):
                return applied
            return _merge_lists(node, live if isinstance(live, list) else [], applied)
    except RecursionError:
        return continued(merge, node, live, applied)
    if applied is None and _granular(node, live):
        return live
    return applied


def _granular(node: Node, live: Any) -> bool:
    """An applied null takes nothing away from a value that has parts of its own."""
    if isinstance(live, dict) and live:
        return node.is_map and not node.atomic_map
    return isinstance(live, list) and bool(live) and node.items is not None and not node.is_map and not node.atomic_list


def _merge_maps(node: Node, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    out = dict(live)
    for key, value in applied.items():
        out[key] = merge(node.fields.get(key) or node.element or _NOTHING, live.get(key, ABSENT), value)
    return out


def _merge_lists(node: Node, live: list[Any], applied: list[Any]) -> list[Any]:
    """Items in the order of the applied list; live ones it lacks keep their place after the shared item they followed."""
    item_node = node.items or _NOTHING
    mine = {node.item_element(item): item for item in applied}
    theirs = grouped(node, live)
    order = [node.item_element(item) for item in live]
    shared = deque(key for key in mine if key in theirs)
    next_shared = shared.popleft() if shared else None
    merged: set[str] = set()
    out: list[Any] = []
    keys = list(mine)
    left = right = 0

    def take(key: str) -> None:
        merged.add(key)
        items = theirs.get(key, ())
        # Duplicates in the live list are not merged with: the applied item replaces them.
        base = ABSENT if not items else items[0] if len(items) == 1 else None
        out.append(merge(item_node, base, mine[key]))

    while left < len(order) or right < len(keys):
        if left < len(order) and right < len(keys):
            key = order[left]
            if key == keys[right]:
                take(key)
                left, right = left + 1, right + 1
                next_shared = shared.popleft() if shared else None
                continue
            if key in mine and next_shared is not None and next_shared != key:
                left += 1
                continue
        if left < len(order):
            key = order[left]
            if key not in mine:
                out.append(live[left])
                left += 1
                continue
            if key in merged:
                left += 1
        if right < len(keys):
            key = keys[right]
            take(key)
            right += 1
            if next_shared == key:
                next_shared = shared.popleft() if shared else None
    return out


def remove(node: Node, value: Any, fields: FieldSet) -> Any:
    """The value without the fields of a set; null where nothing is left."""
    try:
        if isinstance(value, dict) and node.is_map:
            return None if node.atomic_map else _remove_keys(node, value, fields) or None
        if isinstance(value, list) and node.items is not None:
            return None if node.atomic_list else _remove_items(node, value, fields) or None
    except RecursionError:
        return continued(remove, node, value, fields)
    return value if node.scalar else None


def _remove_keys(node: Node, value: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        element = "f:" + key
        if element not in fields:
            out[key] = item
        elif not has(fields, element):
            out[key] = remove(node.fields.get(key) or node.element or _NOTHING, item, below(fields, element))
    return out


def _remove_items(node: Node, value: list[Any], fields: FieldSet) -> list[Any]:
    out: list[Any] = []
    item_node = node.items or _NOTHING
    for item in value:
        element = node.item_element(item)
        if element not in fields:
            out.append(item)
        elif not has(fields, element):
            out.append(remove(item_node, item, below(fields, element)))
    return out
