r"""Protobuf messages as Structs: a field's number is the annotation of its type.

    class Example(Message):
        key: Annotated[bytes, 1] = b""
        revision: Annotated[int, 4] = 0

>>> class Example(Message):
...     key: Annotated[bytes, 1] = b""
...     revision: Annotated[int, 4] = 0
>>> encode(Example(b"a", 300))
b'\n\x01a \xac\x02'
>>> decode(Example, b"\n\x01a \xac\x02")
Example(key=b'a', revision=300)

A field has one of these types: int (int64 on the wire; identifiers that are unsigned in etcd are read like that, too), bool, bytes, str, a
message, or a tuple of bytes, str or messages. A field that may be None is part of a oneof: None isn't written, and a zero is. Fields
of other numbers are skipped, as those of a later version.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from fakeapiserver.apimachinery.serializer.protobuf.wire import DELIMITED, VARINT, delimited, tag, varint


class Message(Struct, frozen=True):
    """The base of all messages. Every field has a default."""


class DecodeError(ValueError):
    """Bytes that are not a message of the expected form."""


MessageT = TypeVar("MessageT", bound=Message)
_Write = Callable[[Any], bytes]
# What a value becomes once its bytes are cut out.
_AMOUNT, _BOOL, _BYTES, _TEXT, _MESSAGE, _BYTES_LIST, _TEXT_LIST, _MESSAGE_LIST = range(8)
_LIST: Final = _BYTES_LIST - _BYTES  # the distance of a kind's list
_KINDS: Final[dict[type, int]] = {int: _AMOUNT, bool: _BOOL, bytes: _BYTES, str: _TEXT}
_SIZES: Final = {1: 8, 5: 4}  # of fixed64 and fixed32, which etcd's messages don't have
# A field as it is read: what its value becomes, its index among the Struct's fields, and the message it holds.
_Slot = tuple[int, int, type["Message"]]


class _Form(NamedTuple):
    """The compiled fields of a message: the defaults in order, the indices of repeated fields, the slot of each tag, and
    (name, value that isn't written, writer)."""

    defaults: list[Any]
    repeated: tuple[int, ...]
    slots: dict[int, _Slot]
    writers: tuple[tuple[str, Any, _Write], ...]


def encode(message: Message) -> bytes:
    """The bytes of a message, its fields in the order of the Struct."""
    parts = []
    for name, absent, write in _form(type(message)).writers:
        value = getattr(message, name)
        if value != absent:
            parts.append(write(value))
    return b"".join(parts)


def decode(kind: type[MessageT], data: bytes) -> MessageT:
    """Reads a message. Raises DecodeError if the bytes aren't one."""
    try:
        return _decode(kind, data, 0, len(data))
    except IndexError:
        raise DecodeError(f"the {kind.__name__} ends within a field") from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"a text in the {kind.__name__} is not UTF-8: {error.reason}") from None


# A message may hold itself, so the forms of parts are compiled when they are met.
@cache
def _form(kind: type[Message]) -> _Form:
    """Returns the compiled fields of a message."""
    defaults: list[Any] = []
    slots: dict[int, _Slot] = {}
    writers = []
    hints = get_type_hints(kind, include_extras=True)
    for index, field in enumerate(fields(kind)):
        declared, number = get_args(hints[field.name])
        repeated = get_origin(declared) is tuple
        item = get_args(declared)[0] if repeated else declared
        if isinstance(item, UnionType):
            (item,) = (part for part in get_args(item) if part is not NoneType)
        code = _KINDS.get(item, _MESSAGE)
        wire = VARINT if code in (_AMOUNT, _BOOL) else DELIMITED
        defaults.append(field.default)
        slots[number << 3 | wire] = (code + _LIST * repeated, index, item if code == _MESSAGE else Message)
        writers.append((field.name, field.default, _writer(number, code, repeated)))
    repeated_at = tuple(index for code, index, _ in slots.values() if code > _MESSAGE)
    return _Form(defaults, repeated_at, slots, tuple(writers))


def _writer(number: int, kind: int, repeated: bool) -> _Write:
    if kind in (_AMOUNT, _BOOL):
        start = tag(number, VARINT)
        return lambda value: start + varint(value)
    write = delimited(number)
    single: _Write = write
    if kind == _TEXT:
        single = lambda value: write(value.encode())  # noqa: E731
    elif kind == _MESSAGE:
        single = lambda value: write(encode(value))  # noqa: E731
    return (lambda values: b"".join(map(single, values))) if repeated else single


def _decode(kind: type[MessageT], data: bytes, at: int, end: int) -> MessageT:
    defaults, repeated, slots, _ = _form(kind)
    values = defaults.copy()
    for index in repeated:
        values[index] = []
    while at < end:
        key = data[at]
        at += 1
        if key > 127:
            key, at = _varint(data, at - 1)
        slot = slots.get(key)
        if slot is None:
            at = _skip(data, at, key)
            continue
        amount = data[at]
        at += 1
        if amount > 127:
            second = data[at]
            if second < 128:
                amount += (second << 7) - 128
                at += 1
            else:
                amount, at = _varint(data, at - 1)
        code, index, message = slot
        if code == _AMOUNT:
            values[index] = amount if amount < 1 << 63 else amount - (1 << 64)
        elif code == _BOOL:
            values[index] = amount > 0
        else:
            start, at = at, at + amount
            if at > end:
                break
            if code == _BYTES:
                values[index] = data[start:at]
            elif code == _MESSAGE_LIST:
                values[index].append(_decode(message, data, start, at))
            elif code == _MESSAGE:
                values[index] = _decode(message, data, start, at)
            else:
                _put_rare(values, code, index, data[start:at])
    if at != end:
        raise DecodeError(f"the {kind.__name__} ends within a field")
    for index in repeated:
        values[index] = tuple(values[index])
    return kind(*values)


def _put_rare(values: list[Any], code: int, index: int, part: bytes) -> None:
    """Puts in what few messages have: texts, and lists of texts and bytes."""
    if code == _TEXT:
        values[index] = part.decode()
    else:
        values[index].append(part.decode() if code == _TEXT_LIST else part)


def _skip(data: bytes, at: int, key: int) -> int:
    """Returns the end of a field that isn't known."""
    wire = key & 7
    if wire == VARINT:
        while data[at] > 127:
            at += 1
        return at + 1
    if wire == DELIMITED:
        size, at = _varint(data, at)
        return at + size
    if wire not in _SIZES:
        raise DecodeError(f"a field has the wire type {wire}")
    return at + _SIZES[wire]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    amount, shift = byte & 127, 7
    at += 1
    while byte > 127:
        if shift > 63:
            raise DecodeError("a number has more than ten bytes")
        byte = data[at]
        at += 1
        amount |= (byte & 127) << shift
        shift += 7
    return amount & 0xFFFFFFFFFFFFFFFF, at
