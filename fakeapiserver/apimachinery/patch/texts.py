"""Scalars by their text, which is what `test` of a JSON patch compares, and the values a patch wrote in texts of its own.

Upstream: gopkg.in/evanphx/json-patch.v4/patch.go (lazyNode).
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.serializer import deep_json, json

# Go's encoder writes these as escapes, and `test` sees what it writes.
_HTML: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
_SEPARATORS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


# A valid JSON text; or, where it is too deep for msgspec, dicts and lists with the texts of their scalars.
Text = bytes | dict[str, Any] | list[Any]
raw_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
raw_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def opened(text: Text) -> Text:
    """The members or items of a text; a scalar's text as it is. Raises msgspec.DecodeError."""
    if not isinstance(text, bytes):
        return text
    first = text[:1]
    try:
        if first == b"{":
            return {key: bytes(raw) for key, raw in raw_object(text).items()}
        return [bytes(raw) for raw in raw_array(text)] if first == b"[" else text
    except RecursionError:
        opened: Text = deep_json.texts(text)
        return opened


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


def equal(value: Any, text: Text) -> bool:
    """Reports whether a value of the document equals a JSON text. Raises Panic for nulls in lists."""
    text = opened(text)
    try:
        if isinstance(text, dict):
            return type(value) is dict and _equal_objects(value, text)
        if isinstance(text, list):
            return type(value) is list and _equal_arrays(value, text)
    except RecursionError:
        return continued(equal, value, text)
    if type(value) in (dict, list):
        return False
    return bool((value.text if type(value) is Written else go_text(value)) == text)


def _equal_objects(value: dict[str, Any], texts: dict[str, Any]) -> bool:
    if value.keys() != texts.keys():
        return False
    for key, text in texts.items():
        item, null = value[key], text == b"null"
        if null != (item is None) or not (null or equal(item, text)):
            return False
    return True


def _equal_arrays(value: list[Any], texts: list[Any]) -> bool:
    if len(value) != len(texts):
        return False
    for item, text in zip(value, texts, strict=True):
        if item is None or text == b"null":
            raise Panic
        if not equal(item, text):
            return False
    return True


def with_texts(value: Any, text: Text) -> Any:
    """The value itself, or a copy in which the scalars whose text is not Go's own carry it."""
    text = opened(text)
    try:
        if isinstance(text, dict):
            members = {key: None if item is None else with_texts(item, text[key]) for key, item in value.items()}
            return members if any(members[key] is not value[key] for key in value) else value
        if isinstance(text, list):
            pairs = zip(value, text, strict=True)
            items = [None if item is None else with_texts(item, raw) for item, raw in pairs]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    except RecursionError:
        return continued(with_texts, value, text)
    return value if value is not None and go_text(value) == text else Written(value, text)


def plain(value: Any) -> Any:
    """The value with every Written replaced by what it stands for."""
    try:
        if type(value) is dict:
            return {key: plain(item) for key, item in value.items()}
        if type(value) is list:
            return [plain(item) for item in value]
    except RecursionError:
        return continued(plain, value)
    return value.value if type(value) is Written else value
