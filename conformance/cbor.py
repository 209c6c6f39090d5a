r"""CBOR as data: what recordings hold of such answers, and what scenarios send.

A document is written down as JSON. Its texts are byte strings, as Kubernetes writes them; what JSON lacks is an object with one key:
`{"$text": "a"}` a text string, `{"$bytes": "ff"}` a byte string that is no text, `{"$tag": [22, value]}`, `{"$map": [[key, value], …]}`
a map with any keys, `{"$indefinite": value}` a list or map (or of chunks: `[text, …]` under "$chunks") of no given length,
`{"$hex": "f7"}` bytes as they are, `{"$hex": "81", "times": 3}` three times, and `{"$sequence": [value, …]}` one after another.

    encoded({"kind": "Pod"})                    -> b"\xa1DkindCPod"
    decoded(b"\xd9\xd9\xf7\xa1DkindCPod")       -> {"kind": "Pod"}
"""

import math
import struct
from collections.abc import Callable
from typing import Any, Final

MEDIA_TYPE: Final = "application/cbor"
SEQUENCE: Final = "application/cbor-seq"
_SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"
_SIMPLE: Final = {20: False, 21: True, 22: None}
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}


# ---------------------------------------------------------------- what is sent


def encoded(value: Any) -> bytes:
    """The bytes of a document; without a tag in front, unless the value has one."""
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, str):
        return _string(2, value.encode())
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(map(encoded, value))
    return _object(value)


def _object(value: dict[str, Any]) -> bytes:
    for key, encode in _FORMS.items():
        if key in value:
            return encode(value)
    return _head(5, len(value)) + b"".join(encoded(key) + encoded(item) for key, item in value.items())


def _map(value: dict[str, Any]) -> bytes:
    pairs = value["$map"]
    return _head(5, len(pairs)) + b"".join(encoded(key) + encoded(item) for key, item in pairs)


def _indefinite(value: dict[str, Any]) -> bytes:
    content = value["$indefinite"]
    if isinstance(content, list):
        return b"\x9f" + b"".join(map(encoded, content)) + b"\xff"
    if "$chunks" in content:
        chunks = b"".join(map(encoded, content["$chunks"]))
        return (b"\x7f" if chunks[:1] and chunks[0] >> 5 == 3 else b"\x5f") + chunks + b"\xff"
    return b"\xbf" + b"".join(encoded(key) + encoded(item) for key, item in content.items()) + b"\xff"


_FORMS: Final[dict[str, Callable[[dict[str, Any]], bytes]]] = {
    "$text": lambda value: _string(3, value["$text"].encode()),
    "$bytes": lambda value: _string(2, bytes.fromhex(value["$bytes"])),
    "$tag": lambda value: _head(6, value["$tag"][0]) + encoded(value["$tag"][1]),
    "$map": _map,
    "$indefinite": _indefinite,
    "$sequence": lambda value: b"".join(map(encoded, value["$sequence"])),
    "$hex": lambda value: bytes.fromhex(value["$hex"]) * value.get("times", 1),
}


def _string(major: int, content: bytes) -> bytes:
    return _head(major, len(content)) + content


def _head(major: int, argument: int) -> bytes:
    if argument < 24:
        return bytes((major << 5 | argument,))
    size = next(size for size in (1, 2, 4, 8) if argument < 1 << (8 * size))
    return bytes((major << 5 | 24 + size.bit_length() - 1,)) + argument.to_bytes(size, "big")


# ---------------------------------------------------------- what was answered


def decoded(data: bytes) -> Any:
    """Decodes a document, which must have CBOR's self-describing tag. Raises ValueError if the data is invalid."""
    value, end = _document(data, 0)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes after the document")
    return value


def decoded_events(data: bytes) -> list[Any]:
    """The events of a watch: a sequence of documents, each with another one inside."""
    found, at = [], 0
    while at < len(data):
        event, at = _document(data, at)
        _, inner = event["object"]["$tag"]
        found.append({**event, "object": inner})
    return found


def _document(data: bytes, at: int) -> tuple[Any, int]:
    if not data.startswith(_SELF_DESCRIBED, at):
        raise ValueError(f"no CBOR document: {data[at : at + 20]!r}")
    return _item(data, at + len(_SELF_DESCRIBED))


def _item(data: bytes, at: int) -> tuple[Any, int]:
    """The item at a place, and where the next one is."""
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    argument = info
    if info >= 24:
        size = 1 << (info - 24)
        raw, at = data[at : at + size], at + size
        argument = int.from_bytes(raw, "big")
        if major == 7:
            value = struct.unpack(_FLOATS[info], raw)[0]
            if not math.isfinite(value):
                raise ValueError(f"{value} is no value that JSON has")
            return value, at
    if major in (0, 1):
        return argument if major == 0 else -1 - argument, at
    if major in (2, 3):
        return _text(data[at : at + argument], is_text=major == 3), at + argument
    if major == 6:
        inner, at = _item(data, at)
        return {"$tag": [argument, inner]}, at
    if major == 7:
        return _SIMPLE[argument], at
    values = []
    for _ in range(argument * (2 if major == 5 else 1)):
        value, at = _item(data, at)
        values.append(value)
    return values if major == 4 else dict(zip(values[::2], values[1::2], strict=True)), at


def _text(content: bytes, *, is_text: bool) -> Any:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {"$bytes": content.hex()}
    return {"$text": text} if is_text else text
