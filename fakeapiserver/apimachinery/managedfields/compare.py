"""The fields of an object, and the fields that differ between two.

Upstream: sigs.k8s.io/structured-merge-diff/v6/typed (tofieldset.go, compare.go).
"""

from collections.abc import Callable
from operator import eq
from typing import Any, Final

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, OrderedFields, in_order, insert
from fakeapiserver.apimachinery.managedfields.typed import Node, NoPathElement, TypedSchema
from fakeapiserver.apimachinery.meta import equal as python_equal
from fakeapiserver.apimachinery.meta import same
from fakeapiserver.apimachinery.serializer import json

Comparison = tuple[FieldSet, FieldSet, FieldSet]
Equal = Callable[[Any, Any], bool]


def to_fieldset(obj: dict[str, Any], schema: TypedSchema) -> FieldSet:
    """Every field an applied object claims: leaves, list items, keys of maps; not the structs on the way."""
    return _fields_of(schema.root, obj) or {}


def _fields_of(node: Node, value: Any) -> FieldSet | None:
    """The fields of a value; None: nothing to own; {}: the value as a whole."""
    try:
        if isinstance(value, dict) and node.is_map:
            return {} if node.atomic_map else _map_fields(node, value) or None
        if isinstance(value, list) and node.items is not None:
            return {} if node.atomic_list else _list_fields(node, value) or None
    except RecursionError:
        return continued(_fields_of, node, value)
    if value is None and not node.scalar:
        return {} if (node.atomic_map if node.is_map else node.atomic_list) else None
    if value is None and node.is_map and not node.atomic_map:
        return None
    return {}


def _map_fields(node: Node, value: dict[str, Any]) -> FieldSet:
    out: FieldSet = {}
    for key, item in value.items():
        child = node.fields.get(key)
        fields = _fields_of(child or node.element or _NOTHING, item)
        if fields is None:
            if child is None or item is None or item == {}:
                out["f:" + key] = {}
        elif child is None and fields:
            out["f:" + key] = {".": {}, **fields}
        else:
            out["f:" + key] = fields
    return out


def _list_fields(node: Node, value: list[Any]) -> FieldSet:
    out: FieldSet = {}
    item_node = node.items or _NOTHING
    for element, items in grouped(node, value).items():
        fields = _fields_of(item_node, items[0]) if len(items) == 1 else None
        out[element] = {".": {}, **fields} if fields else {}
    return out


def grouped(node: Node, value: list[Any] | None) -> dict[str, list[Any]]:
    """An associative list's items by their path element; more than one where a client sent duplicates."""
    out: dict[str, list[Any]] = {}
    for item in value or ():
        out.setdefault(node.item_element(item), []).append(item)
    return out


_NOTHING: Final = Node("untyped")
_CONTAINERS: Final = frozenset((dict, list))
_SPEC: Final = "spec"
# Bytes of the largest spec that is remembered, and how many are.
_LARGEST_SPEC: Final = 16 * 1024
_MOST_SPECS: Final = 512
_known_specs: Final[dict[tuple[TypedSchema, bytes], Comparison]] = {}


def compare(old: dict[str, Any] | None, new: dict[str, Any], schema: TypedSchema) -> Comparison:
    """(added, modified, removed): fields only in new, in both but different, only in old. `old` None: a new object."""
    root = schema.root
    if old is None:
        return _comparison_of_new(new, schema)
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    # Go's types hold no value that could be true before and 1 now.
    equal = _same if schema.nulls else eq
    if schema.nulls or not python_equal(old, new):
        _compare_maps(root, old, new, (added, modified, removed), equal)
    return added, modified, removed


def _comparison_of_new(new: dict[str, Any], schema: TypedSchema) -> Comparison:
    """Compares an object with the schema's empty one. The fields of its spec are remembered by the spec's bytes, since objects that are
    made from one template have the same."""
    equal = _same if schema.nulls else eq
    spec, empty = new.get(_SPEC), schema.empty
    into: Comparison = ({}, {}, {})
    text = json.encode_plainly(spec) if isinstance(spec, dict) else b""
    if not text or len(text) > _LARGEST_SPEC:
        _compare_maps(schema.root, empty, new, into, equal)
        return into
    known = _known_specs.get((schema, text))
    if known is None:
        found: Comparison = ({}, {}, {})
        _compare_maps(schema.root, _only_spec(empty), {_SPEC: spec}, found, equal)
        if len(_known_specs) >= _MOST_SPECS:
            _known_specs.clear()
        known = _known_specs[schema, text] = (_ordered(found[0]), _ordered(found[1]), _ordered(found[2]))
    _compare_maps(schema.root, _without_spec(empty), _without_spec(new), into, equal)
    for fields, of_spec in zip(into, known, strict=True):
        fields.update(of_spec)
    return into


def _ordered(fields: FieldSet) -> FieldSet:
    return {key: OrderedFields(in_order(node)) for key, node in fields.items()}


def _only_spec(obj: dict[str, Any]) -> dict[str, Any]:
    return {_SPEC: obj[_SPEC]} if _SPEC in obj else {}


