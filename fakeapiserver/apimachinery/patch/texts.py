"""Scalars by their text, which is what `test` of a JSON patch compares, and the values a patch wrote in texts of its own.

Upstream: gopkg.in/evanphx/json-patch.v4/patch.go (lazyNode).
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.serializer import json

# Go's encoder writes these as escapes, and `test` sees what it writes.
_HTML: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
_SEPARATORS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))
raw_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
raw_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Panic(Exception):
    """Upstream's library panics here and the server drops the connection."""


class Written(Struct, frozen=True):
    """A scalar a patch put into the document in a text of its own (`1.0`, `"\\u0031"`, null), which a later `test` would see."""

    value: Any
    text: bytes


def go_text(value: Any) -> bytes:
    """Compact JSON as Go's encoder writes it, which is what `test` and the limit on copies see."""
    text = json.encode(value)
    for plain, escaped in _HTML:
        text = text.replace(plain, escaped)
    if b"\xe2\x80" in text:
        for plain, escaped in _SEPARATORS:
            text = text.replace(plain, escaped)
    return text


def equal(value: Any, text: bytes) -> bool:
    """Reports whether a value of the document equals a JSON text. Raises Panic for nulls in lists."""
    if text[:1] == b"{":
        return type(value) is dict and _equal_objects(value, raw_object(text))
    if text[:1] == b"[":
        return type(value) is list and _equal_arrays(value, raw_array(text))
    if type(value) in (dict, list):
        return False
    return (value.text if type(value) is Written else go_text(value)) == text


def _equal_objects(value: dict[str, Any], texts: dict[str, msgspec.Raw]) -> bool:
    if value.keys() != texts.keys():
        return False
    for key, text in texts.items():
        item, null = value[key], bytes(text) == b"null"
        if null != (item is None) or not (null or equal(item, bytes(text))):
            return False
    return True


def _equal_arrays(value: list[Any], texts: list[msgspec.Raw]) -> bool:
    if len(value) != len(texts):
        return False
    for item, text in zip(value, texts, strict=True):
        if item is None or bytes(text) == b"null":
            raise Panic
        if not equal(item, bytes(text)):
            return False
    return True


def with_texts(value: Any, text: bytes) -> Any:
    """The value itself, or a copy in which the scalars whose text is not Go's own carry it."""
    if type(value) is dict:
        texts = raw_object(text)
        members = {key: None if item is None else with_texts(item, bytes(texts[key])) for key, item in value.items()}
        return members if any(members[key] is not value[key] for key in value) else value
    if type(value) is list:
        pairs = zip(value, raw_array(text), strict=True)
        items = [None if item is None else with_texts(item, bytes(raw)) for item, raw in pairs]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value if value is not None and go_text(value) == text else Written(value, text)


def plain(value: Any) -> Any:
    """The value with every Written replaced by what it stands for."""
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
    if type(value) is list:
        return [plain(item) for item in value]
    return value.value if type(value) is Written else value
