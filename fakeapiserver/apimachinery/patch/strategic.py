"""Strategic merge patch: a merge patch that merges lists by key where the schema says so, and takes directives.

`$patch`, `$retainKeys`, `$setElementOrder/<field>` and `$deleteFromPrimitiveList/<field>` are obeyed where upstream looks for
them; where it doesn't (inside elements that are new to a list) they stay, and decoding warns of unknown fields.
Upstream: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
"""

from heapq import heappop, heappush
from operator import length_hint
from typing import Any, Final

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request
from fakeapiserver.apimachinery.patch.go_format import go_string, go_type, go_value
from fakeapiserver.apimachinery.patch.list_order import (
    Key,
    KeyOf,
    checked_map,
    element_type,
    identity,
    in_order,
    key_function,
    partition,
)
from fakeapiserver.apimachinery.patch.patch_meta import (
    MERGE,
    REPLACE,
    Field,
    Node,
    bad_argument,
    failure,
    lookup,
    no_merge_key,
    node_of,
)
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
SET_ELEMENT_ORDER: Final = "$setElementOrder"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"
_DROP: Final = object()

JSONObject = dict[str, Any]


def apply(original: JSONObject, patch: JSONObject, schema: Schema, definitions: Definitions) -> JSONObject:
    """The object with the patch merged in. The result shares what did not change with the object, and parts of the patch.

    The directives that are followed are taken out of the patch, in place, as upstream does: what is left of it is shown when the
    result turns out not to fit its kind.

    `schema` is the object's definition or a reference to it. Raises StatusError: 400 for directives of a wrong form,
    422 for lists of lists, and 500 with upstream's message for the rest (a merge key that is missing, an unknown field).
    """
    try:
        return _merge_map(original, patch, node_of(schema, definitions))
    except RecursionError:
        raise new_bad_request("exceeded max depth") from None


# ---------------------------------------------------------------------- maps


def _merge_map(original: JSONObject, patch: JSONObject, node: Node) -> JSONObject:
    if DIRECTIVE in patch:
        return _directed_map(patch)
    merged = original.copy()
    if any(key.startswith("$") for key in patch):
        _retain_keys(merged, patch)
        for key in [key for key in patch if key.startswith(SET_ELEMENT_ORDER)]:
            _set_element_order(merged, patch, key, node)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM_LIST):
            field = _listed_field(key, "invalid patch format of primitive list")
            # Without a word behind the slash upstream goes on with the directive as the name.
            _merge_field(merged, field or key, value, node, deleting=True)
        else:
            _merge_field(merged, key, value, node)
    return merged


def _directed_map(patch: JSONObject) -> JSONObject:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        del patch[DIRECTIVE]
        return patch.copy()
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: JSONObject) -> StatusError:
    return failure(f"unknown patch type: {go_string(directive)} in map: {go_value(patch)}")


def _listed_field(key: str, complaint: str) -> str:
    """The field's name in `$directive/<field>`."""
    directive, slash, field = key.partition("/")
    if not slash or directive not in (SET_ELEMENT_ORDER, DELETE_FROM_LIST):
        raise new_bad_request(complaint)
    return field


def _retain_keys(merged: JSONObject, patch: JSONObject) -> None:
    """Drops the members `$retainKeys` does not name; the patch may set no others."""
    if RETAIN_KEYS not in patch:
        return
    names = patch.pop(RETAIN_KEYS)
    if not isinstance(names, list):
        raise new_bad_request("invalid patch format of retainKeys")
    retained = {identity(name) for name in names}
    for key, value in patch.items():
        exempt = value is None or key.startswith((DELETE_FROM_LIST, SET_ELEMENT_ORDER))
        if not exempt and (str, key) not in retained:
            raise new_bad_request("invalid patch format of retainKeys")
    for key in [key for key in merged if (str, key) not in retained]:
        del merged[key]


