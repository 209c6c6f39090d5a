r"""Protobuf as data, without knowing any message: what recordings hold of such answers, and what scenarios send.

A message is a list of [field number, value]: a number, a text, a message, or {"hex": …} for bytes that are neither. Bytes that read
as text are text, so an empty message is "". Order, and zeros that are written all the same, are kept: two equal forms are equal bytes.

    decoded(b"k8s\x00…")    -> [[1, [[1, "v1"], [2, "Namespace"]]], [2, [[1, [[1, "default"], …]]]], [3, ""], [4, ""]]
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_DIGITS: Final = re.compile(r"\d+\Z")
# A Timestamp: seconds of these years, then nanoseconds.
_TIMES: Final = range(10**9, 4 * 10**9)

Message = list[list[Any]]


def decoded(data: bytes) -> Any:
    """Decodes an object in its envelope. Raises ValueError if the data is no such object."""
    if not data.startswith(_MAGIC):
        raise ValueError(f"no protobuf object: {data[:20]!r}")
    return _message(data[len(_MAGIC) :])


def decoded_frames(data: bytes) -> list[Any]:
    """The events of a watch, each of them after its length in four bytes."""
    found, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        (_, kind), (_, raw) = _fields(data[at + 4 : end], nested=bytes)
        ((_, enveloped),) = _fields(raw, nested=bytes)
        found.append({"type": kind.decode(), "object": decoded(enveloped)})
        at = end
    return found


def encoded(message: Any) -> bytes:
    """The object whose decoded form this is."""
    return _MAGIC + _encoded(message)


def plain(value: Any) -> Any:
    """A message without what a server chooses freely: revisions, continue tokens, times. Identities stay: they are text."""
    if not isinstance(value, list):
        return value
    numbers = [field[0] for field in value]
    if numbers == [1, 2] and isinstance(value[0][1], int) and value[0][1] in _TIMES:
        return "TIME"
    message = [[number, plain(item)] for number, item in value]
    if numbers[:8] == [1, 2, 3, 4, 5, 6, 7, 8]:
        _hide(message, 5)  # ObjectMeta.resourceVersion
    elif numbers[:3] == [1, 2, 3] and value[0][1] == "" and isinstance(value[1][1], str):
        _hide(message, 1)  # ListMeta.resourceVersion
        _hide(message, 2)
    return message


def _hide(message: Message, at: int) -> None:
    if isinstance(message[at][1], str) and message[at][1]:
        message[at][1] = "FREE" if at == 2 or _DIGITS.match(message[at][1]) else message[at][1]


def _message(data: bytes) -> Any:
    return [list(field) for field in _fields(data, nested=_value)]


def _value(data: bytes) -> Any:
    text = _text(data)
    if text is not None and text.isprintable():
        return text
    try:
        return _message(data)
    except (ValueError, IndexError):
        return text if text is not None else {"hex": data.hex()}


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _fields(data: bytes, nested: Callable[[bytes], Any]) -> Iterator[tuple[int, Any]]:
    """IndexError or ValueError where these are no fields; `nested` reads what is delimited."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise ValueError("no field has the number 0")
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"wire type {wire}")
        size, at = _varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
        if at + size > len(data):
            raise ValueError("too short")
        piece, at = data[at : at + size], at + size
        yield number, nested(piece) if wire == 2 else {f"fixed{size * 8}": piece.hex()}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if shift > 70:
            raise ValueError("a number without end")
        if byte < 128:
            return value, at


def _encoded(value: Any) -> bytes:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else b"".join(_field(*field) for field in value)


def _field(number: int, value: Any) -> bytes:
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    if isinstance(value, dict):
        ((form, digits),) = value.items()
        data = bytes.fromhex(digits)
        if form != "hex":
            return _number(number << 3 | (1 if form == "fixed64" else 5)) + data
    else:
        data = value.encode() if isinstance(value, str) else _encoded(value)
    return _number(number << 3 | 2) + _number(len(data)) + data


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
