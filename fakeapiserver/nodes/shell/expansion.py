"""Expansion of a command's words: variables, arithmetic, output of commands, fields, and patterns of files. Pure.

Upstream: POSIX.1-2017, Shell Command Language, 2.6.
"""

import re
from collections.abc import Generator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from fakeapiserver.nodes.shell import tree
from fakeapiserver.nodes.shell.arithmetic import evaluate
from fakeapiserver.nodes.shell.events import STDERR, STEP_TEXT, Event, Exit, bounded
from fakeapiserver.nodes.shell.tree import NotFollowed, Word

if TYPE_CHECKING:
    from fakeapiserver.nodes.shell.interpreter import Shell

_MAX_WORDS: Final = 10_000
_GLOB: Final = re.compile(r"[*?\[]")


def expanded(shell: "Shell", words: Sequence[Word]) -> Generator[Event, str, list[str]]:
    """The fields of several words."""
    fields: list[str] = []
    for word in words:
        fields += yield from _fields(shell, word)
        if len(fields) > _MAX_WORDS:
            raise NotFollowed(f"more than {_MAX_WORDS} words")
    shell.count(sum(map(len, fields)) // STEP_TEXT)
    return fields


def _fields(shell: "Shell", word: Word) -> Generator[Event, str, list[str]]:
    """The fields of a word: its unquoted expansions are split at blanks, and its patterns match files."""
    fields: list[str] = []
    current: str | None = None
    is_pattern = False
    for part in word.parts:
        if isinstance(part, tree.Variable) and part.name == "@" and part.quoted:
            fields += shell.positional[1:]
            continue
        text = yield from _value(shell, part)
        if isinstance(part, tree.Literal) or part.quoted:
            is_pattern |= isinstance(part, tree.Literal) and not part.quoted and bool(_GLOB.search(text))
            current = (current or "") + text
            continue
        pieces = text.split()
        if pieces and text[0].isspace() and current is not None:
            fields.append(current)
            current = None
        for piece in pieces[:-1]:
            fields.append((current or "") + piece)
            current = None
        if pieces:
            current = (current or "") + pieces[-1]
            if text[-1].isspace():
                fields.append(current)
                current = None
    if current is not None:
        fields.append(bounded(current))
    return _matches(shell, fields[0]) or fields if is_pattern and len(fields) == 1 else fields


def _matches(shell: "Shell", pattern: str) -> list[str]:
    path = shell.path(pattern)
    return sorted(
        known
        for known in (*shell.files, *shell.directories)
        if known.count("/") == path.count("/") and known != "/" and fnmatchcase(known, path)
    )


def text_of(shell: "Shell", word: Word) -> Generator[Event, str, str]:
    """The text of a word that isn't split."""
    texts = []
    for part in word.parts:
        texts.append((yield from _value(shell, part)))
    return bounded("".join(texts))


def _value(shell: "Shell", part: tree.Part) -> Generator[Event, str, str]:
    match part:
        case tree.Literal(text):
            return text
        case tree.Arithmetic(expression):
            return str(evaluate(expression, shell.variables))
        case tree.Substitution(body):
            return (yield from shell.output(body))
        case tree.Variable(name, _, operator, operand):
            value = shell.variable(name)
            if operator == "#":
                return str(len(value or ""))
            is_set = bool(value) if operator.startswith(":") else value is not None
            if operator[-1:] == "+":
                return (yield from text_of(shell, operand)) if is_set and operand else ""
            if is_set or operand is None:
                return value or ""
            other = yield from text_of(shell, operand)
            if operator[-1:] == "?":
                yield from shell.write(f"sh: {name}: {other or 'parameter not set'}\n", STDERR)
                raise Exit(2)
            if operator[-1:] == "=":
                shell.assign(name, other)
            return other
    raise AssertionError(part)
