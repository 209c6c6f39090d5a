"""The errors of expressions, in cel-go's words.

Upstream: github.com/google/cel-go/common/{error,errors}.go
"""

from typing import NamedTuple

_MAX_SNIPPET = 16384
# Upstream stops at the first error after these.
_MAX_ERRORS = 100


class Issue(NamedTuple):
    """`at` is an offset in code points, or None where the source has no such place."""

    at: int | None
    message: str


class CompileError(Exception):
    """Syntax or type errors; str() shows them with the lines they are in. `first` is the message of the one that was found first."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.first = issues[0].message if issues else ""
        lines = source.split("\n")
        places = sorted(((*_place(lines, issue.at), issue.message) for issue in issues), key=lambda item: item[:2])
        truncated = ["1 more errors were truncated"] if len(places) > _MAX_ERRORS else []
        super().__init__("\n".join([*(_shown(lines, *item) for item in places[:_MAX_ERRORS]), *truncated]))


class CelError(Exception):
    """An evaluation's error: no such key, overflow …"""


class Aborted(Exception):
    """The end of an evaluation, which no operator absorbs."""


class CostLimitError(Aborted):
    """An evaluation that would cost too much."""


def no_such_overload() -> CelError:
    return CelError("no such overload")


def _place(lines: list[str], at: int | None) -> tuple[int, int]:
    """Line from 1, column from 0."""
    if at is None:
        return -1, -1
    for number, line in enumerate(lines, 1):
        if at <= len(line):
            return number, at
        at -= len(line) + 1
    return len(lines), len(lines[-1])


def _shown(lines: list[str], line: int, column: int, message: str) -> str:
    if lines == [""]:  # cel-go finds no place in a source that is empty
        return f"ERROR: <input>:1:0: {message}"
    text = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if not 1 <= line <= len(lines) or len(lines[line - 1].encode()) > _MAX_SNIPPET:
        return text
    snippet = lines[line - 1].replace("\t", " ")
    dots = "".join("．" if ord(c) > 0x7F else "." for c in snippet[:column])
    wide = ord(snippet[column]) > 0x7F if column < len(snippet) else False
    return f"{text}\n | {snippet}\n | {dots}{'＾' if wide else '^'}"
