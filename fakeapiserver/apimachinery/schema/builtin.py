"""Strict decoding of built-in kinds: what a body becomes on its way through Go's types, and what it is told about them.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/json/json.go, sigs.k8s.io/json (a fork of encoding/json).

A kind's definition is compiled once, on first use, into decoders that walk the body in its own order, because Go tells the
first mismatch and the unknown fields in that order. What OpenAPI does not know of Go's types is recorded in go_types.json.

    pod = compile_builtin(definitions, "io.k8s.api.core.v1.Pod")
    pod.decode({"spec": {"foo": 1}})      # ['unknown field "spec.foo"']
    pod.decode({"spec": 1})               # DecodeError: json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema, reference
from fakeapiserver.apimachinery.schema.scalars import canonical_base64, canonical_quantity, parse_micro_time, parse_time


class DecodeError(ValueError):
    """A body that does not fit its kind's Go types; the text is the tail of the server's 400."""


_MAX_STRICT_ERRORS: Final = 100
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_API: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
# Go's name of a type -> where OpenAPI's definition name does not tell it.
_PACKAGE: Final = {_QUANTITY: "resource.Quantity", _INT_OR_STRING: "intstr.IntOrString"}
# Types that keep whatever JSON they are given.
_RAW: Final = frozenset(
    {
        _META + "FieldsV1",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        *(
            _API + n
            for n in ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")
        ),
    }
)
_SCALARS: Final = {"string": "string", "boolean": "bool", "number": "float64"}
_RANGES: Final = {"int32": 1 << 31, "int64": 1 << 63}


class _State:
    """Where the decoder is and what it found so far."""

    __slots__ = ("error", "fields", "path", "struct", "unknown")

    def __init__(self) -> None:
        self.struct = ""
        self.fields: list[str] = []
        self.path: list[str] = []
        self.error = ""
        self.unknown: dict[str, None] = {}

    def unknown_field(self, key: str) -> None:
        path = "".join(self.path)
        if len(self.unknown) < _MAX_STRICT_ERRORS:
            self.unknown["unknown field " + go_quote(f"{path}.{key}" if path else key)] = None

    def mismatch(self, value: Any, go_type: str, *, exact: bool = False) -> str:
        """Go's words for a value that does not fit; `exact` shows the number itself."""
        where = f"struct field {self.struct}.{'.'.join(self.fields)}" if self.struct else "value"
        return f"json: cannot unmarshal {_described(value, exact)} into Go {where} of type {go_type}"

    def save(self, value: Any, go_type: str, *, exact: bool = False) -> None:
        """Go reads on after a mismatch and tells the first one."""
        self.error = self.error or self.mismatch(value, go_type, exact=exact)


def _described(value: Any, exact: bool) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value!r}" if exact else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


Decoder = Callable[[Any, _State], Any]


@dataclass(frozen=True, slots=True)
class _Type:
    """A Go type: how it decodes, what null and absence leave there."""

    decode: Decoder
    zero: Callable[[], Any]
    plain: type | None = None
    is_struct: bool = False
    """Go's omitempty never leaves out a struct."""


@dataclass(frozen=True, slots=True)
class _Field:
    decode: Decoder
    plain: type | None
    null: Callable[[], Any]
    keep_empty: bool
    always: bool
    omit_zero: bool
    embedded: str


def expected_go_type(schema: Schema, required: bool) -> str:
    """The Go type and marks OpenAPI lets one expect of a field, in the notation of go_types.json."""
    go, end = _go_type(schema), "!" if required else ""
    return go + end if not reference(schema) or "default" in schema else f"*{go}{end}"


def _go_type(schema: Schema) -> str:
    if name := reference(schema):
        return _PACKAGE.get(name) or ".".join(name.rsplit(".", 2)[1:])
    kind = schema.get("type", "")
    if kind == "array":
        return "[]" + _go_type(schema["items"])
    if kind == "object":
        return "map[string]" + _go_type(schema.get("additionalProperties", {"type": "string"}))
    if kind == "integer":
        return str(schema.get("format", "int64"))
    return "[]uint8" if schema.get("format") == "byte" else _SCALARS.get(kind, "interface {}")


@cache
def _recorded_go_types() -> dict[str, dict[str, str]]:
    recorded: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "go_types.json").read_bytes())
    return recorded


