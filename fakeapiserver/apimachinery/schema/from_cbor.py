"""Decodes CBOR documents by the Go types of built-in kinds: the same objects as from JSON, upstream's errors for mismatches, and
the rules that JSON doesn't have (a repeated key is always refused, bytes are bytes or base64).

Upstream: github.com/fxamacker/cbor/v2/decode.go, the UnmarshalCBOR methods of k8s.io/apimachinery and
k8s.io/apiextensions-apiserver.

    document = decode(data, definitions, "io.k8s.api.core.v1.Pod")
    document.obj, document.complaint      # the object as JSON has it, 'cbor: found unknown field at map element index 3'

Types are compiled once for each set of definitions, when they are first met.
"""

import base64
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.quantity import canonical_quantity
from fakeapiserver.apimachinery.schema.go_types import (
    INT_OR_STRING,
    QUANTITY,
    element_of,
    expected_go_type,
    go_type_of,
    go_types_in,
)
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference
from fakeapiserver.apimachinery.schema.scalars import canonical_base64, parse_micro_time, parse_time
from fakeapiserver.apimachinery.serializer.cbor.read import Reader, decode_map, duplicate
from fakeapiserver.apimachinery.serializer.cbor.wire import (
    ARRAY,
    BYTES,
    FALSE,
    FLOAT_FORMATS,
    MAP,
    NEGATIVE,
    NULL,
    PRIMITIVE,
    TAG,
    TEXT,
    TRUE,
    TYPE_NAMES,
    UNSIGNED,
    DecodeError,
    Mismatch,
    UnknownField,
    check_well_formed,
)

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_API: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_FIELDS_V1: Final = _META + "FieldsV1"
_JSON_SCHEMA: Final = _API + "JSONSchemaProps"
# Named map types and the types of their keys.
_KEY_TYPES: Final = {"v1.ResourceList": "v1.ResourceName"}
_TYPE_META: Final[Definitions] = {
    "v1.TypeMeta": {"properties": {"kind": {"type": "string"}, "apiVersion": {"type": "string"}}}
}
_INT32: Final = 2**31 - 1
# The first bytes of the items that some types look at.
_IS_NULL, _IS_FALSE, _IS_TRUE = 0xF6, 0xF4, 0xF5
_FIELDS_FIRST: Final = frozenset((*range(0xA0, 0xC0), *range(0xC6, 0xDC)))


class Document(NamedTuple):
    """The object, and what strict decoding has to say about it (empty: nothing)."""

    obj: dict[str, Any]
    complaint: str


class _TypedReader(Reader):
    """`strict`: unknown fields end a struct. `raw` are values kept as they are until everything else is read."""

    __slots__ = ("raw_values", "strict")

    def __init__(self, data: bytes, *, strict: bool) -> None:
        super().__init__(data)
        self.strict = strict
        self.raw_values: list[_Raw] = []


class _Raw:
    """A value of any type. Its bytes become JSON when the object around them is whole."""

    def __init__(self, data: bytes, *, fields: bool) -> None:
        self.data, self._fields = data, fields

    def json(self) -> Any:
        """DecodeError in the words of upstream's transcoding."""
        try:
            if not self._fields:
                return _as_any(self.data)
            # Upstream keeps what neither is a map nor tagged, which is no set of fields in any encoding.
            return decode_map(self.data) if self.data[0] in _FIELDS_FIRST else []
        except DecodeError as error:
            raise DecodeError(
                f"failed to transcode FieldsV1 to JSON: metav1.FieldsV1 cbor invalid: {error}"
                if self._fields
                else f"failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR: {error}"
            ) from None


Read = Callable[[_TypedReader], Any]


def decode(data: bytes, definitions: Definitions, name: str, *, strict: bool = True) -> Document:
    """A whole document as an object of a definition; without `strict` nothing is complained of. DecodeError."""
    check_well_formed(data)
    compiled = _types(definitions).named(name)
    complaint = ""
    if strict:
        reader = _TypedReader(data, strict=True)
        try:
            return Document(_object(reader, compiled), "")
        except UnknownField as error:
            complaint = str(error)
    return Document(_object(_TypedReader(data, strict=False), compiled), complaint)


