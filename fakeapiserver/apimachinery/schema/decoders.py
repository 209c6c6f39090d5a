"""Decoders of Go's scalars, slices and maps: what each takes from JSON, and Go's words where it doesn't fit.

Upstream: sigs.k8s.io/json (internal/golang/encoding/json/decode.go), the UnmarshalJSON methods of k8s.io/apimachinery.
"""

import base64
import re
from collections.abc import Callable
from math import inf
from typing import Any, Final, Literal

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.quantity import canonical_quantity
from fakeapiserver.apimachinery.schema.scalars import canonical_base64
from fakeapiserver.apimachinery.serializer.go_json import Repeated, Written
from fakeapiserver.apimachinery.serializer.json import go_float


class DecodeError(ValueError):
    """A body that does not fit its kind's Go types; the text is the tail of the server's 400."""


_MAX_STRICT_ERRORS: Final = 100
_EXACT: Final = 1 << 53
"""Whole numbers up to this are what they are as float64, too."""
_RANGES: Final = {"int32": 1 << 31, "int64": 1 << 63}


# Where a value is in an object: keys and indexes.
Steps = tuple[str | int, ...]
# The empty lists and maps of a body, by path: Go distinguishes them from absent ones until they are stored.
Empties = dict[Steps, Any]


class MapKey(str):
    """A step into a map, which no field is."""

    __slots__ = ()


class State:
    """The decoder's position and results."""

    __slots__ = ("empties", "error", "fields", "from_map", "outer", "path", "repeats", "struct", "unknown")

    def __init__(self, outer: "State | None" = None, *, from_map: bool = False) -> None:
        """Starts a reading.

        `outer` is the reading in which a type's UnmarshalJSON starts this one. `from_map`: the input is not a
        text but a map that a strategic
        merge patch has changed; its unknown fields are reported without maps' keys, and unquoted.
        """
        self.from_map = from_map
        self.struct = ""
        # Go puts the outer struct's name on the inner fields.
        self.outer = outer.struct if outer else ""
        self.fields: list[str] = list(outer.fields) if outer else []
        self.path: list[str] = []
        self.error = ""
        self.unknown: dict[str, None] = {}
        self.empties: Empties = {}
        self.repeats: Literal["", "in the text's order", "added up"] = outer.repeats if outer else ""

    def unknown_field(self, key: str) -> None:
        if len(self.unknown) >= _MAX_STRICT_ERRORS:
            return
        path = "".join(step for step in self.path if type(step) is str) if self.from_map else "".join(self.path)
        name = f"{path}.{key}" if path else key
        self.unknown["unknown field " + (f'"{name}"' if self.from_map else go_quote(name))] = None

    def none_of(self, empty: Any) -> None:
        """Notes a list or map without items, which becomes none at all."""
        self.empties[tuple(int(step[1:-1]) if step[0] == "[" else step.removeprefix(".") for step in self.path)] = empty

    def mismatch(self, value: Any, go_type: str, *, exact: bool = False) -> str:
        """Go's words for a value that does not fit; `exact` shows the number itself."""
        struct = self.outer or self.struct
        where = f"struct field {struct}.{'.'.join(self.fields)}" if struct else "value"
        return f"json: cannot unmarshal {_described(value, exact)} into Go {where} of type {go_type}"

    def save(self, value: Any, go_type: str, *, exact: bool = False) -> None:
        """Records the first mismatch; Go reads on after it."""
        self.error = self.error or self.mismatch(value, go_type, exact=exact)


def _described(value: Any, exact: bool) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {_literal(value)}" if exact else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _literal(value: float) -> str:
    """Returns the number's source text if known; else as Go formats it (YAML passes through Go)."""
    if isinstance(value, Written):
        return value.text
    return go_float(value) if isinstance(value, float) else str(value)


Decoder = Callable[[Any, State], Any]


def _latter(value: Any, again: Any) -> Any:
    return value if again is None else again


class GoType(Struct, frozen=True):
    """A Go type: how it decodes, what null and absence leave there."""

    decode: Decoder
    zero: Callable[[], Any]
    plain: type | None = None
    is_struct: bool = False
    """Go's omitempty never leaves out a struct."""
    add: Callable[[Any, Any], Any] = _latter
    """A value and what stands for it further on in the same text, as one value: Go decodes the second into the first."""


def nothing() -> None:
    """Null."""
    return


def scalar(kind: type, go_type: str, zero: Any) -> GoType:
    """A string or bool, named `go_type` in messages."""

    def decode(value: Any, state: State) -> Any:
        if type(value) is kind:
            return value
        if value is not None:
            state.save(value, go_type)
        return zero

    return GoType(decode, lambda: zero, kind)


def integer(go_type: str, size: str) -> GoType:
    """An integer of `size` int32 or int64."""
    limit = _RANGES[size]

    def decode(value: Any, state: State) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        if value is not None:
            state.save(value, go_type, exact=True)
        return 0

    return GoType(decode, lambda: 0)


def number(go_type: str) -> GoType:
    """A float64."""

    def decode(value: Any, state: State) -> Any:
        if isinstance(value, int | float) and type(value) is not bool and abs(value) != inf:
            return value if -_EXACT <= value <= _EXACT else float(value)
        if value is not None:
            state.save(value, go_type, exact=isinstance(value, float))
        return 0

    return GoType(decode, lambda: 0)


