"""Converts a map to Go's structs without JSON in between, as upstream does with the result of a strategic merge patch.

Upstream: k8s.io/apimachinery/pkg/runtime/converter.go (fromUnstructured).

Differs from decoding JSON in its words, and in that whole floats are integers and integers too large for an int32
lose their upper bits.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import to_int64
from fakeapiserver.apimachinery.schema.builtin import RAW, DecodeError, compile_builtin
from fakeapiserver.apimachinery.schema.go_types import element_of, expected_go_type, go_type_of, go_types_in
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference
from fakeapiserver.apimachinery.schema.scalars import canonical_base64

# A definition's fields as Go goes through its struct; empty for the order that they are recorded in.
FieldOrder = Callable[[str], Sequence[str]]

_AS_RECORDED: Final[FieldOrder] = lambda name: ()  # noqa: E731
_KINDS: Final = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
_SCALARS: Final = {"string": "string", "boolean": "bool", "number": "float64"}


def restore(obj: dict[str, Any], name: str, definitions: Definitions, order: FieldOrder) -> None:
    """Brings the values of a definition's object, in place, to what Go's fields hold. DecodeError for the first, in the `order`
    of a definition's fields, that can't be."""
    try:
        obj.update(_struct(obj, name, definitions, _AS_RECORDED))
    except DecodeError:
        _struct(obj, name, definitions, order)
        raise


def _struct(value: Any, name: str, definitions: Definitions, order: FieldOrder) -> Any:
    schema = definitions[name]
    if not _is_struct(schema, name) or schema.get("x-kubernetes-int-or-string"):
        return _custom(value, name, definitions)
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore struct from: {_KINDS[type(value)]}")
    recorded, required = go_types_in(definitions).get(name, {}), schema.get("required", ())
    out = dict(value)
    properties = schema.get("properties", {})
    for key in order(name) or properties:
        field = properties.get(key)
        if field is not None and value.get(key) is not None:
            marked = recorded.get(key) or expected_go_type(field, key in required)
            out[key] = _value(value[key], field, marked.partition(" @")[0].strip("*!~"), definitions, order)
    return out


def _is_struct(schema: Schema, name: str) -> bool:
    """Some structs have no fields."""
    return "properties" in schema or (schema.get("type") == "object" and name not in RAW)


def _custom(value: Any, name: str, definitions: Definitions) -> Any:
    """A type with an UnmarshalJSON of its own."""
    compile_builtin(definitions, name).check(value)
    return value


def _value(value: Any, schema: Schema, go_type: str, definitions: Definitions, order: FieldOrder) -> Any:
    if value is None:
        return None
    if name := reference(schema):
        return _struct(value, name, definitions, order)
    kind = schema.get("type", "")
    if kind == "array":
        if not isinstance(value, list):
            raise DecodeError(f"cannot restore slice from {_KINDS[type(value)]}")
        items = schema["items"]
        inner = element_of(go_type, "[]") or go_type_of(items)
        return [_value(item, items, inner, definitions, order) for item in value]
    if kind == "object" and "additionalProperties" in schema:
        if not isinstance(value, dict):
            raise DecodeError(f"cannot restore map from {_KINDS[type(value)]}")
        values = schema["additionalProperties"]
        inner = element_of(go_type, "]") or go_type_of(values)
        return {key: _value(item, values, inner, definitions, order) for key, item in value.items()}
    if kind == "integer":
        return _integer(value, schema.get("format", "int64"), go_type)
    if schema.get("format") == "byte":
        return _bytes(value)
    if kind not in _SCALARS:
        return value
    return _scalar(value, _SCALARS[kind], go_type)


def _bytes(value: Any) -> Any:
    """Base64, or a list of numbers as any Go slice."""
    if isinstance(value, str):
        try:
            canonical_base64(value)
        except ValueError as error:
            raise DecodeError(f"error decoding from json: {error}") from None
    elif not isinstance(value, list):
        raise DecodeError(f"cannot restore slice from {_KINDS[type(value)]}")
    return value


def _integer(value: Any, size: str, go_type: str) -> int:
    if type(value) is float:
        if value != value // 1:
            raise DecodeError(f"cannot convert float64 to {go_type}")
        value = to_int64(value)
    if type(value) is not int:
        raise DecodeError(f"unrecognized type: {size}")
    half = 1 << (31 if size == "int32" else 63)
    return (value + half) % (2 * half) - half


def _scalar(value: Any, kind: str, go_type: str) -> Any:
    scalar_kind = _KINDS[type(value)]
    if scalar_kind == kind or (kind == "float64" and scalar_kind == "int64"):
        return value
    if kind == "string" and scalar_kind == "int64":
        raise DecodeError(f"cannot convert int64 to {go_type}")
    raise DecodeError(f"unrecognized type: {kind}")
