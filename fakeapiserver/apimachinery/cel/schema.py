"""The declarations of a structural schema for expressions, and its values in expressions.

Upstream: k8s.io/apiserver/pkg/cel/common/{schemas,valuesunstructured}.go, k8s.io/apiserver/pkg/cel/types.go,
k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model/schemas.go
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.schema.formats import nanoseconds
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.schema.scalars import canonical_base64
from fakeapiserver.languages.cel import types
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.escaping import escape
from fakeapiserver.languages.cel.times import to_timestamp
from fakeapiserver.languages.cel.types import Type
from fakeapiserver.languages.cel.values import BadField, Duration, MapList, SetList

MAX_REQUEST: Final = 3 * 1024 * 1024
_STRING: Final[Schema] = {"type": "string"}
_META: Final[Schema] = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}
# format -> type, smallest and largest size as JSON.
_FORMATS: Final = {
    "byte": (types.BYTES, 2, 0),
    "duration": (types.DURATION, 3, 32),
    "date": (types.TIMESTAMP, 12, 12),
    "date-time": (types.TIMESTAMP, 21, 32),
}


class Decl(Struct):
    """A schema's declaration. Sizes are upstream's estimates: `max_elements` of strings, lists and maps, `min_size` as JSON;
    `key`: of a map whose keys have a size that is known."""

    kind: str
    type: Type
    min_size: int
    max_elements: int = 0
    fields: dict[str, Decl] = field(default_factory=dict)
    element: Decl | None = None
    key: Decl | None = None


_SCALARS: Final = {"boolean": (types.BOOL, 4), "number": (types.DOUBLE, 1), "integer": (types.INT, 1)}


def with_type_and_meta(schema: Schema) -> Schema:
    """A resource's schema, which always has these fields."""
    properties = schema.get("properties") or {}
    meta = properties.get("metadata") or {}
    inner = meta.get("properties") or {}
    complete = (
        all((properties.get(name) or {}).get("type") == "string" for name in ("kind", "apiVersion"))
        and meta.get("type") == "object"
        and all((inner.get(name) or {}).get("type") == "string" for name in ("name", "generateName"))
    )
    if complete:
        return schema
    return {**schema, "properties": {**properties, "kind": _STRING, "apiVersion": _STRING, "metadata": _META}}


def declare(schema: Schema, *, is_resource: bool, name: str = "object") -> Decl | None:
    """Returns a schema's declaration, or None if it is not exposed. `name` is the type's if it is an object."""
    if schema.get("x-kubernetes-int-or-string"):
        longest = schema.get("maxLength")
        return Decl("dyn", types.DYN, 1, MAX_REQUEST - 2 if longest is None else max(longest, 0) * 4)
    if is_resource:
        schema = with_type_and_meta(schema)
    kind = schema.get("type", "")
    if kind == "array":
        return _list(schema, name)
    if kind == "object":
        others = schema.get("additionalProperties")
        return _map(schema, others, name) if isinstance(others, dict) else _object(schema, name)
    if kind == "string":
        return _string(schema)
    if kind in _SCALARS:
        t, size = _SCALARS[kind]
        return Decl(kind, t, size)
    return None


def is_declared(schema: Schema, *, is_resource: bool) -> bool:
    """Reports whether declare() would have something to say: properties that it leaves out don't matter."""
    kind = "object" if is_resource else schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string") or kind == "string" or kind in _SCALARS:
        return True
    inner = {"array": schema.get("items"), "object": schema.get("additionalProperties")}.get(kind)
    if isinstance(inner, dict):
        return is_declared(inner, is_resource=bool(inner.get("x-kubernetes-embedded-resource")))
    return bool(kind == "object")


def _nested(schema: Schema, name: str) -> Decl | None:
    return declare(schema, is_resource=bool(schema.get("x-kubernetes-embedded-resource")), name=name)


def _list(schema: Schema, name: str) -> Decl | None:
    items = schema.get("items")
    element = _nested(items, f"{name}.@idx") if isinstance(items, dict) else None
    if element is None:
        return None
    limit = schema.get("maxItems")
    most = (MAX_REQUEST - 2) // (element.min_size + 1) if limit is None else max(limit, 0)
    return Decl("list", types.list_of(element.type), 2, most, element=element)


