"""A JSON parser with Go's rules: its errors word for word, its repairs of bad text, its depth limit, duplicate keys.

Upstream: sigs.k8s.io/json/internal/golang/encoding/json (scanner.go, decode.go). Only used where the fast decoder gives up
or a key is repeated. It keeps its own stack, so depth is limited by the rule and not by Python.
"""

import codecs
import math
import re
from typing import Any, Final, Self

from fakeapiserver.apimachinery.go.quote import go_quote

MAX_DEPTH: Final = 10_000
_MAX_STRICT_ERRORS: Final = 100
_END: Final = "unexpected end of JSON input"
_WITHIN: Final = (
    "in literal",
    "in numeric literal",
    "after decimal point",
    "in exponent",
    "in \\u hexadecimal",
    "in string escape",
)
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_SPACES: Final = frozenset((b" ", b"\t", b"\r", b"\n"))
_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_DIGITS: Final = re.compile(rb"[0-9]*")
_HEX: Final = re.compile(rb"[0-9a-fA-F]*")
# What is as it should be, in one step: all else is read piece by piece, so that the complaint is of the right piece.
_KEY: Final = re.compile(rb'[ \t\r\n]*"([^"\\\x00-\x1f]*)"[ \t\r\n]*:[ \t\r\n]*')
_TEXT: Final = re.compile(rb'"([^"\\\x00-\x1f]*)"')
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=[ \t\r\n]*[,}\]])")
_ESCAPES: Final = {
    0x22: '"',
    0x5C: "\\",
    0x2F: "/",
    0x62: "\b",
    0x66: "\f",
    0x6E: "\n",
    0x72: "\r",
    0x74: "\t",
}
_LITERALS: Final[dict[int, tuple[bytes, Any]]] = {
    0x74: (b"true", True),
    0x66: (b"false", False),
    0x6E: (b"null", None),
}


class DecodeError(ValueError):
    """The body cannot be read; the text is upstream's."""


class NumberTooLarge(DecodeError):
    """The body has a number beyond float64. `number` is its text."""

    def __init__(self, number: str) -> None:
        super().__init__(f"json: cannot unmarshal number {number} into Go value of type float64")
        self.number = number


class YAMLError(DecodeError):
    """The body cannot be read as YAML, or no JSON can be made of it."""


class UnsupportedMapKey(YAMLError):
    """A key of a map has a type of which JSON makes no text."""


def _one_bad_byte(error: UnicodeError) -> tuple[str, int]:
    # Go replaces every bad byte on its own; Python's "replace" joins those of one sequence.
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


codecs.register_error("fakeapiserver-go", _one_bad_byte)


class Repeated(dict[str, Any]):
    """An object that has a key more than once: `pairs` are its members in the order of the text. As a map it has the last of each."""

    __slots__ = ("pairs",)

    def __init__(self, members: dict[str, Any]) -> None:
        super().__init__(members)
        self.pairs = list(members.items())

    def __setitem__(self, key: str, value: Any) -> None:
        self.pairs.append((key, value))
        super().__setitem__(key, value)


