"""Lists that are sets or maps: no element, no key may be there twice.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

from fakeapiserver.apimachinery.field import ErrorList, Path, duplicate, invalid
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.schema.validate_value import sorted_value
from fakeapiserver.apimachinery.serializer import json

# An item without an old state.
MISSING: Final[Any] = object()


def leading_to_unique_lists(schema: Schema) -> Schema:
    """Returns the parts of a schema that lead to sets and maps, so that nothing else is walked through; may be
    empty.
    """
    kept: Schema = {}
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        kept = {key: schema[key] for key in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys") if key in schema}
    below = {name: leading_to_unique_lists(sub) for name, sub in schema.get("properties", {}).items()}
    if properties := {name: below_name for name, below_name in below.items() if below_name}:
        kept["properties"] = properties
    for key in ("items", "additionalProperties"):
        if isinstance(sub := schema.get(key), dict) and (below_name := leading_to_unique_lists(sub)):
            kept[key] = below_name
    return kept


def validate_lists(value: Any, schema: Schema, path: Path) -> ErrorList:
    """Duplicates in every x-kubernetes-list-type set or map below a value."""
    errors: ErrorList = []
    if isinstance(value, list):
        errors += _validate_list(value, schema, path)
        if items := schema.get("items"):
            for i, item in enumerate(value):
                if isinstance(item, dict | list):
                    errors += validate_lists(item, items, path.index(i))
    elif isinstance(value, dict):
        _validate_fields(value, schema, path, errors)
    return errors


def _validate_fields(value: dict[str, Any], schema: Schema, path: Path, errors: ErrorList) -> None:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, item in value.items():
        if not isinstance(item, dict | list):
            continue
        if isinstance(others, dict):
            errors += validate_lists(item, others, path.key(key))
        if key in properties:
            errors += validate_lists(item, properties[key], path.child(key))


def _validate_list(value: list[Any], schema: Schema, path: Path) -> ErrorList:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return [duplicate(path.index(i), sorted_value(value[i])) for i in repeated(value)]
    if kind != "map":
        return []
    for i, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [invalid(path.index(i), item, "must be an object for an array of list-type map")]
    keys = [map_key(item, schema) for item in value]
    return [duplicate(path.index(i), sorted_value(keys[i])) for i in repeated(keys)]


def items_by_key(old: list[Any], schema: Schema) -> Callable[[Any], Any]:
    """Returns a function that finds the first item in a list of type map that has the keys of another item; it returns MISSING without
    such an item, and for anything but an object with all keys."""
    names = schema.get("x-kubernetes-list-map-keys", ())
    known: dict[bytes, Any] = {}
    for item in old:
        if isinstance(item, dict):
            known.setdefault(_text(map_key(item, schema)), item)

    def find(item: Any) -> Any:
        key = map_key(item, schema) if isinstance(item, dict) else {}
        return known.get(_text(key), MISSING) if isinstance(item, dict) and len(key) == len(names) else MISSING

    return find


def _text(value: Any) -> bytes:
    """Returns what is equal for equal values; JSON distinguishes true from 1 and 1 from 1.0, as Go does."""
    return json.encode_plainly_sorted(value)


def map_key(item: Any, schema: Schema) -> dict[str, Any]:
    """The key fields an element of a list of type map has."""
    return {k: item[k] for k in schema.get("x-kubernetes-list-map-keys", ()) if k in item} if item else {}


def repeated(values: list[Any]) -> list[int]:
    """The index of the first repetition of each value that is there more than once."""
    counts: dict[Hashable, int] = {}
    repeated = []
    for i, value in enumerate(values):
        key = _text(value)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            repeated.append(i)
    return repeated
