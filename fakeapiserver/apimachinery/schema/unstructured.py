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

_KINDS: Final = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
_SCALARS: Final = {"string": "string", "boolean": "bool", "number": "float64"}


def restore(obj: dict[str, Any], name: str, definitions: Definitions, order: FieldOrder) -> None:
    """Brings the values of a definition's object, in place, to what Go's fields hold. DecodeError for the first, in the `order`
    of a definition's fields, that can't be."""
    struct = _structs(definitions).of(name)
    try:
        obj.update(struct(obj, None))
    except DecodeError:
        struct(obj, order)
        raise


# Returns what Go's field of a certain type holds of a value other than None. Raises DecodeError; without an order, any one.
_Restore = Callable[[Any, FieldOrder | None], Any]


class _Structs:
    """Functions that restore the definitions' types, each made when first needed."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._known: dict[str, _Restore] = {}

    def of(self, name: str) -> _Restore:
        """Returns the function that restores a definition's type."""
        known = self._known.get(name)
        if known is None:
            schema = self._definitions[name]
            is_custom = not _is_struct(schema, name) or schema.get("x-kubernetes-int-or-string")
            known = self._known[name] = self._custom(name) if is_custom else self._struct(name, schema)
        return known

    def _custom(self, name: str) -> _Restore:
        """A type with an UnmarshalJSON of its own."""
        check = compile_builtin(self._definitions, name).check

        def restore_custom(value: Any, order: FieldOrder | None) -> Any:
            check(value)
            return value

        return restore_custom

    def _struct(self, name: str, schema: Schema) -> _Restore:
        recorded, required = go_types_in(self._definitions).get(name, {}), schema.get("required", ())
        properties: dict[str, Schema] = schema.get("properties", {})
        fields: dict[str, _Restore] = {}

        def field_of(key: str) -> _Restore:
            marked = recorded.get(key) or expected_go_type(properties[key], key in required)
            fields[key] = self._value(properties[key], marked.partition(" @")[0].strip("*!~"))
            return fields[key]

        def restore_struct(value: Any, order: FieldOrder | None) -> Any:
            if not isinstance(value, dict):
                raise DecodeError(f"cannot restore struct from: {_KINDS[type(value)]}")
            out = dict(value)
            for key in value if order is None else order(name) or properties:
                item = value.get(key)
                if item is not None and key in properties:
                    out[key] = (fields.get(key) or field_of(key))(item, order)
            return out

        return restore_struct

    def _value(self, schema: Schema, go_type: str) -> _Restore:
        if name := reference(schema):
            return lambda value, order: self.of(name)(value, order)  # noqa: PLW0108 - definitions may contain themselves
        kind = schema.get("type", "")
        if kind == "array":
            items = schema["items"]
            return _list(self._value(items, element_of(go_type, "[]") or go_type_of(items)))
        if kind == "object" and "additionalProperties" in schema:
            values = schema["additionalProperties"]
            return _map(self._value(values, element_of(go_type, "]") or go_type_of(values)))
        if kind == "integer":
            size = schema.get("format", "int64")
            return lambda value, order: _integer(value, size, go_type)
        if schema.get("format") == "byte":
            return lambda value, order: _bytes(value)
        if kind not in _SCALARS:
            return lambda value, order: value
        scalar = _SCALARS[kind]
        return lambda value, order: _scalar(value, scalar, go_type)


# By the identity of their definitions, which they keep alive.
_known_structs: dict[int, _Structs] = {}


def _structs(definitions: Definitions) -> _Structs:
    structs = _known_structs.get(id(definitions))
    if structs is None:
        structs = _known_structs[id(definitions)] = _Structs(definitions)
    return structs


def _is_struct(schema: Schema, name: str) -> bool:
    """Some structs have no fields."""
    return "properties" in schema or (schema.get("type") == "object" and name not in RAW)


def _list(restore_item: _Restore) -> _Restore:
    def restore_list(value: Any, order: FieldOrder | None) -> Any:
        if not isinstance(value, list):
            raise DecodeError(f"cannot restore slice from {_KINDS[type(value)]}")
        return [None if item is None else restore_item(item, order) for item in value]

    return restore_list


def _map(restore_item: _Restore) -> _Restore:
    def restore_map(value: Any, order: FieldOrder | None) -> Any:
        if not isinstance(value, dict):
            raise DecodeError(f"cannot restore map from {_KINDS[type(value)]}")
        return {key: None if item is None else restore_item(item, order) for key, item in value.items()}

    return restore_map


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