def type_meta(data: bytes) -> dict[str, str]:
    """The kind and apiVersion that a document names, as far as it does; none of both where the version is no version. DecodeError,
    the document's own ones too."""
    try:
        obj = decode(data, _TYPE_META, "v1.TypeMeta", strict=False).obj
    except DecodeError as error:
        raise DecodeError(f"unable to determine group/version/kind: {error}") from None
    try:
        GroupVersion.parse(obj.get("apiVersion") or "")
    except ValueError:
        return {}
    return {key: value for key, value in obj.items() if value}


def _object(reader: _TypedReader, compiled: "_Type") -> dict[str, Any]:
    obj = _value(reader, compiled)
    # Null is an object without fields.
    return _transcoded(obj) if reader.raw_values else obj or {}


def _transcoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _transcoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_transcoded(item) for item in value]
    return value.json() if isinstance(value, _Raw) else value


class _Type(Struct):
    """A Go type: `read` takes the next item, whose tags were checked. `pointer`: null and undefined are nil, without a look at the
    type. `custom`: an UnmarshalCBOR of its own, which gets the item with its tags."""

    read: Read
    pointer: bool = False
    custom: bool = False


def _value(reader: _TypedReader, wanted: _Type) -> Any:
    if wanted.pointer and reader.is_null():
        reader.skip()
        return None
    reader.enter()
    if reader.data[reader.at] >> 5 == TAG and not wanted.custom:
        return reader.tagged(lambda: wanted.read(reader))
    return wanted.read(reader)


def _is_null(reader: _TypedReader) -> bool:
    """Passes a null: Go leaves what is there. Undefined is refused."""
    if reader.data[reader.at] == _IS_NULL:
        reader.at += 1
        return True
    return False


# ------------------------------------------------------------------- structs


class _Struct:
    """A definition with properties; its fields are compiled with the first value."""

    def __init__(self, types: "_Types", name: str) -> None:
        self._types, self._name = types, name
        self._short = ".".join(name.rsplit(".", 2)[-2:])
        self._fields: dict[str, _Type] | None = None

    def read(self, reader: _TypedReader) -> Any:
        major, _, _, _ = reader.head()
        if major == MAP:
            return self._map(reader)
        if _is_null(reader):
            return None
        detail = "cannot decode CBOR array to struct without toarray option" if major == ARRAY else ""
        raise reader.mismatch(self._short, detail)

    def _map(self, reader: _TypedReader) -> dict[str, Any]:
        if self._fields is None:
            self._fields = self._types.fields(self._name)
        entries: dict[str, Any] = {}
        unknown: set[tuple[type, object]] = set()
        first: DecodeError | None = None
        members = reader.members()
        for index, _ in enumerate(members):
            at = reader.at
            try:
                key, problem = _struct_key(reader)
            except DecodeError as error:
                first = first or error
                reader.pass_item(at)
                reader.skip()
                continue
            first = first or problem
            field = self._fields.get(key) if isinstance(key, str) else None
            if field is None:
                if reader.strict:
                    reader.to_end(members, value_pending=True)
                    raise UnknownField(f"cbor: found unknown field at map element index {index}")
                if key is _UNHASHABLE:
                    reader.skip()
                    continue
                if (type(key), key) in unknown:
                    reader.to_end(members, value_pending=True)
                    raise duplicate(key, index)
                unknown.add((type(key), key))
                reader.skip()
                continue
            assert isinstance(key, str)
            if key in entries:
                reader.to_end(members, value_pending=True)
                raise duplicate(key, index)
            at, entries[key] = reader.at, None
            try:
                entries[key] = _value(reader, field)
            except DecodeError as error:
                if first is None:
                    if isinstance(error, Mismatch):
                        error.struct_field = f"{self._short}.{key}"
                    first = error
                reader.pass_item(at)
        if first is not None:
            raise first
        return entries


