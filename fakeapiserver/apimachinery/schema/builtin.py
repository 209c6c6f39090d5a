"""Strict decoding of built-in kinds: the conversion of a body by Go's types, with its warnings.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/json/json.go, sigs.k8s.io/json (a fork of encoding/json).

A kind's definition is compiled once, on first use, into decoders that walk the body in its own order, because Go
reports the first mismatch and the unknown fields in that order. What OpenAPI does not know of Go's types is recorded
in go_types.json, or
stands beside a property as `x-go-type` where definitions are this package's own.

    pod = compile_builtin(definitions, "io.k8s.api.core.v1.Pod")
    pod.decode({"spec": {"foo": 1}})      # ['unknown field "spec.foo"']
    pod.decode({"spec": 1})               # DecodeError: json: cannot unmarshal number into Go struct field Pod.spec
    of type v1.PodSpec
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.schema.decoders import (
    DecodeError,
    Decoder,
    Empties,
    GoType,
    State,
    decode_bytes,
    decode_int_or_string,
    decode_quantity,
    integer,
    list_of,
    map_of,
    nothing,
    number,
    scalar,
    schema_or,
    timestamp,
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
from fakeapiserver.apimachinery.schema.static_default import StaticDefaults
from fakeapiserver.apimachinery.serializer.go_json import Repeated

__all__ = ["BuiltinType", "DecodeError", "compile_builtin"]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_API: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
# Types that keep whatever JSON they are given.
RAW: Final = (_META + "FieldsV1", "io.k8s.apimachinery.pkg.runtime.RawExtension", _API + "JSON")
# Lists whose defaults distinguish empty from absent, and which are never stored empty.
_TOLD_EMPTY: Final = frozenset({("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies")})
_TIMES: Final = (_META + "Time", _META + "MicroTime")
_SCHEMA_OR: Final = ("Bool", "Array", "StringArray")


class _Field(Struct, frozen=True):
    decode: Decoder
    plain: type | None
    null: Callable[[], Any]
    keep_empty: bool
    # A pointer to Go's zero time is shown as null, which isn't none.
    keep_null: bool
    always: bool
    omit_zero: bool
    embedded: str
    add: Callable[[Any, Any], Any]


class _Struct:
    """A definition with properties; its fields are compiled when the first value arrives."""

    __slots__ = ("_always", "_compiler", "_fields", "_name", "_short")

    def __init__(self, compiler: "_Compiler", name: str) -> None:
        self._compiler, self._name, self._short = compiler, name, name.rpartition(".")[2]
        self._fields: dict[str, _Field] | None = None
        self._always: list[tuple[str, _Field]] = []

    def zero(self) -> dict[str, Any]:
        return self._complete({})

    def _complete(self, out: dict[str, Any]) -> dict[str, Any]:
        if self._fields is None:
            self._compile()
        for key, field in self._always:
            if key not in out:
                out[key] = field.null()
        return out

    def _compile(self) -> dict[str, _Field]:
        self._fields = self._compiler.fields(self._name)
        self._always = [(k, f) for k, f in self._fields.items() if f.always]
        return self._fields

    def decode(self, value: Any, state: State) -> Any:
        if value.__class__ is not dict:
            return self._decode_rare(value, state)
        fields = self._fields or self._compile()
        out: dict[str, Any] = {}
        outer = state.struct
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                state.unknown_field(key)
            elif type(item) is field.plain:
                if item or field.keep_empty:
                    out[key] = item
            else:
                state.struct = self._short
                _store(out, key, item, field, state)
                state.struct = outer
        return self._complete(out)

    def _decode_rare(self, value: Any, state: State) -> Any:
        if not isinstance(value, dict):
            if value is not None:
                state.save(value, ".".join(self._name.rsplit(".", 2)[1:]))
            return self.zero()
        if not isinstance(value, Repeated):
            return self.decode(dict(value), state)
        if state.repeats == "in the text's order":
            for key, item in value.pairs:
                self.decode({key: item}, state)
            return self.zero()
        if not state.repeats:
            # Decodes twice: first for the errors in the order of the text, then for the resulting values.
            empties, state.empties = state.empties, {}
            state.repeats = "in the text's order"
            self._decode_rare(value, state)
            state.repeats, state.empties = "added up", empties
            decoded = self.decode(self.add({}, value), state)
            state.repeats = ""
            return decoded
        return self.decode(self.add({}, value), state)

    def add(self, value: Any, again: Any) -> Any:
        """See GoType."""
        if not isinstance(value, dict) or not isinstance(again, dict):
            return value if again is None else again
        fields = self._fields or self._compile()
        out = self.add({}, value) if isinstance(value, Repeated) else dict(value)
        for key, item in again.pairs if isinstance(again, Repeated) else again.items():
            field = fields.get(key)
            if field is None or key not in out:
                out[key] = item
            elif item is not None:
                out[key] = field.add(out[key], item)
            elif field.null is nothing:
                out[key] = None
        return out


def _store(out: dict[str, Any], key: str, item: Any, field: _Field, state: State) -> None:
    """Decodes one field and keeps it if Go's encoding would show it."""
    if item is None:
        decoded = field.null()
    else:
        depth = len(state.fields)
        if field.embedded:
            state.fields.append(field.embedded)
        state.fields.append(key)
        state.path.append(f".{key}" if state.path else key)
        decoded = field.decode(item, state)
        state.path.pop()
        del state.fields[depth:]
    if field.omit_zero and decoded == field.null():
        return
    if decoded is None and item is not None and field.keep_null:
        out[key] = None
    elif (decoded is not None and (decoded or field.keep_empty)) or field.always:
        out[key] = decoded