def _map(schema: Schema, others: Schema, name: str) -> Decl | None:
    element = _nested(others, f"{name}.@elem")
    if element is None:
        return None
    limit = schema.get("maxProperties")
    most = (MAX_REQUEST - 2) // (element.min_size + 6) if limit is None else max(limit, 0)
    return Decl("map", types.map_of(types.STRING, element.type), 2, most, element=element)


def _object(schema: Schema, name: str) -> Decl:
    fields: dict[str, Decl] = {}
    size = 2
    required = schema.get("required") or ()
    for key, sub in (schema.get("properties") or {}).items():
        escaped = escape(key)
        decl = _nested(sub, f"{name}.{escaped}")
        if decl is None:
            continue
        if escaped is not None:
            fields[escaped] = decl
        if key in required and sub.get("default") is None:
            size += len(key.encode()) + decl.min_size + 4
    return Decl("object", types.struct(name), size, fields=fields)


def _string(schema: Schema) -> Decl:
    longest = schema.get("maxLength")
    if (known := _FORMATS.get(schema.get("format", ""))) is not None:
        t, least, most = known
        return Decl("string", t, least, most or (MAX_REQUEST - 2 if longest is None else max(longest, 0)))
    if longest is not None:
        return Decl("string", types.STRING, 2, max(longest, 0) * 4)
    if enum := schema.get("enum"):
        most = max((len(value.encode()) for value in enum if isinstance(value, str)), default=0)
        return Decl("string", types.STRING, 2, most)
    return Decl("string", types.STRING, 2, MAX_REQUEST - 2)


def structs_of(decl: Decl) -> dict[str, Mapping[str, Type]]:
    """The fields of each object type in a declaration, by the type's name."""
    structs: dict[str, Mapping[str, Type]] = {}
    pending = [decl]
    while pending:
        item = pending.pop()
        if item.kind == "object":
            structs[item.type.name] = {name: sub.type for name, sub in item.fields.items()}
            pending += item.fields.values()
        if item.element is not None:
            pending.append(item.element)
    return structs


# ------------------------------------------------------------------ values

Convert = Callable[[Any], Any]


def converter(schema: Schema) -> Convert | None:
    """Returns the function that converts a JSON value for expressions, or None if none is needed."""
    if schema.get("x-kubernetes-int-or-string"):
        return None
    match schema.get("type", ""):
        case "number":
            return _to_double
        case "integer":
            return _to_int
        case "string":
            return _STRING_CONVERTERS.get(schema.get("format", ""))
        case "array":
            return _list_converter(schema)
        case "object":
            return _object_converter(schema)
    return None


def _to_double(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def _to_int(value: Any) -> Any:
    return BadField("invalid data, expected int, got float64") if isinstance(value, float) else value


def _read(parse: Callable[[str], Any], what: str) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not str:
            return BadField(f"invalid data, expected string, got {_GO_TYPES[type(value)]}")
        try:
            return parse(value)
        except (CelError, ValueError) as error:
            return BadField(f"Invalid {what} {value}: {error}")

    return convert


_GO_TYPES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
_STRING_CONVERTERS: Final[dict[str, Convert]] = {
    "duration": _read(lambda text: Duration(nanoseconds(text)), "duration"),
    "date": _read(lambda text: to_timestamp(f"{text}T00:00:00Z"), "date formatted string"),
    "date-time": _read(to_timestamp, "date-time formatted string"),
    "byte": _read(lambda text: base64.b64decode(canonical_base64(text)), "byte formatted string"),
}


def _list_converter(schema: Schema) -> Convert | None:
    items = schema.get("items")
    each = converter(items) if isinstance(items, dict) else None
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return lambda value: value and SetList(value if each is None else map(each, value))
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())

            def convert(value: Any) -> Any:
                if value is None:
                    return None
                map_list = MapList(value if each is None else map(each, value))
                map_list.keys = keys
                return map_list

            return convert
    return None if each is None else lambda value: value and [each(item) for item in value]


def _object_converter(schema: Schema) -> Convert | None:
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        each = converter(others)
        return None if each is None else lambda value: value and {key: each(item) for key, item in value.items()}
    parts = {
        key: sub_convert
        for key, sub in (schema.get("properties") or {}).items()
        if (sub_convert := converter(sub)) is not None
    }
    # Integers need a look only where they are no integers.
    if not parts:
        return None

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return value
        changed = {key: part(value[key]) for key, part in parts.items() if value.get(key) is not None}
        return {**value, **changed}

    return convert