# A key that no Go map can have; it is looked at no further.
_UNHASHABLE: Final = object()


def _struct_key(reader: _TypedReader) -> tuple[object, DecodeError | None]:
    """A key where a struct's fields are named, and what is wrong with its type. DecodeError where the pair is left alone."""
    major, _, argument, at = reader.head()
    if major in (TEXT, BYTES):
        later, reader.later = reader.later, 0
        try:
            return reader.string(), None
        finally:
            reader.later = later
    if major in (UNSIGNED, NEGATIVE):
        reader.at = at
        if major == NEGATIVE and argument >= 2**63:
            raise Mismatch(TYPE_NAMES[major], "int64", f"-1-{argument} overflows Go's int64")
        value = argument if major == UNSIGNED else -1 - argument
        return (value + 2**63) % 2**64 - 2**63, None
    detail = f"map key is of type {TYPE_NAMES[major]} and cannot be used to match struct field name"
    problem = Mismatch(TYPE_NAMES[major], "string", detail)
    start = reader.at
    try:
        key = reader.any()
    except DecodeError:
        reader.at = start
        raise problem from None
    return (_UNHASHABLE if isinstance(key, dict | list) else key), problem


# ------------------------------------------------------------------- scalars


def _text(go_type: str) -> _Type:
    return _Type(lambda reader: reader.text(go_type))


def _boolean(reader: _TypedReader) -> Any:
    major, info, _, at = reader.head()
    if major == PRIMITIVE and info in (FALSE, TRUE, NULL):
        reader.at = at
        return None if info == NULL else info == TRUE
    raise reader.mismatch("bool")


def _integer(go_type: str, size: str) -> _Type:
    limit = _INT32 if size == "int32" else 2**63 - 1

    def read(reader: _TypedReader) -> Any:
        major, _, _, _ = reader.head()
        if major in (UNSIGNED, NEGATIVE):
            return reader.integer(go_type, limit, go_type)
        if _is_null(reader):
            return None
        raise reader.mismatch(go_type)

    return _Type(read)


def _number(go_type: str) -> _Type:
    def read(reader: _TypedReader) -> Any:
        major, info, argument, _ = reader.head()
        if major == UNSIGNED or (major == NEGATIVE and argument < 2**63):
            reader.skip()
            return float(argument if major == UNSIGNED else -1 - argument)
        if major == NEGATIVE:
            return reader.integer(go_type)
        if major == PRIMITIVE and (info in FLOAT_FORMATS or info == NULL):
            return reader.any()
        raise reader.mismatch(go_type)

    return _Type(read)


def _bytes(reader: _TypedReader) -> Any:
    """Decodes a []byte to base64, as JSON has it.

    A byte string with a tag for binary data holds the bytes, another one their base64.
    """
    major, _, _, _ = reader.head()
    if major == BYTES:
        raw = reader.content()
        if reader.later:
            return base64.b64encode(raw).decode()
        try:
            return canonical_base64(raw.decode("latin-1"))
        except ValueError as error:
            raise DecodeError(f"cbor: failed to decode base64 from byte string: {error}") from None
    if major == ARRAY:
        return base64.b64encode(bytes(item or 0 for item in reader.array(partial(_value, reader, _BYTE)))).decode()
    if _is_null(reader):
        return None
    raise reader.mismatch("[]uint8")


def _byte(reader: _TypedReader) -> Any:
    major, _, argument, _ = reader.head()
    if major == UNSIGNED:
        reader.skip()
        if argument > 255:
            raise Mismatch(TYPE_NAMES[major], "uint8", f"{argument} overflows uint8")
        return argument
    if _is_null(reader):
        return None
    raise reader.mismatch("uint8")


_BYTE: Final = _Type(_byte)
_STRING: Final = _Type(lambda reader: reader.text("string"), pointer=True)


# --------------------------------------------------- types with UnmarshalCBOR


