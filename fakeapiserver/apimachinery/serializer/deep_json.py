"""JSON that is deeper than C's encoders and decoders go, without calls within each other."""

import re
from typing import Any, Final, Literal

import msgspec

_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_OPENING: Final = frozenset((b"{", b"["))
_CLOSING: Final = frozenset((b"}", b"]"))


def encode(value: Any, *, order: Literal["deterministic"] | None) -> bytes:
    """Does what msgspec's encoder does. Text of the result is bytes among the values that are left."""
    write = msgspec.json.Encoder(order=order).encode
    out: list[bytes] = []
    left: list[Any] = [value]
    while left:
        item = left.pop()
        if item.__class__ is bytes:
            out.append(item)
        elif isinstance(item, dict) and item:
            left.append(b"}")
            for key in reversed(sorted(item) if order else list(item)):
                left += (item[key], write(key) + b":", b",")
            left[-1] = b"{"
        elif isinstance(item, list | tuple) and item:
            left.append(b"]")
            for inner in reversed(item):
                left += (inner, b",")
            left[-1] = b"["
        else:
            out.append(write(item))
    return b"".join(out)


def texts(text: bytes) -> Any:
    """A valid JSON text as dicts and lists in which scalars are their texts. Raises msgspec.DecodeError for a key that isn't UTF-8."""
    open_values: list[Any] = []
    keys: list[str | None] = []
    value: Any = None
    for match in _TOKENS.finditer(text):
        token = match[0]
        if token in _OPENING:
            open_values.append({} if token == b"{" else [])
            keys.append(None)
            continue
        if token in (b",", b":"):
            continue
        if token in _CLOSING:
            value = open_values.pop()
            keys.pop()
        elif open_values and keys[-1] is None and open_values[-1].__class__ is dict:
            keys[-1] = msgspec.json.decode(token, type=str)
            continue
        else:
            value = token
        if open_values:
            _place(open_values[-1], keys, value)
    return value


def _place(container: Any, keys: list[str | None], value: Any) -> None:
    if container.__class__ is list:
        container.append(value)
    else:
        container[keys[-1]] = value
        keys[-1] = None