def _merge_field(merged: JSONObject, key: str, value: Any, node: Node, deleting: bool = False) -> None:
    if value is None:
        merged.pop(key, None)
        return
    current = merged.get(key)
    if isinstance(value, dict) and isinstance(current, dict):
        field = lookup(node, key)
        merged[key] = value if field.strategy == REPLACE else _merge_map(current, value, field.node)
    elif isinstance(value, list) and isinstance(current, list):
        merged[key] = _merge_list_field(list(current), value, lookup(node, key), deleting)
    elif not deleting or (key in merged and go_type(current) == go_type(value)):
        cleaned = _cleaned(value)
        if cleaned is _DROP:
            merged.pop(key, None)
        else:
            merged[key] = cleaned


def _cleaned(value: Any, keep_nulls: bool = False) -> Any:
    """A value new to the object: without members that are null, and without what carries a directive."""
    try:
        if isinstance(value, dict):
            members = value if keep_nulls else {key: item for key, item in value.items() if item is not None}
            if DIRECTIVE in members:
                return _DROP
            cleaned = {key: _cleaned(item, keep_nulls) for key, item in members.items()}
            return {key: item for key, item in cleaned.items() if item is not _DROP}
        if isinstance(value, list):
            return [item for item in (_cleaned(item, keep_nulls) for item in value) if item is not _DROP]
        return value
    except RecursionError:
        return continued(_cleaned, value, keep_nulls)


# --------------------------------------------------------------------- lists


def _set_element_order(merged: JSONObject, patch: JSONObject, directive: str, node: Node) -> None:
    """Merges the field `$setElementOrder/<field>` is about, in the order it gives, and takes both from the patch."""
    order = _checked_list(patch.pop(directive))
    name = _listed_field(directive, "invalid patch format of setElementOrder list")
    live = _checked_list(merged[name]).copy() if name in merged else []
    wanted = _checked_list(patch[name]) if name in patch else []
    field = lookup(node, name)
    key = key_function(field.merge_key)
    _check_order(wanted, order, field.merge_key, key)
    if name not in merged and name not in patch:
        return
    if name not in merged:
        elements = _cleaned(wanted, keep_nulls=True)
    else:
        size = len(live)
        # Merging deletes from `live` itself and appends to it, and upstream orders by what is left in its first places.
        elements = _merge_list_field(live, wanted, field, deleting=False) if name in patch else live
        del live[size:]
    inside, outside = partition(elements, order, key)
    element_type(live, wanted)
    merged[name] = in_order(inside, outside, order, live, key)
    patch.pop(name, None)


def _checked_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise bad_argument("[]interface {}", value)
    return value


def _check_order(wanted: list[Any], order: list[Any], merge_key: str, key: KeyOf) -> None:
    """The patch's elements must stand in `order`, in the same relative order; those with a directive need not."""
    if not wanted or not order:
        return
    ordered = wanted
    if merge_key:
        ordered = [element for element in wanted if checked_map(element).get(DIRECTIVE) != "delete"]
    remaining = iter(order)
    for element in ordered:
        # An element with a directive passes, but only while there is something left of the order: so upstream.
        if isinstance(element, dict) and DIRECTIVE in element and length_hint(remaining):
            continue
        if not any(key(element) == key(other) for other in remaining):
            raise _out_of_order(wanted, order)


def _out_of_order(wanted: list[Any], order: list[Any]) -> StatusError:
    shown = f"{go_value(wanted)}\n doesn't match {SET_ELEMENT_ORDER} list:\n{go_value(order)}"
    return failure(f"The order in patch list:\n{shown}\n")


def _merge_list_field(live: list[Any], patch: list[Any], field: Field, deleting: bool) -> list[Any]:
    """`live` is changed on the way, see _set_element_order."""
    if field.strategy != MERGE and not deleting:
        return patch
    if not live and not patch:
        return live
    if element_type(live, patch) != go_type({}):
        return _merge_scalars(live, patch, field, deleting)
    if not field.merge_key:
        raise failure(f"cannot merge lists without merge key for {field.node.kind()}")
    return _merge_maps(live, patch, field)