def _inner(reader: _TypedReader, wanted: _Type) -> Any:
    """Decodes an item by a type's own Unmarshal: a reading of its own, and a strict one."""
    return _value(_TypedReader(reader.raw(), strict=True), wanted)


def _parsed(parse: Callable[[str], str]) -> _Type:
    """A time or a quantity, which takes texts only."""

    def read(reader: _TypedReader) -> Any:
        text = _inner(reader, _STRING)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise DecodeError(str(error)) from None

    return _Type(read, custom=True)


def _int_or_string(reader: _TypedReader) -> Any:
    raw = reader.raw()
    try:
        text = _value(_TypedReader(raw, strict=True), _text("string"))
    except DecodeError:
        return _value(_TypedReader(raw, strict=True), _integer("int32", "int32"))
    # A null fits a text, which stays empty.
    return text or ""


def _raw(reader: _TypedReader, *, fields: bool) -> Any:
    raw = reader.raw()
    if raw[0] == _IS_NULL:
        return None
    raw_value = _Raw(raw, fields=fields)
    reader.raw_values.append(raw_value)
    return raw_value


def _json(reader: _TypedReader) -> Any:
    return _as_any(reader.raw())


def _as_any(raw: bytes) -> Any:
    return Reader(raw).any()


class _Types:
    """The types of one set of definitions."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self._named: dict[str, _Type] = {
            _META + "Time": _parsed(parse_time),
            _META + "MicroTime": _parsed(parse_micro_time),
            QUANTITY: _parsed(canonical_quantity),
            INT_OR_STRING: _Type(_int_or_string, custom=True),
            _FIELDS_V1: _Type(partial(_raw, fields=True), custom=True),
            _RAW_EXTENSION: _Type(partial(_raw, fields=False), custom=True),
            _API + "JSON": _Type(_json, custom=True),
            _API + "JSONSchemaPropsOrBool": _Type(self._schema_or_bool, custom=True),
            _API + "JSONSchemaPropsOrArray": _Type(self._schema_or_array, custom=True),
            _API + "JSONSchemaPropsOrStringArray": _Type(self._schema_or_texts, custom=True),
        }

    def named(self, name: str) -> _Type:
        named = self._named.get(name)
        if named is None:
            named = self._named[name] = _Type(_Struct(self, name).read)
        return named

    def fields(self, name: str) -> dict[str, _Type]:
        schema, recorded = self.definitions[name], go_types_in(self.definitions).get(name, {})
        required = schema.get("required", ())
        return {
            key: self._field(prop, recorded.get(key) or expected_go_type(prop, key in required))
            for key, prop in schema.get("properties", {}).items()
        }

    def _field(self, schema: Schema, marked: str) -> _Type:
        marked = marked.partition(" @")[0]
        compiled = self._type(schema, marked.strip("*!~"))
        return _Type(compiled.read, pointer=True, custom=compiled.custom) if marked[0] == "*" else compiled

    def _type(self, schema: Schema, go_type: str) -> _Type:
        if name := reference(schema):
            return self.named(name)
        kind = schema.get("type", "")
        if kind == "array":
            items = schema["items"]
            return _list_of(self._type(items, element_of(go_type, "[]") or go_type_of(items)), go_type)
        if kind == "object" and "additionalProperties" in schema:
            values = schema["additionalProperties"]
            element = self._type(values, element_of(go_type, "]") or go_type_of(values))
            return _map_of(element, go_type, keeps=values.get("type") in _KEPT and values.get("format") != "byte")
        if kind == "string":
            return _Type(_bytes) if schema.get("format") == "byte" else _text(go_type)
        if kind == "boolean":
            return _Type(_boolean)
        if kind == "integer":
            return _integer(go_type, schema.get("format", "int64"))
        return _number(go_type) if kind == "number" else _Type(lambda reader: reader.any(), custom=True)

    def _schema_or_bool(self, reader: _TypedReader) -> Any:
        raw = reader.raw()
        if raw[0] >> 5 == MAP:
            return self._json_schema(raw)
        if raw[0] in (_IS_TRUE, _IS_FALSE):
            return raw[0] == _IS_TRUE
        raise DecodeError("boolean or JSON schema expected")

    def _schema_or_array(self, reader: _TypedReader) -> Any:
        raw = reader.raw()
        if raw[0] >> 5 == MAP:
            return self._json_schema(raw)
        if raw[0] >> 5 == ARRAY:
            schemas = _list_of(self.named(_JSON_SCHEMA), "[]v1.JSONSchemaProps")
            return _value(_TypedReader(raw, strict=True), schemas)
        return None

    def _schema_or_texts(self, reader: _TypedReader) -> Any:
        raw = reader.raw()
        if raw[0] >> 5 == ARRAY:
            return _value(_TypedReader(raw, strict=True), _list_of(_text("string"), "[]string"))
        return self._json_schema(raw) if raw[0] >> 5 == MAP else None

    def _json_schema(self, raw: bytes) -> Any:
        return _value(_TypedReader(raw, strict=True), self.named(_JSON_SCHEMA))


# The types of values that stay where they were when a map's next value is null.
_KEPT: Final = frozenset(("string", "integer", "boolean", "number"))


def _list_of(element: _Type, go_type: str) -> _Type:
    def read(reader: _TypedReader) -> Any:
        if reader.data[reader.at] >> 5 == ARRAY:
            return reader.array(partial(_value, reader, element))
        if _is_null(reader):
            return None
        raise reader.mismatch(go_type)

    return _Type(read)


def _map_of(element: _Type, go_type: str, *, keeps: bool) -> _Type:
    key_type = _KEY_TYPES.get(go_type) or go_type.removeprefix("map[").partition("]")[0]

    def read(reader: _TypedReader) -> Any:
        if reader.data[reader.at] >> 5 == MAP:
            return reader.map(partial(_value, reader, element), key_type, keeps=keeps)
        if _is_null(reader):
            return None
        raise reader.mismatch(go_type)

    return _Type(read)


# Compiled types by the identity of their definitions, which they keep alive.
_compiled: dict[int, _Types] = {}


def _types(definitions: Definitions) -> _Types:
    types = _compiled.get(id(definitions))
    if types is None:
        types = _compiled[id(definitions)] = _Types(definitions)
    return types


# ---------------------------------------------------------------- the way back


class Shape:
    """The places in a definition's objects where texts are bytes and whole numbers floats.

    None for types without either.
    """

    def __init__(self, *, is_bytes: bool = False, is_float: bool = False) -> None:
        self.is_bytes, self.is_float = is_bytes, is_float
        self.fields: Mapping[str, Shape] = {}
        self.values: Shape | None = None


def shape_of(definitions: Definitions, name: str) -> Shape | None:
    """The shape of a definition's objects."""
    return _Shapes(definitions).named(name)


def list_shape(item: Shape | None) -> Shape | None:
    """The shape of a list's document."""
    if item is None:
        return None
    items, list_shape = Shape(), Shape()
    items.values, list_shape.fields = item, {"items": items}
    return list_shape


class _Shapes:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._named: dict[str, Shape | None] = {}

    def named(self, name: str) -> Shape | None:
        if name not in self._named:
            struct_shape = self._named[name] = Shape()
            properties = self._definitions[name].get("properties", {})
            inner = {key: self._schema(prop) for key, prop in properties.items()}
            struct_shape.fields = {key: shape for key, shape in inner.items() if shape is not None}
            if not struct_shape.fields:
                self._named[name] = None
        return self._named[name]

    def _schema(self, schema: Schema) -> Shape | None:
        if name := reference(schema):
            return self.named(name)
        kind = schema.get("type", "")
        if kind == "string" and schema.get("format") == "byte":
            return Shape(is_bytes=True)
        if kind == "number":
            return Shape(is_float=True)
        values = schema.get("items") if kind == "array" else schema.get("additionalProperties")
        inner = self._schema(values) if isinstance(values, dict) else None
        if inner is None:
            return None
        shape = Shape()
        shape.values = inner
        return shape