class Written(float):
    """A number with a fraction or an exponent that knows how it was written; nothing encodes it: see `json.rounded`."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


class JSONParser:
    """Parses `data` once; `duplicates` then holds the paths of repeated keys (`spec.containers[0].name`), in order.

    With `merge` objects that repeat a key are `Repeated`, and `first_at` and `repeated_at` have the places in the
    text of a path's key and
    of its first repetition. With `written` floats are `Written`."""

    def __init__(self, data: bytes, *, merge: bool = False, written: bool = False) -> None:
        self.data = data
        self.at = 0
        self.merge, self.written = merge, written
        self.duplicates: list[str] = []
        self.first_at: dict[str, int] = {}
        self.repeated_at: dict[str, int] = {}
        self._containers: list[Any] = []
        self._keys: list[Any] = []
        self._paths: list[str] = []  # of the open containers

    def parse(self) -> Any:
        """The value; raises DecodeError."""
        value, opened = self._begin_value()
        while True:
            value, opened = self._step_in() if opened else self._step_out(value)
            if not opened and not self._containers:
                break
        self._space()
        if self.at < len(self.data):
            raise self._bad("after top-level value")
        return value

    def _step_in(self) -> tuple[Any, bool]:
        """Just after `{` or `[`: the first member, or the empty container."""
        self._space()
        if self._peek() == (b"}" if isinstance(self._containers[-1], dict) else b"]"):
            return self._close()
        return self._member()

    def _step_out(self, value: Any) -> tuple[Any, bool]:
        """Just after a value: store it, then go on with the next member or close the container."""
        if not self._containers:
            return value, False
        container = self._containers[-1]
        is_object = isinstance(container, dict)
        if is_object:
            container[self._keys[-1]] = value
        else:
            container.append(value)
        self._space()
        char = self._peek()
        if char == b",":
            self.at += 1
            return self._member()
        if char == (b"}" if is_object else b"]"):
            return self._close()
        raise self._bad("after object key:value pair" if is_object else "after array element")

    def _close(self) -> tuple[Any, bool]:
        self.at += 1
        self._keys.pop()
        self._paths.pop()
        return self._containers.pop(), False

    def _member(self) -> tuple[Any, bool]:
        container = self._containers[-1]
        if isinstance(container, list):
            self._keys[-1] = len(container)
            return self._begin_value()
        match = _KEY.match(self.data, self.at)
        if match:
            key = match[1].decode("utf-8", "fakeapiserver-go")
            self.at = match.end()
        else:
            key = self._key()
        self._keys[-1] = key
        if self.merge:
            self.first_at.setdefault(self._path(), self.at)
        if key in container:
            self._note_duplicate()
        return self._begin_value()

    def _key(self) -> str:
        self._space()
        if self._peek() != b'"':
            raise self._bad("looking for beginning of object key string")
        key = self._string()
        self._space()
        if self._peek() != b":":
            raise self._bad("after object key")
        self.at += 1
        return key

    def _path(self) -> str:
        """Returns the path of the next value; empty for the whole document."""
        if not self._keys:
            return ""
        path, key = self._paths[-1], self._keys[-1]
        return f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else str(key)

    def _note_duplicate(self) -> None:
        path = self._path()
        self.repeated_at.setdefault(path, self.at)
        if self.merge and not isinstance(self._containers[-1], Repeated):
            self._containers[-1] = Repeated(self._containers[-1])
        if path not in self.duplicates and len(self.duplicates) < _MAX_STRICT_ERRORS:
            self.duplicates.append(path)

    def _begin_value(self) -> tuple[Any, bool]:
        """The next value and False, or (None, True) where it opened a container."""
        self._space()
        char = self._peek()
        if char in (b"{", b"["):
            if len(self._containers) >= MAX_DEPTH:
                raise self._bad("exceeded max depth")
            self.at += 1
            self._paths.append(self._path())
            self._containers.append({} if char == b"{" else [])
            self._keys.append(None)
            return None, True
        if char == b'"':
            return self._string(), False
        if char == b"-" or char.isdigit():
            return self._number(), False
        if char and char[0] in _LITERALS:
            return self._literal(*_LITERALS[char[0]]), False
        raise self._bad("looking for beginning of value")

    def _literal(self, word: bytes, value: Any) -> Any:
        for i in range(1, len(word)):
            self.at += 1
            if self._peek() != word[i : i + 1]:
                raise self._bad(f"in literal {word.decode()} (expecting '{chr(word[i])}')")
        self.at += 1
        return value

    def _number(self) -> int | float:
        start = self.at
        if match := _NUMBER.match(self.data, start):
            self.at = match.end()
            return self._read(match[0].decode())
        if self._peek() == b"-":
            self.at += 1
        if self._peek() == b"0":
            self.at += 1
        else:
            self._digits("in numeric literal")
        if self._peek() == b".":
            self.at += 1
            self._digits("after decimal point in numeric literal")
        if self._peek() in (b"e", b"E"):
            self.at += 1
            if self._peek() in (b"+", b"-"):
                self.at += 1
            self._digits("in exponent of numeric literal")
        return self._read(self.data[start : self.at].decode())

    def _read(self, text: str) -> int | float:
        try:
            number = _to_number(text)
        except NumberTooLarge:
            if not self.written:
                raise
            return Written(text)
        return Written(text) if self.written and type(number) is float else number

    def _digits(self, context: str) -> None:
        end = self._end_of(_DIGITS)
        if end == self.at:
            raise self._bad(context)
        self.at = end

    def _string(self) -> str:
        if match := _TEXT.match(self.data, self.at):
            self.at = match.end()
            return match[1].decode("utf-8", "fakeapiserver-go")
        parts: list[str] = []
        self.at += 1
        while True:
            end = self._end_of(_PLAIN)
            parts.append(self.data[self.at : end].decode("utf-8", "fakeapiserver-go"))
            self.at = end
            char = self._peek()
            if char == b'"':
                self.at += 1
                return "".join(parts)
            if char != b"\\":
                raise self._bad("in string literal")
            self.at += 1
            parts.append(self._escape())

    def _escape(self) -> str:
        char = self._peek()
        if char and char[0] in _ESCAPES:
            self.at += 1
            return _ESCAPES[char[0]]
        if char != b"u":
            raise self._bad("in string escape code")
        code = self._hex4()
        if not 0xD800 <= code < 0xE000:
            return chr(code)
        if code < 0xDC00 and self.data[self.at : self.at + 2] == b"\\u":
            before = self.at
            self.at += 1
            low = self._hex4()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + low - 0xDC00)
            self.at = before
        return "\ufffd"

    def _hex4(self) -> int:
        start = self.at + 1
        match = _HEX.match(self.data, start, min(start + 4, len(self.data)))
        self.at = match.end() if match else start
        if self.at - start < 4:
            raise self._bad("in \\u hexadecimal character escape")
        return int(self.data[start : self.at], 16)

    def _space(self) -> None:
        if self.data[self.at : self.at + 1] in _SPACES:
            self.at = self._end_of(_SPACE)

    def _end_of(self, pattern: re.Pattern[bytes]) -> int:
        match = pattern.match(self.data, self.at)
        return match.end() if match else self.at

    def _peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def _bad(self, context: str) -> DecodeError:
        if self.at >= len(self.data):
            # At the end Go's scanner is shown a space, which only the inside of a word, number or escape refuses.
            return DecodeError(f"invalid character ' ' {context}" if context.startswith(_WITHIN) else _END)
        return DecodeError(f"invalid character {_quote_char(self.data[self.at])} {context}")


def _quote_char(code: int) -> str:
    special = {0x27: r"'\''", 0x22: "'\"'"}
    return special.get(code) or "'" + go_quote(chr(code))[1:-1] + "'"


def _to_number(text: str) -> int | float:
    if not any(c in text for c in ".eE"):
        whole = int(text) if len(text) < 25 else 2**63
        if -(2**63) <= whole < 2**63:
            return whole
    value = float(text)
    if math.isinf(value):
        raise NumberTooLarge(text)
    return value
