"""Values that Go keeps as the text they came in, and compares as such.

Upstream: k8s.io/apimachinery/pkg/runtime (RawExtension in types.go, extension.go, converter.go).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from fakeapiserver.apimachinery.go.quote import html_escaped
from fakeapiserver.apimachinery.meta import FieldPath
from fakeapiserver.apimachinery.serializer import json

_Shape = TypeVar("_Shape")

_SPACES: Final = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
_INDEX: Final = re.compile(r"\[\d+\]")


class RawText(dict[str, Any]):
    """A map with the text that Go has of it; empty: the stored one's, as Go has written it."""

    __slots__ = ("text",)

    def __init__(self, value: dict[str, Any], text: str) -> None:
        super().__init__(value)
        self.text = text


def marshalled(text: str) -> str:
    """The text as it is inside of an object that Go has written."""
    return html_escaped(_SPACES.sub(lambda match: match[1] or "", text))


def rebuilt(value: Any) -> str:
    """The text of a value that went through Go's maps."""
    return html_escaped(json.encode_plainly_sorted(value).decode())


Steps = tuple[str | int, ...]


def keep(obj: dict[str, Any], paths: Sequence[FieldPath], data: bytes) -> None:
    """Gives the maps at the paths ("*" is each item of a list) the texts that they have in a JSON document, in place. Where there is
    no document it is the one of Go's maps."""
    for path in paths:
        _at(obj, path, data, _kept)


def keep_stored(obj: dict[str, Any], paths: Sequence[FieldPath], data: bytes) -> None:
    """Does what `keep` does, for an object that Go has read from storage and written again, in the order of that
    document.
    """
    for path in paths:
        _at(obj, path, data, lambda value, text: RawText(_read(text, dict[str, Any]) or value, ""))


def take(obj: dict[str, Any], paths: Sequence[FieldPath], same: dict[str, Any] | None) -> None:
    """Gives the object what `same`, which says the same in another order, has at the paths, in place."""
    for path in paths:
        for steps, value in found(same, path):
            target: Any = obj
            for step in steps[:-1]:
                target = target[step]
            target[steps[-1]] = value


def found(obj: Any, path: FieldPath, at: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Yields the values at a path with their places."""
    if not path:
        if obj is not None:
            yield at, obj
    elif path[0] == "*":
        for i, item in enumerate(obj if isinstance(obj, list) else ()):
            yield from found(item, path[1:], (*at, i))
    elif isinstance(obj, dict):
        yield from found(obj.get(path[0]), path[1:], (*at, path[0]))


def inside(field: str, paths: Sequence[FieldPath]) -> bool:
    """Reports whether a field (`spec.config[0].opaque.parameters.a`) is within what is kept as text."""
    steps = tuple(_INDEX.sub(".*", field).split("."))
    return any(len(steps) > len(path) and steps[: len(path)] == tuple(path) for path in paths)


def _at(value: Any, path: FieldPath, data: bytes, change: Callable[[dict[str, Any], bytes], RawText]) -> None:
    step, rest = path[0], path[1:]
    if step == "*":
        texts = _read(data, list[msgspec.Raw]) or ()
        for i, item in enumerate(value if isinstance(value, list) else ()):
            _at(item, rest, bytes(texts[i]) if i < len(texts) else b"", change)
        return
    inner = value.get(step) if isinstance(value, dict) else None
    if inner is None:
        return
    text = bytes((_read(data, dict[str, msgspec.Raw]) or {}).get(step, b""))
    if rest:
        _at(inner, rest, text, change)
    elif isinstance(inner, dict):
        value[step] = change(inner, text)


def _kept(value: dict[str, Any], text: bytes) -> RawText:
    """With the numbers that the text has, whatever their size, and in its order."""
    if not text:
        made = rebuilt(value)
        return RawText(_read(made.encode(), dict[str, Any]) or value, made)
    return RawText(_read(text, dict[str, Any]) or value, text.decode(errors="replace"))


def _read(data: bytes, shape: type[_Shape]) -> _Shape | None:
    try:
        return msgspec.json.decode(data, type=shape) if data else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
