"""Expressions to tokens.

Upstream: github.com/google/cel-go/parser/gen/CEL.g4, parser/unescape.go
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from fakeapiserver.languages.cel.errors import Issue

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = "|".join(
    (
        r'[rR]""".*?"""|[rR]\'\'\'.*?\'\'\'|[rR]"[^"\n\r]*"|[rR]\'[^\'\n\r]*\'',
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_TOKEN: Final = re.compile(
    rf"""(?P<SPACE>[\t \r\n\f]+|//[^\n]*)
|(?P<BYTES>[bB](?:{_STRING.replace(" ", "[ ]")}))
|(?P<STRING>{_STRING})
|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
|(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_./\x20-]+`)
|(?P<SYMBOL>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])""".replace("\n", ""),
    re.DOTALL,
)
_WORDS: Final = frozenset({"in", "true", "false", "null"})
_HALF_ESCAPE: Final = r"(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?)?"
# How far the lexer gets into a text that doesn't end.
_BROKEN: Final = (
    (
        '"',
        re.compile(
            rf'"(?:{_ESCAPE}|[^\\"\n\r])*{_HALF_ESCAPE}',
            re.DOTALL,
        ),
    ),
    (
        "'",
        re.compile(
            rf"'(?:{_ESCAPE}|[^\\'\n\r])*{_HALF_ESCAPE}",
            re.DOTALL,
        ),
    ),
    ("`", re.compile(r"`[A-Za-z0-9_./ -]*")),
    ("&", re.compile("&")),
    ("|", re.compile(r"\|")),
    ("=", re.compile("=")),
)
_SIMPLE: Final = dict(zip("abfnrtv\\'\"`?", "\a\b\f\n\r\t\v\\'\"`?", strict=True))


class Token(NamedTuple):
    """`kind` is the grammar's name, or the text itself for symbols and words."""

    kind: str
    text: str
    at: int


END: Final = "<EOF>"


def tokens(source: str) -> tuple[list[Token], list[Issue]]:
    """The tokens, an end after them, and what is no token."""
    issues: list[Issue] = []
    return [*_scan(source, issues), Token(END, END, len(source))], issues


def _scan(source: str, issues: list[Issue]) -> Iterator[Token]:
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            end = _broken_end(source, at)
            shown = source[at:end].replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
            issues.append(Issue(at, f"Syntax error: token recognition error at: '{shown}'"))
            at = end
            continue
        kind, text = str(match.lastgroup), match.group()
        if kind != "SPACE":
            yield Token(text if kind == "SYMBOL" or text in _WORDS else kind, text, at)
        at = match.end()


def _broken_end(source: str, at: int) -> int:
    """Behind the character that fits no token."""
    for first, pattern in _BROKEN:
        if source[at] == first and (match := pattern.match(source, at)):
            return min(match.end() + 1, len(source))
    return at + 1


class UnescapeError(ValueError):
    """An escape that the lexer let pass and that means nothing."""


def unescape(text: str, *, is_bytes: bool = False) -> str | bytes:
    """The value of a literal with its quotes. In bytes `\\xff` and `\\377` are single bytes, elsewhere code points."""
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    quotes = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    body = quoted[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        return body.encode() if is_bytes else body
    parts = [_unescape_one(part, is_bytes) for part in re.findall(rf"{_ESCAPE}|[^\\]+", body)]
    return (
        b"".join(part.encode() if isinstance(part, str) else part for part in parts)
        if is_bytes
        else "".join(map(str, parts))
    )


def _unescape_one(part: str, is_bytes: bool) -> str | bytes:
    if part[0] != "\\":
        return part
    if part[1] in _SIMPLE:
        return _SIMPLE[part[1]]
    octal = part[1] in "0123"
    code = int(part[1:], 8) if octal else int(part[2:], 16)
    if is_bytes:
        if part[1] in "uU":
            raise UnescapeError("unable to unescape string")
        return bytes([code])
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise UnescapeError("invalid unicode code point")
    return chr(code)
