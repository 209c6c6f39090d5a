"""Protobuf messages to the objects that their JSON gives.

    decoder = Decoder(messages)
    decode(body, message_of, decoder)               # an enveloped object
    decoder.message("k8s.io.api.core.v1.Pod")(raw)  # a message

What Go holds by value is always on the wire: zeros of it are left out again, as absence means them in JSON.
Upstream: the generated.pb.go files.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.protobuf.forms import CONSTANT, SCALARS, SPECIAL, TIMESTAMPS, signed32, text
from fakeapiserver.apimachinery.serializer.protobuf.wire import MAGIC, DecodeError, Field, Messages

MAX_DEPTH: Final = 200
# Messages of one list. kube-apiserver has no such limit; but two bytes would make an object, and a million of them are freed in one turn.
MAX_ITEMS: Final = 250_000
_VARINT, _FIXED64, _DELIMITED, _START_GROUP, _END_GROUP, _FIXED32 = range(6)
_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
# How a field is read: a text, another delimited one, a number, or by a function of its own.
_TEXT, _BYTES, _NUMBER, _APART = range(4)
# Puts a field into the object: (object, number or bytes, depth). For a field that is read apart: (object, bytes, offset, depth) -> end.
_Put = Callable[..., Any]
# A field of a message: how it is read, its name, whether an empty text stays, and what puts it into the object.
_Slot = tuple[int, str, bool, _Put]
# Reads a message: (bytes, depth, the object so far) -> the object, or whatever its JSON form is.
_Read = Callable[[bytes, int, Any], Any]
# Messages that are remembered, of each kind whose form is constant, and the bytes of the longest.
_REMEMBERED: Final = 4096
_MAX_REMEMBERED_BYTES: Final = 64
# How scalars are written; everything else is delimited.
_WIRES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("bool", "int32", "int64", "uint32", "uint64"), _VARINT),
    "double": _FIXED64,
    "float": _FIXED32,
}
_ENVELOPE: Final[Messages] = {
    "Unknown": {
        1: ("typeMeta", "TypeMeta", ""),
        2: ("raw", "as it is", ""),
        3: ("contentEncoding", "string", ""),
        4: ("contentType", "string", ""),
    },
    "TypeMeta": {1: ("apiVersion", "string", ""), 2: ("kind", "string", "")},
}


class Decoder:
    """Decodes the messages of one table. Each is compiled when it is first met."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._compiled: dict[tuple[str, bool], _Message] = {}
        self._readers: dict[str, _Read] = {}

    def message(self, name: str) -> Callable[[bytes], Object]:
        """The function that decodes this message. It raises DecodeError."""
        read = self._plain(name).read

        def decode_message(raw: bytes) -> Object:
            try:
                return read(raw, 0, {})
            except IndexError:
                raise DecodeError("unexpected EOF") from None

        return decode_message

    def _plain(self, name: str, *, keep_zeros: bool = False) -> "_Message":
        """The message by its table."""
        message = self._compiled.get((name, keep_zeros))
        if message is None:
            message = _Message(self, name, self._messages[name], keep_zeros=keep_zeros)
            self._compiled[name, keep_zeros] = message
        return message

    def reader(self, name: str) -> _Read:
        """The function that reads this message as a part of another."""
        read = self._readers.get(name)
        if read is None:
            read = self._readers[name] = self._reader(name)
        return read

    def _reader(self, name: str) -> _Read:
        special = SPECIAL.get(name)
        if special is None:
            return self._plain(name).read
        plain = self._plain(name, keep_zeros=True).read
        if name not in CONSTANT:
            return lambda data, depth, _: special(plain(data, depth, {}), data)
        again = lru_cache(_REMEMBERED)(lambda data: special(plain(data, 0, {}), data))
        return lambda data, depth, _: (
            again(data) if len(data) <= _MAX_REMEMBERED_BYTES else special(plain(data, 0, {}), data)
        )


