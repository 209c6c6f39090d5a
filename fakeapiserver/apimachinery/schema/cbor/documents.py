"""Decodes CBOR documents by the Go types of built-in kinds: the same objects as from JSON, upstream's errors for mismatches, and
the rules that JSON doesn't have (a repeated key is always refused, bytes are bytes or base64).

Upstream: github.com/fxamacker/cbor/v2/decode.go, the UnmarshalCBOR methods of k8s.io/apimachinery and
k8s.io/apiextensions-apiserver.

    document = decode(data, definitions, "io.k8s.api.core.v1.Pod")
    document.obj, document.complaint      # the object as JSON has it, 'cbor: found unknown field at map element index 3'

Types are compiled once for each set of definitions, when they are first met.
"""

from functools import partial
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.quantity import canonical_quantity
from fakeapiserver.apimachinery.schema.cbor.values import (
    GoType,
    RawValue,
    TypedReader,
    integer_type,
    number_type,
    parsed_type,
    read_boolean,
    read_bytes,
    read_int_or_string,
    read_json,
    read_raw,
    read_value,
    takes_null,
    text_type,
)
from fakeapiserver.apimachinery.schema.go_types import (
    INT_OR_STRING,
    QUANTITY,
    element_of,
    expected_go_type,
    go_type_of,
    go_types_in,
)
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference
from fakeapiserver.apimachinery.schema.scalars import parse_micro_time, parse_time
from fakeapiserver.apimachinery.serializer.cbor.read import duplicate
from fakeapiserver.apimachinery.serializer.cbor.wire import (
    ARRAY,
    BYTES,
    MAP,
    NEGATIVE,
    TEXT,
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
# The first bytes of the items that some types look at.
_IS_FALSE, _IS_TRUE = 0xF4, 0xF5


class Document(NamedTuple):
    """The object, and what strict decoding has to say about it (empty: nothing)."""

    obj: dict[str, Any]
    complaint: str


def decode(data: bytes, definitions: Definitions, name: str, *, strict: bool = True) -> Document:
    """A whole document as an object of a definition; without `strict` nothing is complained of. DecodeError."""
    check_well_formed(data)
    compiled = _types(definitions).named(name)
    complaint = ""
    if strict:
        reader = TypedReader(data, strict=True)
        try:
            return Document(_object(reader, compiled), "")
        except UnknownField as error:
            complaint = str(error)
    return Document(_object(TypedReader(data, strict=False), compiled), complaint)


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


def _object(reader: TypedReader, compiled: "GoType") -> dict[str, Any]:
    obj = read_value(reader, compiled)
    # Null is an object without fields.
    return _transcoded(obj) if reader.raw_values else obj or {}


def _transcoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _transcoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_transcoded(item) for item in value]
    return value.json() if isinstance(value, RawValue) else value


# ------------------------------------------------------------------- structs


class _Struct:
    """A definition with properties; its fields are compiled with the first value."""

    def __init__(self, types: "_Types", name: str) -> None:
        self._types, self._name = types, name
        self._short = ".".join(name.rsplit(".", 2)[-2:])
        self._fields: dict[str, GoType] | None = None

    def read(self, reader: TypedReader) -> Any:
        major, _, _, _ = reader.head()
        if major == MAP:
            return self._map(reader)
        if takes_null(reader):
            return None
        detail = "cannot decode CBOR array to struct without toarray option" if major == ARRAY else ""
        raise reader.mismatch(self._short, detail)

    def _map(self, reader: TypedReader) -> dict[str, Any]:
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
                entries[key] = read_value(reader, field)
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


def _struct_key(reader: TypedReader) -> tuple[object, DecodeError | None]:
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


# --------------------------------------------------- types with UnmarshalCBOR