def timestamp(parse: Callable[[str], str]) -> GoType:
    """Returns the type of a metav1.Time or MicroTime; `parse` returns the canonical text.

    Go's zero time is decoded as None.
    """
    zeros = frozenset({"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"})

    def decode(value: Any, state: State) -> Any:
        if value is None:
            return None
        if type(value) is not str:
            raise DecodeError(state.mismatch(value, "string"))
        parsed = _parsed(parse, value)
        return None if parsed in zeros else parsed

    return GoType(decode, nothing, is_struct=True)


def _parsed(parse: Callable[[str], str], text: str) -> str:
    try:
        return parse(text)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def decode_quantity(value: Any, state: State) -> str:
    """A resource.Quantity."""
    if value is None:
        return "0"
    # A quantity reads the JSON's own text, so anything but text and numbers fails as a malformed quantity.
    number = isinstance(value, int | float) and type(value) is not bool
    text = value if type(value) is str else _literal(value) if number else "x"
    return _parsed(canonical_quantity, text)


def decode_int_or_string(value: Any, state: State) -> Any:
    """An intstr.IntOrString."""
    if value is None:
        return 0
    if type(value) is str or (type(value) is int and -_RANGES["int32"] <= value < _RANGES["int32"]):
        return value
    raise DecodeError(state.mismatch(value, "int32", exact=True))


def decode_bytes(value: Any, state: State) -> Any:
    """Bytes are base64, or (as any Go slice) a list of numbers; none and no bytes are one in storage."""
    if value is None:
        return ""
    if not value and type(value) in (str, list):
        state.none_of("")
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


def _decode_byte(value: Any, state: State) -> int:
    if type(value) is int and 0 <= value < 256:
        return value
    if value is not None:
        state.save(value, "uint8", exact=True)
    return 0


# Fields inside a JSONSchemaPropsOr* or a JSON of a definition, by their paths.
_INSIDE_SCHEMA_OR: Final = re.compile(
    r"spec\.versions\[\d+\]\.schema\.openAPIV3Schema(?:\.(?:properties|patternProperties|definitions)\.[^.]+|\.(?:allOf|anyOf|oneOf)\[\d+\]|\.not)*"
    r"\.(?:items|additionalItems|additionalProperties|dependencies\.[^.]+|default|example|enum\[\d+\])[.\[]"
)


def is_read_apart(path: str) -> bool:
    """Reports whether a field is decoded by a type's own UnmarshalJSON, which reports neither unknown nor repeated fields."""
    return _INSIDE_SCHEMA_OR.match(path) is not None


def schema_or(kind: str, schema: Callable[[], GoType]) -> GoType:
    """Returns the type JSONSchemaPropsOr*:

    a JSON schema, or a value of `kind` (Bool, Array, StringArray). Unknown fields are ignored.
    """

    def decode_schema(value: Any, state: State) -> Any:
        inner = State(state)
        decoded = schema().decode(value, inner)
        if inner.error:
            raise DecodeError(inner.error)
        return decoded

    def decode(value: Any, state: State) -> Any:
        if isinstance(value, dict):
            return decode_schema(value, state)
        if kind == "Bool":
            if not isinstance(value, bool):
                raise DecodeError("boolean or JSON schema expected")
            return value
        if not isinstance(value, list):
            return None
        return value if kind == "StringArray" else [decode_schema(item, state) for item in value] or None

    return GoType(decode, nothing, is_struct=True)


def list_of(element: GoType, go_type: str, *, keeps_empty: bool = False) -> GoType:
    """A slice. Protobuf, in which upstream stores most kinds, knows no empty one: it comes back as none at all."""
    decode_element = element.decode

    def decode(value: Any, state: State) -> Any:
        if type(value) is not list:
            if value is not None:
                state.save(value, go_type)
            return None
        path, out = state.path, []
        for i, item in enumerate(value):
            path.append(f"[{i}]")
            out.append(decode_element(item, state))
            path.pop()
        if not out and not keeps_empty:
            state.none_of(value)
        return out if out or keeps_empty else None

    def add(value: Any, again: Any) -> Any:
        if not isinstance(value, list) or not isinstance(again, list):
            return again
        # What was there is decoded into; more is new.
        return [element.add(*pair) for pair in zip(value, again, strict=False)] + again[len(value) :]

    return GoType(decode, nothing, add=add)


def map_of(element: GoType, go_type: str) -> GoType:
    """A map with text keys."""
    decode_element, plain = element.decode, element.plain

    def decode(value: Any, state: State) -> Any:
        if not isinstance(value, dict):
            if value is not None:
                state.save(value, go_type)
            return None
        path, out = state.path, {}
        for key, item in value.pairs if isinstance(value, Repeated) else value.items():
            if type(item) is plain:
                out[key] = item
                continue
            path.append(MapKey(f".{key}" if path else key))
            out[key] = decode_element(item, state)
            path.pop()
        if not out:
            state.none_of(value)
        return out or None

    def add(value: Any, again: Any) -> Any:
        return {**value, **again} if isinstance(value, dict) and isinstance(again, dict) else again

    return GoType(decode, nothing, add=add)