class _Compiler:
    """The types of one set of definitions, each compiled once and shared by all kinds."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.defaults = StaticDefaults(definitions)
        self._types: dict[str, GoType] = {
            _META + "Time": timestamp(parse_time),
            _META + "MicroTime": timestamp(parse_micro_time),
            QUANTITY: GoType(decode_quantity, lambda: "0", is_struct=True),
            INT_OR_STRING: GoType(decode_int_or_string, lambda: 0, is_struct=True),
            **{name: GoType(lambda value, _: value, nothing, is_struct=True) for name in RAW},
            **{_API + "JSONSchemaPropsOr" + kind: schema_or(kind, self._json_schema) for kind in _SCHEMA_OR},
        }

    def _json_schema(self) -> GoType:
        return self.named(_API + "JSONSchemaProps")

    def named(self, name: str) -> GoType:
        if name not in self._types:
            struct = _Struct(self, name)
            self._types[name] = GoType(struct.decode, struct.zero, is_struct=True, add=struct.add)
        return self._types[name]

    def fields(self, name: str) -> dict[str, _Field]:
        schema, recorded = self.definitions[name], go_types_in(self.definitions).get(name, {})
        required = schema.get("required", ())
        by_name = {
            key: self._field(
                prop,
                recorded.get(key) or prop.get("x-go-type") or expected_go_type(prop, key in required),
                as_json=name.startswith(_API),
                told_empty=(name, key) in _TOLD_EMPTY,
                zero_time=name != _META + "ObjectMeta",
            )
            for key, prop in schema.get("properties", {}).items()
        }
        if "x-kubernetes-group-version-kind" in schema:
            for key in by_name.keys() & {"apiVersion", "kind"}:
                by_name[key] = replace(by_name[key], embedded="TypeMeta")
        return by_name

    def _field(self, schema: Schema, marked: str, *, as_json: bool, told_empty: bool, zero_time: bool) -> _Field:
        """`as_json`: upstream stores the kind as JSON, which knows empty lists; `told_empty`: this one is kept for what comes next;
        `zero_time`: a pointer to Go's zero time is kept, too."""
        marked, _, embedded = marked.partition(" @")
        go_type = marked.strip("*!~")
        pointer, without_omitempty, omit_zero = marked[0] == "*", "!" in marked, "~" in marked
        compiled = self.type(schema, go_type, keeps_empty=told_empty or (as_json and without_omitempty))
        by_value = compiled.is_struct and not pointer and not omit_zero
        return _Field(
            decode=compiled.decode,
            plain=compiled.plain,
            null=nothing if pointer or (go_type == "[]uint8" and without_omitempty) else compiled.zero,
            keep_empty=pointer or compiled.is_struct or without_omitempty or told_empty,
            keep_null=zero_time and pointer and reference(schema) in _TIMES,
            always=(without_omitempty or by_value) and not omit_zero,
            omit_zero=omit_zero,
            embedded=embedded,
            add=compiled.add,
        )

    def type(self, schema: Schema, go_type: str, *, keeps_empty: bool = False) -> GoType:
        """The Go type of a schema; `go_type` is its name in messages."""
        if name := reference(schema):
            return self.named(name)
        kind = schema.get("type", "")
        if kind == "array":
            items = schema["items"]
            item = self.type(items, element_of(go_type, "[]") or go_type_of(items))
            return list_of(item, go_type, keeps_empty=keeps_empty)
        if kind == "object" and "additionalProperties" in schema:
            values = schema["additionalProperties"]
            return map_of(self.type(values, element_of(go_type, "]") or go_type_of(values)), go_type)
        if kind == "string":
            return GoType(decode_bytes, lambda: "") if schema.get("format") == "byte" else scalar(str, go_type, "")
        if kind == "boolean":
            return scalar(bool, go_type, False)
        if kind == "integer":
            return integer(go_type, schema.get("format", "int64"))
        return number(go_type) if kind == "number" else GoType(lambda value, _: value, nothing)


