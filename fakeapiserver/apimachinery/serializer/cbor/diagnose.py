"""A document as text, in the notation of RFC 8949 section 8, which some of upstream's messages show.

Upstream: github.com/fxamacker/cbor/v2/diagnose.go.
"""

import struct
from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery.serializer.cbor.wire import (
    ARRAY,
    BREAK,
    BYTES,
    FLOAT_FORMATS,
    INDEFINITE,
    MAP,
    NEGATIVE,
    PRIMITIVE,
    TAG,
    TEXT,
    UNSIGNED,
    head,
)
from fakeapiserver.apimachinery.serializer.json import go_float

_SIMPLE: Final = {20: "false", 21: "true", 22: "null", 23: "undefined"}
_ESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}


def diagnose(data: bytes) -> str:
    """Returns a well-formed document as text; hexadecimal if a text in it is invalid."""
    try:
        return "".join(_items(data))
    except ValueError:
        return data.hex()


def _items(data: bytes) -> Iterator[str]:
    """Keeps its own stack: (what closes the container, items to come or -1, items seen, whether a map)."""
    at, stack = 0, list[tuple[str, int, int, bool]]()
    while True:
        if stack:
            closing, left, seen, is_map = stack.pop()
            if left == 0 or (left < 0 and data[at] == BREAK):
                at += left < 0
                yield closing
                if not stack:
                    return
                continue
            if seen:
                yield ": " if is_map and seen % 2 else ", "
            stack.append((closing, left - 1 if left > 0 else left, seen + 1, is_map))
        major, info, argument, content = head(data, at)
        if info == INDEFINITE:
            at = content
            opening = _opening(major, data[at])
            if opening.endswith("_"):
                at += 1
                yield opening
            else:
                yield opening
                stack.append(({ARRAY: "]", MAP: "}"}.get(major, ")"), -1, 0, major == MAP))
        elif major in (ARRAY, MAP, TAG):
            at = content
            yield f"{argument}(" if major == TAG else "[" if major == ARRAY else "{"
            count = 1 if major == TAG else argument * (2 if major == MAP else 1)
            stack.append(({ARRAY: "]", MAP: "}"}.get(major, ")"), count, 0, major == MAP))
        else:
            at = content + argument if major in (BYTES, TEXT) else content
            yield _scalar(major, info, argument, data[content:at], data[max(0, content - 8) : content])
        if not stack:
            return


def _opening(major: int, following: int) -> str:
    """Returns the opening of an item without a given length; strings without chunks are written whole."""
    if major in (ARRAY, MAP):
        return "[_ " if major == ARRAY else "{_ "
    if following == BREAK:
        return "''_" if major == BYTES else '""_'
    return "(_ "


def _scalar(major: int, info: int, argument: int, content: bytes, encoded: bytes) -> str:
    if major == UNSIGNED:
        return str(argument)
    if major == NEGATIVE:
        return str(-1 - argument)
    if major == TEXT:
        return _quoted(content.decode(), '"')
    if major == BYTES:
        return _byte_string(content)
    assert major == PRIMITIVE
    if info in FLOAT_FORMATS:
        kind = FLOAT_FORMATS[info]
        return _float(struct.unpack(kind, encoded[-struct.calcsize(kind) :])[0])
    return _SIMPLE.get(argument) or f"simple({argument})"


def _byte_string(content: bytes) -> str:
    try:
        return _quoted(content.decode(), "'") if content else "h''"
    except UnicodeDecodeError:
        return f"h'{content.hex()}'"


def _quoted(text: str, quote: str) -> str:
    if "\ufffd" in text:
        raise ValueError("upstream takes this character for bytes that are no text")
    return quote + "".join(_character(character, quote) for character in text) + quote


def _character(character: str, quote: str) -> str:
    if character == quote:
        return "\\" + quote
    if character in _ESCAPES:
        return _ESCAPES[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _float(value: float) -> str:
    text = go_float(value)
    if "." in text:
        return text
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}.0{exponent}{power}"
