"""OpenAPI documents as the protobuf messages that clients of Kubernetes ask for, byte for byte as upstream writes them.

Upstream: github.com/google/gnostic-models/{openapiv2,openapiv3} (the messages, and how JSON is read into them), compiler/reader.go
(free values become YAML text), google.golang.org/protobuf (fields in the order of their numbers, zero values left out).
"""

import json
import re
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from fakeapiserver import apis
from fakeapiserver.apimachinery.serializer.go_yaml_emit import scalar
from fakeapiserver.apimachinery.serializer.protobuf.wire import delimited, tag, varint

Encode = Callable[[Any], bytes]
Row = tuple[int, str, str, str]

_TABLE: Final = Path(apis.__file__).parent / "openapi_messages.json"
_FIXED64: Final = 1
_INDENT: Final = 4


class Written(bytes):
    """A named message that is written already: it may stand for a path or a definition in a document."""


@lru_cache(maxsize=4)
def encoder(version: str, message: str = "Document") -> Encode:
    """Returns an encoder of OpenAPI documents `v2` or `v3`, as JSON data, or of items `(name, value)` as a message
    such as `NamedSchema`.
    """
    messages = _Messages(json.loads(_TABLE.read_bytes())[version])
    return messages.encode(message) if message == "Document" else messages.named(message)


class _Field(NamedTuple):
    """A field's number and writer, and whether null is a value of it."""

    number: int
    write: Encode
    nullable: bool


class _Messages:
    """Writers of messages and their fields, each made when first needed: messages refer to each other in circles."""

    def __init__(self, table: Mapping[str, list[Row]]) -> None:
        self._table = table
        self._made: dict[str, Encode] = {}

    def encode(self, name: str) -> Encode:
        if name in self._made:
            return self._made[name]
        rows = self._table.get(name, [])
        if name in _SCALARS:
            made = _SCALARS[name]
        elif name == "Any":
            made = _any
        elif rows and all(label == "oneof" for *_, label in rows):
            made = self._choice(name, rows)
        elif len(rows) == 1 and rows[0][3] == "repeated":
            made = self._only(rows[0])
        else:
            made = self._struct(rows)
        self._made[name] = made
        return made

    def _later(self, name: str) -> Encode:
        """The message's writer, looked up when it is used."""

        def write(value: Any) -> bytes:
            return self.encode(name)(value)

        return write

    def _field(self, row: Row) -> Encode:
        """A field's writer, its number in front. Zero values of scalars are left out, but not those of a choice."""
        number, _, kind, label = row
        if kind in ("bool", "int64"):
            start, write = tag(number, 0), _SCALARS[kind]
            return lambda value: start + write(value) if value or label == "oneof" else b""
        if kind == "double":
            start = tag(number, _FIXED64)
            return lambda value: start + _double(value) if value or label == "oneof" else b""
        framed, content = delimited(number), self._later(kind)
        if kind == "string" and not label:
            return lambda value: framed(value.encode()) if value else b""
        return lambda value: framed(content(value))

    def _only(self, row: Row) -> Encode:
        """A message that is a list (of one, where JSON says it without a list) or a mapping, and nothing else."""
        write = self._field(row)
        if row[1] == "additional_properties":
            named = self.named(row[2])
            frame = delimited(row[0])
            return lambda value: b"".join(frame(named(item)) for item in sorted(value.items()))
        return lambda value: b"".join(map(write, value if isinstance(value, list) else [value]))

    def named(self, name: str) -> Encode:
        key, value = (self._field(row) for row in self._table[name])
        return lambda item: item[1] if isinstance(item[1], Written) else key(item[0]) + value(item[1])

    def _choice(self, name: str, rows: list[Row]) -> Encode:
        fields = {row[1]: self._field(row) for row in rows}
        choose = _CHOICES.get(name, _reference_or_not)
        first = rows[0][1]

        def write(value: Any) -> bytes:
            chosen = choose(value) or first
            return fields[chosen](value) if chosen in fields else b""

        return write

    def _struct(self, rows: list[Row]) -> Encode:
        """Goes through what a value has rather than through all that it could have: a schema has few of its fields."""
        plain = {_json_name(row[1]): self._plain(row) for row in rows if row[1] not in _OPEN}
        rest = [(row[0], self._open(row)) for row in rows if row[1] in _OPEN]

        def write(value: Mapping[str, Any]) -> bytes:
            parts: list[tuple[int, bytes]] = []
            more: list[tuple[str, Any]] = []
            for item in value.items():
                if (field := plain.get(item[0])) is None:
                    more.append(item)
                elif item[1] is not None or field.nullable:
                    parts.append((field.number, field.write(item[1])))
            if more:
                more.sort(key=itemgetter(0))
                parts += [(number, encode(more)) for number, encode in rest]
            parts.sort(key=itemgetter(0))
            return b"".join([part for _, part in parts])

        return write

    def _plain(self, row: Row) -> _Field:
        write = self._field(row)
        # A null is a value where any value may stand.
        nullable = row[2] in ("Any", "DefaultType")
        return _Field(row[0], (lambda value: b"".join(map(write, value))) if row[3] == "repeated" else write, nullable)

    def _open(self, row: Row) -> Encode:
        frame, named, belongs = delimited(row[0]), self.named(row[2]), _OPEN[row[1]]
        return lambda items: b"".join([frame(named(item)) for item in items if belongs(item[0])])


