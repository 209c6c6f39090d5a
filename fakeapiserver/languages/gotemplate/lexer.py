"""Splits a template into tokens (upstream: text/template/parse/lex.go)."""

import re
from typing import Final, NamedTuple

from fakeapiserver.languages.gotemplate.values import TemplateError

_SPACE: Final = " \t\r\n"
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<comment>/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<raw>`[^`]*`)
    |(?P<char>'(?:[^'\\\n]|\\.)+')
    |(?P<number>[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))
    |(?P<field>\.[^\W\d]\w*)
    |(?P<variable>\$\w*)
    |(?P<name>[^\W\d]\w*)
    |(?P<operator>:=|[.|(),=])
    """,
    re.X | re.S,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.S)


class Token(NamedTuple):
    """A token of an action. `end` closes it. `line`: its line, from 1."""

    kind: str
    text: str
    line: int


def lex(text: str) -> list[Token]:
    """Tokens of texts (kind text) and of actions, each action closed by an `end`."""
    tokens: list[Token] = []
    at, line, trims = 0, 1, False
    while at < len(text):
        start = text.find("{{", at)
        piece = text[at:] if start < 0 else text[at:start]
        begin = line
        line += piece.count("\n")
        if trims:
            piece = piece.lstrip(_SPACE)
        if start < 0:
            if piece:
                tokens.append(Token("text", piece, begin))
            break
        at = start + 2
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] in tuple(_SPACE):
            piece = piece.rstrip(_SPACE)
            at += 2
        if piece:
            tokens.append(Token("text", piece, begin))
        at, trims, line = _lex_action(text, at, line, tokens)
    tokens.append(Token("eof", "", line))
    return tokens


def _lex_action(text: str, at: int, line: int, tokens: list[Token]) -> tuple[int, bool, int]:
    """(behind it, whether it trims what follows, the line there)"""
    count, last, commented = len(tokens), "", False
    while True:
        if text.startswith("}}", at) or (text[at : at + 1] in tuple(_SPACE) and text.startswith("-}}", at + 1)):
            trims = not text.startswith("}}", at)
            if len(tokens) > count or not commented:
                tokens.append(Token("end", "}}", line))
            return at + (4 if trims else 2), trims, line
        if text.startswith("-}}", at) and not last:
            return at + 3, True, line
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at : at + 1]
            if not rest:
                raise TemplateError(f"template: _:{line}: unclosed action")
            what = "unterminated quoted string" if rest in "\"'`" else f"unexpected {rest!r} in command"
            raise TemplateError(f"template: _:{line}: {what}")
        kind, word = match.lastgroup or "", match.group()
        if (
            kind in ("field", "number", "string", "name")
            and last in ("number", "string", "raw", "char", "name")
            and kind != "field"
        ):
            raise TemplateError(f"template: _:{line}: bad character {word[0]!r} in command")
        commented = commented or kind == "comment"
        if kind == "comment" and len(tokens) > count:
            raise TemplateError(f"template: _:{line}: unexpected comment in command")
        if (kind == "field" and last not in ("", "space", "operator")) or (
            kind == "field" and last == "operator" and tokens[-1].text == ")"
        ):
            tokens.append(Token("chained", word, line))
        elif kind not in ("space", "comment"):
            tokens.append(Token(kind, word, line))
        if kind == "space" and last and tokens[-1].kind != "space":
            tokens.append(Token("space", " ", line))
        line += word.count("\n")
        last = "" if kind == "comment" else kind
        at = match.end()


def unquoted(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        two, four, eight, octal, other = match.groups()
        if two or four or eight:
            return chr(int(two or four or eight, 16))
        return chr(int(octal, 8)) if octal else _ESCAPES.get(other, other)

    return _ESCAPE.sub(char, text[1:-1])
