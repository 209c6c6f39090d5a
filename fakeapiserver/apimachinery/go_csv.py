"""Comma-separated values as Go reads them, with its errors.

Upstream: encoding/csv/reader.go.
"""

from collections.abc import Iterator
from typing import Final

_QUOTE: Final = 'extraneous or missing " in quoted-field'
_BARE: Final = 'bare " in non-quoted-field'


def records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Every record with the line that it begins on. ValueError names line and column, counted in bytes from 1."""
    lines, number = _lines(text), 0
    while number < len(lines):
        if lines[number] in ("", "\n"):
            number += 1
            continue
        reader = _Record(lines, number)
        yield number + 1, reader.fields()
        number = reader.line + 1


def record(text: str) -> list[str]:
    """The first record; none for an empty text. ValueError."""
    return next((fields for _, fields in records(text)), [])


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n".replace("\r\n", "\n") for line in text.split("\n")]
    return lines[:-1] if text.endswith("\n") or not text else [*lines[:-1], text.rpartition("\n")[2].removesuffix("\r")]


class _Record:
    """Parses a record; `line` is the reader's position."""

    def __init__(self, lines: list[str], start: int) -> None:
        self._lines, self._start, self.line = lines, start, start
        self._rest, self._column = lines[start], 1

    def fields(self) -> list[str]:
        fields: list[str] = []
        while True:
            field, goes_on = self._quoted() if self._rest.startswith('"') else self._plain()
            fields.append(field)
            if not goes_on:
                return fields

    def _plain(self) -> tuple[str, bool]:
        field, comma, rest = self._rest.partition(",")
        field = field if comma else field.removesuffix("\n")
        if '"' in field:
            raise self._error(_BARE, self._column + _size(field.partition('"')[0]))
        self._skip(field + comma, rest)
        return field, bool(comma)

    def _quoted(self) -> tuple[str, bool]:
        text = ""
        self._skip('"', self._rest[1:])
        while True:
            piece, quote, rest = self._rest.partition('"')
            text += piece
            if not quote:
                self._next_line(piece)
                continue
            self._skip(piece + quote, rest)
            if rest.startswith('"'):
                text += '"'
                self._skip('"', rest[1:])
            elif rest.startswith(","):
                self._skip(",", rest[1:])
                return text, True
            elif rest in ("", "\n"):
                return text, False
            else:
                raise self._error(_QUOTE, self._column - 1)

    def _next_line(self, piece: str) -> None:
        """A quoted field goes on there."""
        if self.line + 1 >= len(self._lines) or not self._lines[self.line + 1]:
            raise self._error(_QUOTE, self._column + _size(piece))
        self.line += 1
        self._rest, self._column = self._lines[self.line], 1

    def _skip(self, text: str, rest: str) -> None:
        self._column += _size(text)
        self._rest = rest

    def _error(self, what: str, column: int) -> ValueError:
        begun = f"record on line {self._start + 1}; " if self.line != self._start else ""
        return ValueError(f"{begun}parse error on line {self.line + 1}, column {column}: {what}")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