def _without_spec(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key != _SPEC}


def whole(node: Node, value: Any) -> FieldSet:
    """The fields added where a value appears, or removed where it goes, itself included."""
    if isinstance(value, dict):
        if node.atomic_map or not value or not node.is_map:
            return {}
        out: FieldSet = {".": {}}
        fields, element = node.fields, node.element or _NOTHING
        try:
            for key, item in value.items():
                # Most values are scalars, which are leaves whatever their type says.
                out["f:" + key] = whole(fields.get(key) or element, item) if item.__class__ in _CONTAINERS else {}
        except RecursionError:
            return continued(whole, node, value)
        return out
    if isinstance(value, list):
        if node.atomic_list or not value:
            return {}
        out = {".": {}}
        item_node = node.items or _NOTHING
        for item in value:
            key = node.item_element(item)
            # Duplicates are owned as one, whatever they hold.
            out[key] = whole(item_node, item) if key not in out else {}
        return out
    return {}


def _same(a: Any, b: Any) -> bool:
    """Does what `same` does. Raises RecursionError if a value is too deep for one stack: all below each level would be compared again."""
    _ = a == b
    return same(a, b)


def _same_unless_maps(a: Any, b: Any) -> bool:
    """Reports whether two values are the same, but never of two maps: all that is in them is compared by itself."""
    return not (isinstance(a, dict) and isinstance(b, dict)) and same(a, b)


def _compare_maps(node: Node, old: dict[str, Any], new: dict[str, Any], into: Comparison, equal: Equal) -> None:
    """Both are granular maps; what differs is put into the three nodes given."""
    added, _, removed = into
    fields, element = node.fields, node.element or _NOTHING
    try:
        for key, value in new.items():
            if key not in old:
                added["f:" + key] = whole(fields.get(key) or element, value) if value.__class__ in _CONTAINERS else {}
            elif not equal(before := old[key], value):
                _compare_into("f:" + key, fields.get(key) or element, before, value, into, equal)
    except RecursionError:
        continued(_compare_maps, node, old, new, into, _same_unless_maps)
        return
    for key, value in old.items():
        if key not in new:
            removed["f:" + key] = whole(fields.get(key) or element, value)


def _compare_into(key: str, node: Node, old: Any, new: Any, into: Comparison, equal: Equal) -> None:
    """Compares two different values at one path element and puts what differs below that element."""
    below: Comparison = ({}, {}, {})
    if not _compare_values(node, old, new, below, equal):
        if equal is not _same_unless_maps or not same(old, new):
            into[1][key] = {}
    elif below[1]:
        into[1][key] = below[1]
    if below[0]:
        into[0][key] = below[0]
    if below[2]:
        into[2][key] = below[2]


def _compare_values(node: Node, old: Any, new: Any, into: Comparison, equal: Equal) -> bool:
    """Compares two values; returns False for leaves.

    Fields below a value that stopped or started to be a map are recorded as well.
    """
    old_map, new_map = isinstance(old, dict) and node.is_map, isinstance(new, dict) and node.is_map
    old_list = isinstance(old, list) and node.items is not None
    new_list = isinstance(new, list) and node.items is not None
    as_map = (old_map or new_map) and not node.atomic_map and bool((old_map and old) or (new_map and new))
    as_list = (old_list or new_list) and not node.atomic_list and bool((old_list and old) or (new_list and new))
    if as_map:
        _compare_maps(node, old if old_map else {}, new if new_map else {}, into, equal)
    if as_list:
        _compare_lists(node, old if old_list else [], new if new_list else [], into, equal)
    if old is None or new is None:
        return as_map or as_list
    return (
        (as_map or as_list)
        and isinstance(old, dict) == isinstance(new, dict)
        and isinstance(old, list) == isinstance(new, list)
    )


def _compare_lists(node: Node, old: list[Any], new: list[Any], into: Comparison, equal: Equal) -> None:
    added, _, removed = into
    before, after = grouped(node, old), grouped(node, new)
    item_node = node.items or _NOTHING
    for key, items in after.items():
        were = before.get(key, [])
        if not were:
            added[key] = whole(item_node, items[0]) if len(items) == 1 else {}
        elif not equal(were, items):
            _compare_items(key, item_node, were, items, into, equal)
    for key, items in before.items():
        if key not in after:
            removed[key] = whole(item_node, items[0]) if len(items) == 1 else {}


def _compare_items(key: str, node: Node, old: list[Any], new: list[Any], into: Comparison, equal: Equal) -> None:
    """Duplicates are one leaf; they turn into an item's own fields, or back, when they start or stop being duplicates."""
    added, modified, removed = into
    if len(old) == len(new) == 1:
        _compare_into(key, node, old[0], new[0], into, equal)
    elif len(old) > 1 and len(new) > 1:
        modified[key] = {}
    elif len(old) > 1:
        added[key] = whole(node, new[0])
        insert(removed, (key,))
    else:
        removed[key] = whole(node, old[0])
        insert(added, (key,))


__all__ = ["Comparison", "NoPathElement", "compare", "grouped", "to_fieldset", "whole"]