def _nothing() -> None:
    return None


def _scalar(kind: type, go_type: str, zero: Any) -> _Type:
    def decode(value: Any, state: _State) -> Any:
        if type(value) is kind:
            return value
        if value is not None:
            state.save(value, go_type)
        return zero

    return _Type(decode, lambda: zero, kind)


def _integer(go_type: str, size: str) -> _Type:
    limit = _RANGES[size]

    def decode(value: Any, state: _State) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        if value is not None:
            state.save(value, go_type, exact=True)
        return 0

    return _Type(decode, lambda: 0)


def _float(go_type: str) -> _Type:
    def decode(value: Any, state: _State) -> Any:
        if type(value) in (int, float):
            return value
        if value is not None:
            state.save(value, go_type)
        return 0

    return _Type(decode, lambda: 0)


def _time(parse: Callable[[str], str]) -> _Type:
    def decode(value: Any, state: _State) -> Any:
        if value is None:
            return None
        if type(value) is not str:
            raise DecodeError(state.mismatch(value, "string"))
        return _parsed(parse, value)

    return _Type(decode, _nothing, is_struct=True)


def _parsed(parse: Callable[[str], str], text: str) -> str:
    try:
        return parse(text)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _decode_quantity(value: Any, state: _State) -> str:
    if value is None:
        return "0"
    # A quantity reads the JSON's own text, so anything but text and numbers fails as a malformed quantity.
    text = value if type(value) is str else repr(value) if type(value) in (int, float) else "x"
    return _parsed(canonical_quantity, text)


def _decode_int_or_string(value: Any, state: _State) -> Any:
    if value is None:
        return 0
    if type(value) is str or (type(value) is int and -_RANGES["int32"] <= value < _RANGES["int32"]):
        return value
    raise DecodeError(state.mismatch(value, "int32", exact=True))


def _decode_bytes(value: Any, state: _State) -> Any:
    """Bytes are base64, or (as any Go slice) a list of numbers; none and no bytes are one in storage."""
    if value is None:
        return ""
    if type(value) is list:
        return base64.b64encode(bytes(_decode_byte(item, state) for item in value)).decode()
    if type(value) is not str:
        state.save(value, "[]uint8")
        return ""
    try:
        return canonical_base64(value)
    except ValueError as error:
        state.error = state.error or str(error)
        return ""


def _decode_byte(value: Any, state: _State) -> int:
    if type(value) is int and 0 <= value < 256:
        return value
    if value is not None:
        state.save(value, "uint8", exact=True)
    return 0


def _list(element: _Type, go_type: str) -> _Type:
    decode_element = element.decode

    def decode(value: Any, state: _State) -> Any:
        if type(value) is not list:
            if value is not None:
                state.save(value, go_type)
            return None
        path, out = state.path, []
        for i, item in enumerate(value):
            path.append(f"[{i}]")
            out.append(decode_element(item, state))
            path.pop()
        # Storage knows no empty list: it comes back as none at all.
        return out or None

    return _Type(decode, _nothing)


def _map(element: _Type, go_type: str) -> _Type:
    decode_element, plain = element.decode, element.plain

    def decode(value: Any, state: _State) -> Any:
        if type(value) is not dict:
            if value is not None:
                state.save(value, go_type)
            return None
        path, out = state.path, {}
        for key, item in value.items():
            if type(item) is plain:
                out[key] = item
                continue
            path.append(f".{key}" if path else key)
            out[key] = decode_element(item, state)
            path.pop()
        return out or None

    return _Type(decode, _nothing)


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

    def decode(self, value: Any, state: _State) -> Any:
        if type(value) is not dict:
            if value is not None:
                state.save(value, ".".join(self._name.rsplit(".", 2)[1:]))
            return self.zero()
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


def _store(out: dict[str, Any], key: str, item: Any, field: _Field, state: _State) -> None:
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
    if (decoded is not None and (decoded or field.keep_empty)) or field.always:
        out[key] = decoded