class _Types:
    """The types of one set of definitions."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self._named: dict[str, GoType] = {
            _META + "Time": parsed_type(parse_time),
            _META + "MicroTime": parsed_type(parse_micro_time),
            QUANTITY: parsed_type(canonical_quantity),
            INT_OR_STRING: GoType(read_int_or_string, custom=True),
            _FIELDS_V1: GoType(partial(read_raw, fields=True), custom=True),
            _RAW_EXTENSION: GoType(partial(read_raw, fields=False), custom=True),
            _API + "JSON": GoType(read_json, custom=True),
            _API + "JSONSchemaPropsOrBool": GoType(self._schema_or_bool, custom=True),
            _API + "JSONSchemaPropsOrArray": GoType(self._schema_or_array, custom=True),
            _API + "JSONSchemaPropsOrStringArray": GoType(self._schema_or_texts, custom=True),
        }

    def named(self, name: str) -> GoType:
        named = self._named.get(name)
        if named is None:
            named = self._named[name] = GoType(_Struct(self, name).read)
        return named

    def fields(self, name: str) -> dict[str, GoType]:
        schema, recorded = self.definitions[name], go_types_in(self.definitions).get(name, {})
        required = schema.get("required", ())
        return {
            key: self._field(prop, recorded.get(key) or expected_go_type(prop, key in required))
            for key, prop in schema.get("properties", {}).items()
        }

    def _field(self, schema: Schema, marked: str) -> GoType:
        marked = marked.partition(" @")[0]
        compiled = self._type(schema, marked.strip("*!~"))
        return GoType(compiled.read, pointer=True, custom=compiled.custom) if marked[0] == "*" else compiled

    def _type(self, schema: Schema, go_type: str) -> GoType:
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
            return GoType(read_bytes) if schema.get("format") == "byte" else text_type(go_type)
        if kind == "boolean":
            return GoType(read_boolean)
        if kind == "integer":
            return integer_type(go_type, schema.get("format", "int64"))
        return number_type(go_type) if kind == "number" else GoType(lambda reader: reader.any(), custom=True)

    def _schema_or_bool(self, reader: TypedReader) -> Any:
        raw = reader.raw()
        if raw[0] >> 5 == MAP:
            return self._json_schema(raw)
        if raw[0] in (_IS_TRUE, _IS_FALSE):
            return raw[0] == _IS_TRUE
        raise DecodeError("boolean or JSON schema expected")

    def _schema_or_array(self, reader: TypedReader) -> Any:
        raw = reader.raw()
        if raw[0] >> 5 == MAP:
            return self._json_schema(raw)
        if raw[0] >> 5 == ARRAY:
            schemas = _list_of(self.named(_JSON_SCHEMA), "[]v1.JSONSchemaProps")
            return read_value(TypedReader(raw, strict=True), schemas)
        return None

    def _schema_or_texts(self, reader: TypedReader) -> Any:
        raw = reader.raw()
        if raw[0] >> 5 == ARRAY:
            return read_value(TypedReader(raw, strict=True), _list_of(text_type("string"), "[]string"))
        return self._json_schema(raw) if raw[0] >> 5 == MAP else None

    def _json_schema(self, raw: bytes) -> Any:
        return read_value(TypedReader(raw, strict=True), self.named(_JSON_SCHEMA))


# The types of values that stay where they were when a map's next value is null.
_KEPT: Final = frozenset(("string", "integer", "boolean", "number"))


def _list_of(element: GoType, go_type: str) -> GoType:
    def read(reader: TypedReader) -> Any:
        if reader.data[reader.at] >> 5 == ARRAY:
            return reader.array(partial(read_value, reader, element))
        if takes_null(reader):
            return None
        raise reader.mismatch(go_type)

    return GoType(read)


def _map_of(element: GoType, go_type: str, *, keeps: bool) -> GoType:
    key_type = _KEY_TYPES.get(go_type) or go_type.removeprefix("map[").partition("]")[0]

    def read(reader: TypedReader) -> Any:
        if reader.data[reader.at] >> 5 == MAP:
            return reader.map(partial(read_value, reader, element), key_type, keeps=keeps)
        if takes_null(reader):
            return None
        raise reader.mismatch(go_type)

    return GoType(read)


# Compiled types by the identity of their definitions, which they keep alive.
_compiled: dict[int, _Types] = {}


def _types(definitions: Definitions) -> _Types:
    types = _compiled.get(id(definitions))
    if types is None:
        types = _compiled[id(definitions)] = _Types(definitions)
    return types
