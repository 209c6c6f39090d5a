"""Objects to protobuf messages, byte for byte as upstream's generated marshallers write them.

Fields stand in the order of their numbers; what Go holds by value is always written, zero or not; maps are sorted by key.
Upstream: the generated.pb.go files, and the ProtoMarshal methods of k8s.io/apimachinery's Time, Quantity, IntOrString.
"""

import struct
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.serializer.protobuf.wire import STRING_LISTS, VARINT, Messages, delimited, tag, varint

Write = Callable[[Any], bytes]

_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
_CRD: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."
_SCHEMA: Final = _CRD + "JSONSchemaProps"


class Encoder:
    """Encodes the messages of one table. Each is compiled when it is first met."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._writers: dict[str, Write] = dict(_SPECIAL)
        self._writers[_SCHEMA + "OrBool"] = self._schema_or_bool
        self._writers[_SCHEMA + "OrArray"] = self._schema_or_array
        self._writers[_SCHEMA + "OrStringArray"] = self._schema_or_strings

    def message(self, name: str) -> Write:
        """The function that encodes objects as this message."""
        write = self._writers.get(name)
        if write is None:
            write = self._writers[name] = _Message(self, self._messages[name])
        return write

    def repeated(self, name: str, field: str) -> Callable[[bytes], bytes]:
        """The function that writes one encoded message as an item of a repeated field: ("…PodList", "items")."""
        return delimited(next(number for number, row in self._messages[name].items() if row[0] == field))

    def field(self, number: int, kind: str, label: str) -> Write:
        """The function that writes a value as a field, tag included."""
        if label == "map":
            return _map(number, self._single(1, "string"), self._or_null(2, kind))
        if label == "repeated":
            write = self._or_null(number, kind)
            return lambda values: b"".join([write(value) for value in values])
        return self._single(number, kind)

    def _or_null(self, number: int, kind: str) -> Write:
        write = self._single(number, kind)
        return lambda value: self._null(number, kind) if value is None else write(value)

    def _null(self, number: int, kind: str) -> bytes:
        """A null in a list or map: what Go holds there is a zero, and of bytes nothing."""
        if kind == "bytes":
            return b""
        return delimited(number)(b"") if kind in _LISTS else self.zero(number, kind)

    def zero(self, number: int, kind: str) -> bytes:
        """Encodes a field without a value as Go writes it."""
        if kind in _EMPTY:
            return delimited(number)(b"")
        return self._single(number, kind)(_ZEROS.get(kind, {}))

    def _single(self, number: int, kind: str) -> Write:
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            return scalar(number)
        write, encode = delimited(number), self.message(kind)
        return lambda value: write(encode(value))

    def _schema_or_bool(self, value: Any) -> bytes:
        allows = not isinstance(value, bool) or value
        schema = _second(self.message(_SCHEMA)(value)) if isinstance(value, dict) else b""
        return tag(1, VARINT) + varint(allows) + schema

    def _schema_or_array(self, value: Any) -> bytes:
        encode = self.message(_SCHEMA)
        if isinstance(value, dict):
            return _first(encode(value))
        return b"".join(_second(encode(item)) for item in value)

    def _schema_or_strings(self, value: Any) -> bytes:
        if isinstance(value, dict):
            return _first(self.message(_SCHEMA)(value))
        return b"".join(_second(item.encode()) for item in value)


class _Message:
    """Encodes one message.

    The zeros of fields that are always written are prepared, so that only existing fields take time.
    """

    __slots__ = ("_encoder", "_fields", "_inlined", "_slots", "_template")

    def __init__(self, encoder: Encoder, fields: Mapping[int, tuple[str, str, str]]) -> None:
        self._encoder, self._fields = encoder, fields
        self._slots: dict[str, tuple[int, Write]] | None = None
        self._inlined: list[tuple[int, Write]] = []
        self._template: list[bytes] = []

    def __call__(self, obj: Mapping[str, Any]) -> bytes:
        slots = self._slots
        if slots is None:
            slots = self._compile()
        parts = self._template[:]
        for key, value in obj.items():
            slot = slots.get(key)
            if slot is not None and value is not None:
                at, write = slot
                parts[at] = write(value)
        for at, write in self._inlined:
            parts[at] = write(obj)
        return b"".join(parts)

    def _compile(self) -> dict[str, tuple[int, Write]]:
        slots: dict[str, tuple[int, Write]] = {}
        for at, (number, (name, kind, label)) in enumerate(sorted(self._fields.items())):
            write = self._encoder.field(number, kind, label)
            if name:
                slots[name] = (at, write)
            else:
                self._inlined.append((at, write))
            self._template.append(b"" if label else self._encoder.zero(number, kind))
        self._slots = slots
        return slots


# ----------------------------------------------------------------------- scalars


def _string(number: int) -> Write:
    write = delimited(number)
    return lambda value: write(value.encode())


def _bytes(number: int) -> Write:
    write = delimited(number)
    return lambda value: write(b64decode(value))


def _integer(number: int) -> Write:
    start = tag(number, VARINT)
    return lambda value: start + varint(value)


def _real(form: str, wire: int) -> Callable[[int], Write]:
    pack = struct.Struct(form).pack

    def field(number: int) -> Write:
        start = tag(number, wire)
        return lambda value: start + pack(value)

    return field


_SCALARS: Final[Mapping[str, Callable[[int], Write]]] = {
    "string": _string,
    "bytes": _bytes,
    **dict.fromkeys(("bool", "int32", "int64", "uint32", "uint64"), _integer),
    "double": _real("<d", 1),
    "float": _real("<f", 5),
}


def _map(number: int, key: Write, value: Write) -> Write:
    write = delimited(number)
    return lambda entries: b"".join([write(key(name) + value(entries[name])) for name in sorted(entries)])


# ---------------------------------------------- messages with a JSON form of their own

_first, _second, _third = delimited(1), delimited(2), delimited(3)
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
# Python's calendar begins a year after Go's: what lies before it is counted from 400 years (146097 days) later.
_CYCLE: Final = 146097 * 86400


@lru_cache(maxsize=4096)
def _time(text: str) -> bytes:
    """Whole seconds: nanoseconds are always written as zero."""
    return _timestamp(_seconds(text), 0)


def _micro_time(text: str) -> bytes:
    fraction = text.partition(".")[2].rstrip("Z")
    return _timestamp(_seconds(text), int(fraction.ljust(9, "0")) if fraction else 0)


def _seconds(text: str) -> int:
    if text.startswith("0000"):
        return _seconds("0400" + text[4:]) - _CYCLE
    return int((datetime.fromisoformat(text[:19] + "+00:00") - _EPOCH).total_seconds())


def _timestamp(seconds: int, nanoseconds: int) -> bytes:
    return b"".join((tag(1, VARINT), varint(seconds), tag(2, VARINT), varint(nanoseconds)))


def _quantity(text: str) -> bytes:
    return _first(text.encode())


def _int_or_string(value: int | str) -> bytes:
    """Encodes the type, the number and the text."""
    number, text = (0, value) if isinstance(value, str) else (value, "")
    kind = isinstance(value, str)
    return b"".join((tag(1, VARINT), varint(kind), tag(2, VARINT), varint(number), _third(text.encode())))


def _raw_json(value: Any) -> bytes:
    return _first(json.encode(value))


def _items(values: list[str]) -> bytes:
    return b"".join(_first(value.encode()) for value in values)


# The zero values of fields; {} for messages.
_ZEROS: Final[Mapping[str, Any]] = {
    "string": "",
    "bytes": "",
    **dict.fromkeys(("bool", "int32", "int64", "uint32", "uint64", "double", "float"), 0),
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "0",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": 0,
}
_RAW_EXTENSION: Final = "k8s.io.apimachinery.pkg.runtime.RawExtension"
# Types with a JSON form of their own, whose zero value is an empty message.
_EMPTY: Final = frozenset((_META + "Time", _META + "MicroTime", _RAW_EXTENSION))

# What JSON shows as a list or as one of several forms: null is an empty message.
_LISTS: Final = frozenset(
    (
        *STRING_LISTS,
        *(_SCHEMA + form for form in ("OrArray", "OrStringArray")),
    )
)

_SPECIAL: Final[Mapping[str, Write]] = {
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "FieldsV1": _raw_json,
    _META + "Verbs": _items,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    _RAW_EXTENSION: _raw_json,
    **dict.fromkeys(STRING_LISTS, _items),
    _CRD + "JSON": _raw_json,
}