class _Compiler:
    """The types of one set of definitions, each compiled once and shared by all kinds."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self._types: dict[str, _Type] = {
            _META + "Time": _time(parse_time),
            _META + "MicroTime": _time(parse_micro_time),
            _QUANTITY: _Type(_decode_quantity, lambda: "0", is_struct=True),
            _INT_OR_STRING: _Type(_decode_int_or_string, lambda: 0, is_struct=True),
            **{name: _Type(lambda value, _: value, _nothing, is_struct=True) for name in _RAW},
        }

    def named(self, name: str) -> _Type:
        if name not in self._types:
            struct = _Struct(self, name)
            self._types[name] = _Type(struct.decode, struct.zero, is_struct=True)
        return self._types[name]

    def fields(self, name: str) -> dict[str, _Field]:
        schema, recorded = self.definitions[name], _recorded_go_types().get(name, {})
        required = schema.get("required", ())
        return {
            key: self._field(prop, recorded.get(key) or expected_go_type(prop, key in required))
            for key, prop in schema.get("properties", {}).items()
        }

    def _field(self, schema: Schema, marked: str) -> _Field:
        marked, _, embedded = marked.partition(" @")
        go_type = marked.strip("*!~")
        pointer, without_omitempty, omit_zero = marked[0] == "*", "!" in marked, "~" in marked
        compiled = self.type(schema, go_type)
        by_value = compiled.is_struct and not pointer and not omit_zero
        return _Field(
            decode=compiled.decode,
            plain=compiled.plain,
            null=_nothing if pointer else compiled.zero,
            keep_empty=pointer or compiled.is_struct or without_omitempty,
            always=(without_omitempty or by_value) and not omit_zero,
            omit_zero=omit_zero,
            embedded=embedded,
        )

    def type(self, schema: Schema, go_type: str) -> _Type:
        """The Go type of a schema; `go_type` is its name in messages."""
        if name := reference(schema):
            return self.named(name)
        kind = schema.get("type", "")
        if kind == "array":
            items = schema["items"]
            return _list(self.type(items, _element(go_type, "[]") or _go_type(items)), go_type)
        if kind == "object" and "additionalProperties" in schema:
            values = schema["additionalProperties"]
            return _map(self.type(values, _element(go_type, "]") or _go_type(values)), go_type)
        if kind == "string":
            return _Type(_decode_bytes, lambda: "") if schema.get("format") == "byte" else _scalar(str, go_type, "")
        if kind == "boolean":
            return _scalar(bool, go_type, False)
        if kind == "integer":
            return _integer(go_type, schema.get("format", "int64"))
        return _float(go_type) if kind == "number" else _Type(lambda value, _: value, _nothing)


def _element(go_type: str, opening: str) -> str:
    """The element type of `[]T` or `map[K]T`; empty for a named type, whose elements OpenAPI tells."""
    if opening == "[]":
        return go_type[2:].lstrip("*") if go_type.startswith("[]") else ""
    return go_type.partition("]")[2].lstrip("*") if go_type.startswith("map[") else ""


class BuiltinType:
    """A built-in kind: decodes and normalises JSON objects of it."""

    __slots__ = ("_type",)

    def __init__(self, compiled: _Type) -> None:
        self._type = compiled

    def decode(self, obj: dict[str, Any]) -> list[str]:
        """Makes obj, in place, what a round trip through Go's types makes of it.

        Returns the unknown fields dropped (`unknown field "spec.foo"`), in the body's order, at most 100.
        Raises DecodeError when a value does not fit its type; obj is unchanged then.
        """
        state = _State()
        decoded = self._type.decode(obj, state)
        if state.error:
            raise DecodeError(state.error)
        obj.clear()
        obj.update(decoded)
        return list(state.unknown)

    def default(self, obj: dict[str, Any]) -> None:
        """Static defaults beyond zero values, in place: none.

        The server's own defaults (protocol: TCP among them) come from its Go code, which also knows when not to apply
        them; the defaults in the recorded schemas only repeat some of those.
        """


# Compilers by the identity of their definitions, which they keep alive.
_compilers: dict[int, _Compiler] = {}


def compile_builtin(definitions: Definitions, name: str) -> BuiltinType:
    """The decoder of a definition, such as io.k8s.api.core.v1.Pod. Cheap: definitions are compiled when first met."""
    compiler = _compilers.get(id(definitions))
    if compiler is None:
        compiler = _compilers[id(definitions)] = _Compiler(definitions)
    return BuiltinType(compiler.named(name))