def _json_name(name: str) -> str:
    """`operation_id` -> `operationId`, `_ref` -> `$ref`"""
    if name == "_ref":
        return "$ref"
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


_SCALARS: Final[Mapping[str, Encode]] = {
    "string": lambda value: value.encode(),
    "bool": lambda value: varint(int(value)),
    "int64": lambda value: varint(int(value)),
    "double": _double,
}


def _is_extension(key: str) -> bool:
    return key.startswith("x-")


def _is_path(key: str) -> bool:
    return key.startswith("/")


def _is_code(key: str) -> bool:
    return key != "default" and not key.startswith("x-")


# Fields that hold what a document names as it likes: extensions, paths, codes of responses.
_OPEN: Final[Mapping[str, Callable[[str], bool]]] = {
    "vendor_extension": _is_extension,
    "specification_extension": _is_extension,
    "path": _is_path,
    "response_code": _is_code,
    "response_or_reference": _is_code,
}


# ------------------------------------------------------------------ choices


def _reference_or_not(value: Any) -> str:
    return "reference" if isinstance(value, dict) and "$ref" in value else ""


def _json_reference_or_not(value: Any) -> str:
    return "json_reference" if "$ref" in value else ""


def _boolean_or_not(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else ""


def _scalar_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "none"


_CHOICES: Final[Mapping[str, Callable[[Any], str]]] = {
    "AdditionalPropertiesItem": _boolean_or_not,
    "DefaultType": _scalar_type,
    "NonBodyParameter": lambda value: f"{_snake(value['in'])}_parameter_sub_schema",
    "Parameter": lambda value: "body_parameter" if value["in"] == "body" else "non_body_parameter",
    "ParametersItem": _json_reference_or_not,
    "ResponseValue": _json_reference_or_not,
    "SchemaItem": lambda value: "file_schema" if value.get("type") == "file" else "schema",
    "SecurityDefinitionsItem": lambda value: "api_key_security" if value["type"] == "apiKey" else "",
}


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", name)


# -------------------------------------------------------------- free values


def _any(value: Any) -> bytes:
    return _yaml_field(_yaml(value, 0).encode())


_yaml_field: Final = delimited(2)


def _yaml(value: Any, indent: int) -> str:
    """A value as YAML with a newline at its end; nested lines are indented by four, lists in mappings too."""
    pad = " " * indent
    if isinstance(value, dict) and value:
        rows = ((_scalar(key), _nested(item, _deeper(indent))) for key, item in value.items())
        return "".join(f"{pad}{key}:{item}" for key, item in rows)
    if isinstance(value, list) and value:
        # what follows the dash stands two columns in
        return "".join(f"{pad}- {_yaml(item, indent + 2).lstrip(' ')}" for item in value)
    if isinstance(value, dict | list):
        return f"{pad}{'{}' if isinstance(value, dict) else '[]'}\n"
    return f"{pad}{_leaf(value, indent or _INDENT)}\n"


def _deeper(indent: int) -> int:
    """The next multiple of four."""
    return (indent // _INDENT + 1) * _INDENT


def _nested(value: Any, indent: int) -> str:
    if isinstance(value, dict | list) and value:
        return "\n" + _yaml(value, indent)
    return " " + _yaml(value, indent).lstrip(" ")


def _leaf(value: Any, indent: int) -> str:
    """Text of several lines as a literal block where one can hold it."""
    if not (isinstance(value, str) and "\n" in value):
        return _scalar(value)
    if "\r" in value or " \n" in value or value.endswith(" "):
        return scalar(value, '"')
    lines = value.split("\n")
    hint = str(_INDENT) if value[0] in " \n" else ""
    chomp = "-" if lines[-1] else "" if lines[-2] else "+"
    body = "\n".join(" " * indent + line if line else "" for line in (lines if lines[-1] else lines[:-1]))
    return f"|{hint}{chomp}\n{body}"


def _scalar(value: Any) -> str:
    """A value of one line. Words that mean something to older YAML only stand without quotes."""
    return scalar(value, "" if isinstance(value, str) and _OLD.fullmatch(value) else None)


_OLD: Final = re.compile(r"(?i:y|yes|n|no|on|off)|<<|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