def _merge_scalars(live: list[Any], patch: list[Any], field: Field, deleting: bool) -> list[Any]:
    if deleting:
        unwanted = {identity(element) for element in patch}
        return [element for element in live if identity(element) not in unwanted]
    key = key_function(field.merge_key)
    inside, outside = partition(_without_duplicates(live + patch), patch, key)
    return in_order(inside, outside, patch, live, key)


def _without_duplicates(elements: list[Any]) -> list[Any]:
    """The first of equal elements stays; the last element takes the place of each that goes, as upstream has it."""
    left = list(elements)
    # The places of equal elements, as heaps; a place that holds something else by now counts no more.
    places: dict[Key, list[int]] = {}
    for at, element in enumerate(left):
        places.setdefault(identity(element), []).append(at)
    for first in range(len(elements)):
        if first >= len(left):
            break
        kind = identity(left[first])
        equal = places[kind]
        while equal:
            at = heappop(equal)
            if at <= first or at >= len(left) or identity(left[at]) != kind:
                continue
            last = left.pop()
            if at < len(left):
                left[at] = last
                heappush(places[identity(last)], at)
    return left


def _merge_maps(live: list[Any], patch: list[Any], field: Field) -> list[Any]:
    merge_key = field.merge_key
    size, elements, replacing = _follow_directives(live, patch, merge_key)
    key = key_function(merge_key)
    if replacing:
        return in_order([], elements, [], elements, key)
    merged_size = size
    places = {value: at[0] for value, at in _places(live[:size], merge_key).items()}
    for element in elements:
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        at = places.setdefault(identity(element[merge_key]), merged_size)
        if at < merged_size:
            live[at] = _merge_map(live[at], element, field.node)
            continue
        live[merged_size : merged_size + 1] = [element]
        merged_size += 1
    inside, outside = partition(live[:merged_size], elements, key)
    return in_order(inside, outside, elements, live[:size], key)


def _follow_directives(live: list[Any], patch: list[Any], merge_key: str) -> tuple[int, list[Any], bool]:
    """Returns the number of elements of `live` after the deletions, the patch without directives, and whether it replaces the list.

    The remaining elements move forward in `live`; its last places are not cleared.
    """
    elements, deleted, replacing = [], [], False
    for element in patch:
        if DIRECTIVE not in element:
            elements.append(element)
            continue
        directive = element[DIRECTIVE]
        if directive == "delete":
            if merge_key not in element:
                raise no_merge_key(element, merge_key)
            deleted.append(identity(element[merge_key]))
        elif directive == "replace":
            replacing = True
        elif directive == "merge":
            raise failure("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, element)
    return _delete(live, deleted, merge_key) if deleted else len(live), elements, replacing


def _delete(live: list[Any], deleted: list[Key], merge_key: str) -> int:
    """Removes the elements with these keys, one after the other, and returns how many remain.

    Each place behind them keeps what was last when the list became too short for it.
    """
    places = _places(live, merge_key)
    gone: set[int] = set()
    behind: list[Any] = []
    last = len(live) - 1
    for key in deleted:
        for at in places.pop(key, ()):
            behind.append(live[last])
            gone.add(at)
            while last in gone:
                last -= 1
    kept = [element for at, element in enumerate(live) if at not in gone]
    live[:] = kept + behind[::-1]
    return len(kept)


def _places(elements: list[Any], merge_key: str) -> dict[Key, list[int]]:
    """The places of the elements that have a merge key, by its value."""
    places: dict[Key, list[int]] = {}
    for at, element in enumerate(elements):
        if merge_key in element and not isinstance(value := element[merge_key], dict | list):
            places.setdefault(identity(value), []).append(at)
    return places
