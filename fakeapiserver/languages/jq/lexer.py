"""Words of a query."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from fakeapiserver.languages.jq.errors import JqSyntaxError

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<field>\.[A-Za-z_]\w*)
    |(?P<variable>\$[A-Za-z_]\w*(?:::\w+)*)
    |(?P<format>@[A-Za-z_]\w*)
    |(?P<name>[A-Za-z_]\w*(?:::\w+)*)
    |(?P<quote>")
    |(?P<operator>\?//=|//=|\|=|\+=|-=|\*=|/=|%=|==|!=|<=|>=|\?//|//|\.\.|[.\[\](){},:;|=<>+\-*/%?$])
    """,
    re.X | re.A,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}


class Token(NamedTuple):
    """A token of kind number, field, variable, format, name, string, operator or end.

    A string's parts are texts and, between them, the tokens of interpolations.
    """

    kind: str
    text: str
    at: int
    parts: "tuple[str | tuple[Token, ...], ...]" = ()


def tokens(source: str) -> tuple[Token, ...]:
    """JqSyntaxError."""
    return _Lexer(source).all()


class _Lexer:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def all(self) -> tuple[Token, ...]:
        tokens = tuple(self._until(closing=False))
        return (*tokens, Token("end", "", self._at))

    def _until(self, *, closing: bool) -> Iterator[Token]:
        """`closing`: up to the parenthesis that ends an interpolation."""
        depth = 0
        while self._at < len(self._source):
            match = _TOKEN.match(self._source, self._at)
            if match is None:
                raise JqSyntaxError(f"unexpected {self._source[self._at]!r} at {self._at}")
            kind, text, at = match.lastgroup or "", match.group(), self._at
            self._at = match.end()
            if kind == "space":
                continue
            if kind == "quote":
                yield self._string(at)
                continue
            if text == "(":
                depth += 1
            elif text == ")":
                depth -= 1
                if closing and depth < 0:
                    return
            yield Token(kind, text, at)
        if closing:
            raise JqSyntaxError("unterminated string")

    def _string(self, at: int) -> Token:
        parts: list[str | tuple[Token, ...]] = []
        text: list[str] = []
        while True:
            if self._at >= len(self._source):
                raise JqSyntaxError("unterminated string")
            char = self._source[self._at]
            self._at += 1
            if char == '"':
                parts.append("".join(text))
                return Token("string", self._source[at : self._at], at, tuple(parts))
            if char != "\\":
                text.append(char)
                continue
            escape = self._source[self._at : self._at + 1]
            self._at += 1
            if escape == "(":
                parts.append("".join(text))
                text = []
                start = self._at
                parts.append((*self._until(closing=True), Token("end", "", start)))
            elif escape == "u":
                text.append(self._unicode())
            elif escape in _ESCAPES and escape:
                text.append(_ESCAPES[escape])
            else:
                raise JqSyntaxError(f"invalid escape sequence \\{escape} in string literal")

    def _unicode(self) -> str:
        match = re.compile(r"[0-9a-fA-F]{4}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?").match(self._source, self._at)
        if match is None:
            raise JqSyntaxError("invalid \\u escape in string literal")
        digits = match.group()
        if digits[0] not in "dD" or digits[1] not in "89abAB":
            digits = digits[:4]
        self._at += len(digits)
        character: str = json.loads(f'"\\u{digits}"')
        return "�" if len(character) == 1 and 0xD800 <= ord(character) < 0xE000 else character