class _Message:
    """A message by its table. `keep_zeros`: zeros by value stay in the object."""

    def __init__(self, decoder: Decoder, name: str, fields: Mapping[int, Field], *, keep_zeros: bool) -> None:
        self._decoder = decoder
        self._name = TIMESTAMPS.get(name) or name.rpartition(".")[2]
        self._fields = fields
        self._keep_zeros = keep_zeros
        self._slots: dict[int, _Slot] | None = None

    def read(self, data: bytes, depth: int, obj: Object) -> Object:
        """Puts the fields into `obj`, and returns it: a field that comes twice is merged, as protobuf has it. Those of a later version are
        skipped. Raises DecodeError, and IndexError where the bytes end too early."""
        if depth > MAX_DEPTH:
            raise DecodeError("the message is nested too deeply")
        slots = self._slots
        if slots is None:
            slots = self._slots = self._compile()
        at, end = 0, len(data)
        while at < end:
            tag = data[at]
            at += 1
            if tag > 127:
                second = data[at]  # most tags and sizes have two bytes at most
                if second < 128:
                    tag += (second << 7) - 128
                    at += 1
                else:
                    tag, at = _varint(data, at - 1)
            slot = slots.get(tag) or slots.get(_truncated(tag))
            if slot is None:
                at = self._skip_unknown(data, at, tag)
                continue
            way, name, is_kept, put = slot
            if way == _APART:
                at = put(obj, data, at, depth)
                continue
            value = data[at]
            at += 1
            if value > 127:
                second = data[at]
                if second < 128:
                    value += (second << 7) - 128
                    at += 1
                else:
                    value, at = _varint(data, at - 1)
            if way == _NUMBER:
                put(obj, value, depth)
                continue
            start, at = at, at + value
            if at > end:
                raise _too_long(value)
            if way == _BYTES:
                put(obj, data[start:at], depth)
            elif value or is_kept:
                obj[name] = data[start:at].decode("utf-8", "replace")
            elif name in obj:
                del obj[name]  # a zero by value
        return obj

    def _skip_unknown(self, data: bytes, at: int, tag: int) -> int:
        """Returns the end of a field of unknown number. Raises DecodeError if only its wire type is wrong."""
        number = _truncated(tag) >> 3
        if tag & 7 == _END_GROUP:
            raise DecodeError(f"proto: {self._name}: wiretype end group for non-group")
        if number <= 0:
            raise DecodeError(f"proto: {self._name}: illegal tag {number} (wire type {tag})")
        if number in self._fields:
            name, kind, _ = self._fields[number]
            raise DecodeError(f"proto: wrong wireType = {tag & 7} for field {_go_name(name, kind)}")
        return _skip(data, at, tag & 7)

    # -------------------------------------------------------------- compilation

    def _compile(self) -> dict[int, _Slot]:
        slots = {}
        for number, (name, kind, label) in self._fields.items():
            wire = _DELIMITED if label == "map" else _WIRES.get(kind, _DELIMITED)
            slots[number << 3 | wire] = self._slot(name, kind, label, wire)
        return slots

    def _slot(self, name: str, kind: str, label: str, wire: int) -> _Slot:
        is_kept = bool(label) or self._keep_zeros
        if label == "map":
            return _APART, name, is_kept, _map(name, self._value(kind), wire=_WIRES.get(kind, _DELIMITED))
        if kind == "string" and label != "repeated":
            return _TEXT, name, is_kept, _unused
        value = self._value(kind)
        if label == "repeated":
            put = _item(name, value, math.inf if kind in SCALARS else MAX_ITEMS)
        elif kind in SCALARS:
            put = _scalar(name, SCALARS[kind], is_kept=is_kept)
        elif not name:
            put = lambda obj, data, depth: value(data, depth + 1, obj)  # noqa: E731
        else:
            put = (_shaped if kind in SPECIAL else _nested)(name, value, is_kept=is_kept)
        if wire == _FIXED64:
            return _APART, name, is_kept, _fixed(put)
        return _NUMBER if wire == _VARINT else _BYTES, name, is_kept, put

    def _value(self, kind: str) -> _Read:
        """The function that reads a value of this kind from its number or bytes."""
        scalar = SCALARS.get(kind)
        if scalar is not None:
            return lambda value, depth, into: scalar(value)
        return self._decoder.reader(kind)


def decode(data: bytes, message_of: Callable[[str, str], str | None], decoder: Decoder) -> Object:
    """Decodes an enveloped object, with the envelope's apiVersion and kind. `message_of(apiVersion, kind)` names its message.

    Raises DecodeError for invalid bytes and for a kind without a message.
    """
    api_version, kind, raw = unwrap(data)
    name = message_of(api_version, kind)
    if name is None:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **decoder.message(name)(raw)}


