"""Values that Go keeps as the text they came in, and compares as such.

Upstream: k8s.io/apimachinery/pkg/runtime (RawExtension in types.go, extension.go, converter.go).
"""

import re
from typing import Any, Final

import msgspec

_SPACES: Final = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
_ESCAPES: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


class RawText(dict[str, Any]):
    """A map with the text that Go has of it; empty: the stored one's, as Go has written it."""

    __slots__ = ("text",)

    def __init__(self, value: dict[str, Any], text: str) -> None:
        super().__init__(value)
        self.text = text


def marshalled(text: str) -> str:
    """The text as it is inside of an object that Go has written."""
    return _SPACES.sub(lambda match: match[1] or "", text).translate(_ESCAPES)


def rebuilt(value: Any) -> str:
    """The text of a value that went through Go's maps."""
    return msgspec.json.encode(value, order="deterministic").decode().translate(_ESCAPES)


def text_in(data: bytes, name: str) -> str:
    """The text of an object's member, empty if it has none."""
    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get(name)
    except msgspec.DecodeError:
        return ""
    return bytes(found).decode(errors="replace") if found is not None else ""
