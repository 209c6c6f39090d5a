"""Resources inside resources (x-kubernetes-embedded-resource): their type and metadata are those of every resource.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta/{coerce,algorithm,validation}.go
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.depth import Walk, flattened
from fakeapiserver.apimachinery.field import Error, ErrorList, Path, invalid, required
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.schema.validate_value import sorted_value

# Makes metadata what Go's ObjectMeta makes of it, in place; answers `unknown field "foo"` texts, ValueError in Go's words.
DecodeMetadata = Callable[[dict[str, Any]], list[str]]

_NO_SCHEMA: Final[Schema] = {}


class Malformed(ValueError):
    """An embedded resource that can't be decoded."""

    def __init__(self, error: Error) -> None:
        super().__init__(str(error))
        self.error = error


def has_embedded(schema: Schema) -> bool:
    """Reports whether there may be a resource somewhere below a value of the schema."""
    return bool(schema.get("x-kubernetes-embedded-resource")) or any(map(has_embedded, _inner(schema)))


def _inner(schema: Schema) -> Iterator[Schema]:
    yield from schema.get("properties", _NO_SCHEMA).values()
    for key in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(key), dict):
            yield inner


def coerce(value: Any, schema: Schema, decode: DecodeMetadata, path: Path) -> list[str]:
    """Decodes the metadata of each embedded resource below a value, in place; returns the paths of dropped unknown fields.

    Raises Malformed for invalid metadata or types.
    """
    unknown: list[str] = []
    for resource, at in flattened(_resources(value, schema, path)):
        unknown += _coerce_resource(resource, decode, at)
    return unknown


def _resources(value: Any, schema: Schema, path: Path) -> Walk[tuple[dict[str, Any], Path]]:
    """Every embedded resource below a value, the outer before the inner."""
    if isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource"):
            yield value, path
        for key, item, inner in _fields(value, schema):
            at = path.child(key) if key in schema.get("properties", _NO_SCHEMA) else path.key(key)
            yield _resources(item, inner, at)
    elif isinstance(value, list) and (items := schema.get("items")):
        for i, item in enumerate(value):
            yield _resources(item, items, path.index(i))


def _fields(value: dict[str, Any], schema: Schema) -> Iterator[tuple[str, Any, Schema]]:
    """The fields of an object that have a schema and something in them."""
    properties, others = schema.get("properties", _NO_SCHEMA), schema.get("additionalProperties")
    for key, item in value.items():
        inner = properties.get(key, others)
        if isinstance(item, dict | list) and isinstance(inner, dict):
            yield key, item, inner


def _coerce_resource(value: dict[str, Any], decode: DecodeMetadata, path: Path) -> list[str]:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            raise Malformed(invalid(path.child(key), sorted_value(value[key]), "must be a string"))
    if "metadata" not in value:
        return []
    at, embedded_meta = path.child("metadata"), value["metadata"]
    meta = {} if embedded_meta is None else embedded_meta
    try:
        if not isinstance(meta, dict):
            raise ValueError(f"json: cannot unmarshal {_go_kind(embedded_meta)} into Go value of type v1.ObjectMeta")
        meta = _written_anew(meta)
        unknown = decode(meta)
    except ValueError as error:
        raise Malformed(invalid(at, sorted_value(embedded_meta), str(error))) from None
    value["metadata"] = meta
    return [f"{at}.{text[len('unknown field ') :].strip(chr(34))}" for text in unknown]


def _written_anew(value: Any) -> Any:
    """A copy with the numbers that JSON makes of Go's floats: 1.0 is 1."""
    if isinstance(value, dict):
        return {key: _written_anew(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_written_anew(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


def _go_kind(value: Any) -> str:
    kinds = {str: "string", bool: "bool", list: "array"}
    return kinds.get(type(value), "number")


def validate_embedded(value: Any, schema: Schema, decode: DecodeMetadata, path: Path) -> ErrorList:
    """Returns the errors in the type and metadata of each embedded resource below a value."""
    errors: ErrorList = []
    for resource, at in flattened(_resources(value, schema, path)):
        errors += _validate_resource(resource, decode, at)
    return errors


def _validate_resource(value: dict[str, Any], decode: DecodeMetadata, path: Path) -> ErrorList:
    errors: ErrorList = [required(path.child(key)) for key in ("apiVersion", "kind") if key not in value]
    for key in ("apiVersion", "kind"):
        if key in value:
            errors += _validate_type(key, value[key], path.child(key))
    if "metadata" not in value:
        return errors
    meta = dict(value["metadata"]) if isinstance(value["metadata"], dict) else {}
    try:
        decode(meta)
    except ValueError as error:
        return [*errors, invalid(path.child("metadata"), value["metadata"], str(error))]
    # A name isn't asked for.
    meta = {**meta, "name": meta.get("name") or "fakename"}
    namespaced = bool(meta.get("namespace"))
    return errors + names.validate_object_meta(meta, namespaced, names.path_segment_name, path.child("metadata"))


def _validate_type(key: str, text: Any, path: Path) -> ErrorList:
    if not isinstance(text, str):
        return [invalid(path, sorted_value(text), "must be a string")]
    if not text:
        return [invalid(path, text, "must not be empty")]
    if key == "kind":
        complaints = names.is_dns1035_label(text.lower())
        detail = "may have mixed case, but should otherwise match: " + ",".join(complaints)
        return [invalid(path, text, detail)] if complaints else []
    try:
        GroupVersion.parse(text)
    except ValueError as error:
        return [invalid(path, text, str(error))]
    return []