def unwrap(data: bytes) -> tuple[str, str, bytes]:
    """Returns an envelope's apiVersion, kind and message. Raises DecodeError for an invalid one."""
    if not data:
        raise DecodeError("empty data")
    if not data.startswith(MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    if len(data) == len(MAGIC):
        raise DecodeError("empty body")
    parts = _unwrap(data[len(MAGIC) :])
    type_meta = parts.get("typeMeta", {})
    return type_meta.get("apiVersion", ""), type_meta.get("kind", ""), parts.get("raw", b"")


# -------------------------------------------------------------------------- wire


def _truncated(tag: int) -> int:
    """The tag with the number that Go reads, an int32."""
    return signed32(tag >> 3) << 3 | tag & 7


def _too_long(size: int) -> DecodeError:
    return DecodeError("proto: negative length found during unmarshaling" if size >= 1 << 63 else "unexpected EOF")


def _read(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    """Returns a value, a number or bytes, and its end."""
    size = _SIZES.get(wire, 0)
    if not size:
        size, at = _varint(data, at)
        if wire == _VARINT:
            return size, at
    if at + size > len(data):
        raise _too_long(size)
    return data[at : at + size], at + size


def _skip(data: bytes, at: int, wire: int) -> int:
    """Returns the end of a field of unknown number; groups, which nothing uses, may nest."""
    depth = 0
    while True:
        if wire == _START_GROUP:
            depth += 1
        elif wire == _END_GROUP:
            if not depth:
                raise DecodeError("proto: unexpected end of group")
            depth -= 1
        elif wire > _FIXED32:
            raise DecodeError(f"proto: illegal wireType {wire}")
        else:
            _, at = _read(data, at, wire)
        if not depth:
            return at
        tag, at = _varint(data, at)
        wire = tag & 7


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if shift > 63:
            if at >= len(data):
                raise DecodeError("unexpected EOF")
            raise DecodeError("proto: integer overflow")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at


_INITIALS: Final = re.compile(r"^(uid|ip|url|api|id|fs|tls|dns|http|tcp|ttl)(?=[A-Z]|s?$)")


def _go_name(json_name: str, kind: str) -> str:
    """Returns Go's name of a field: embedded structs go by their type."""
    if json_name in ("", "metadata"):
        return kind.rpartition(".")[2]
    if json_name == "-":
        return "Raw"
    name = _INITIALS.sub(lambda match: match[0].upper(), json_name)
    return name[0].upper() + name[1:]


# ------------------------------------------------------------------------ fields


def _unused(obj: Object, value: Any, depth: int) -> None:
    """A text is put into the object where it is read, since most fields are texts."""


def _scalar(name: str, convert: Callable[[Any], Any], *, is_kept: bool) -> _Put:
    def put(obj: Object, value: Any, depth: int) -> None:
        item = convert(value)
        if item or is_kept:
            obj[name] = item
        elif name in obj:
            del obj[name]  # a zero by value

    return put


def _nested(name: str, read: _Read, *, is_kept: bool) -> _Put:
    def put(obj: Object, value: bytes, depth: int) -> None:
        item = read(value, depth + 1, obj.get(name) or {})
        if item or value or is_kept:
            obj[name] = item
        else:
            obj.pop(name, None)

    return put


def _shaped(name: str, read: _Read, *, is_kept: bool) -> _Put:
    """The function that puts in a message with a JSON form of its own."""

    def put(obj: Object, value: bytes, depth: int) -> None:
        item = read(value, depth + 1, None)
        if item or is_kept or item == "" or (value and item is not None):
            obj[name] = item
        else:
            obj.pop(name, None)

    return put


def _item(name: str, read: _Read, most: float) -> _Put:
    def put(obj: Object, value: Any, depth: int) -> None:
        item = read(value, depth + 1, {})
        items = obj.get(name)
        if items is None:
            obj[name] = [item]
        elif len(items) >= most:
            raise DecodeError(f"{name} has more than {most} items")
        else:
            items.append(item)

    return put


def _fixed(put: _Put) -> _Put:
    def put_apart(obj: Object, data: bytes, at: int, depth: int) -> int:
        value, end = _read(data, at, _FIXED64)
        put(obj, value, depth)
        return end

    return put_apart


def _map(name: str, read: _Read, *, wire: int) -> _Put:
    """Entries are read as what they must be whatever their tags say; gogo lets them go on behind the entry's end."""
    empty: Any = 0 if wire == _VARINT else b""

    def put_apart(obj: Object, data: bytes, at: int, depth: int) -> int:
        size, at = _varint(data, at)
        end = after = at + size
        if end > len(data):
            raise _too_long(size)
        key, item = b"", empty
        while at < end:
            tag, at = _varint(data, at)
            if tag >> 3 == 1:
                key, at = _read(data, at, _DELIMITED)
            elif tag >> 3 == 2:
                item, at = _read(data, at, wire)
            else:
                at = _skip(data, at, tag & 7)
                if at > end:
                    raise DecodeError("unexpected EOF")
        obj.setdefault(name, {})[text(key)] = read(item, depth + 1, {})
        return after

    return put_apart


_unwrap: Final = Decoder(_ENVELOPE).message("Unknown")