class BuiltinType:
    """A built-in kind: decodes and normalises JSON objects of it."""

    __slots__ = ("_defaults", "_name", "_type")

    def __init__(self, compiler: _Compiler, name: str) -> None:
        self._name, self._type, self._defaults = name, compiler.named(name), compiler.defaults

    def decode(self, obj: dict[str, Any], empties: Empties | None = None, *, from_map: bool = False) -> list[str]:
        """Makes obj, in place, what a round trip through Go's types makes of it; `empties` get what that loses, `from_map` is State's.

        Returns the unknown fields dropped (`unknown field "spec.foo"`), in the body's order, at most 100.
        Raises DecodeError when a value does not fit its type; obj is unchanged then.
        """
        state = State(from_map=from_map)
        decoded = self._type.decode(obj, state)
        if state.error:
            raise DecodeError(state.error)
        obj.clear()
        obj.update(decoded)
        if empties is not None:
            empties.update(state.empties)
        return list(state.unknown)

    def check(self, value: Any) -> None:
        """Raises DecodeError for a value of any JSON type that does not fit, as its UnmarshalJSON words it."""
        state = State()
        self._type.decode(value, state)
        if state.error:
            raise DecodeError(state.error)

    def default(self, obj: dict[str, Any]) -> None:
        """Fills in, in place, the defaults the recorded schema carries beyond zero values (`protocol: TCP`).

        `obj` has been decoded. Defaults from the kinds' own Go code are not the schema's to know.
        """
        self._defaults.apply(self._name, obj)


# Compilers by the identity of their definitions, which they keep alive.
_compilers: dict[int, _Compiler] = {}


def compile_builtin(definitions: Definitions, name: str) -> BuiltinType:
    """The decoder of a definition, such as io.k8s.api.core.v1.Pod. Cheap: definitions are compiled when first met."""
    compiler = _compilers.get(id(definitions))
    if compiler is None:
        compiler = _compilers[id(definitions)] = _Compiler(definitions)
    return BuiltinType(compiler, name)
