"""Suggestions for unknown words: "did you mean"."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from fakeapiserver.cli.arguments import UnknownFlag
from fakeapiserver.cli.manual.choices import choices
from fakeapiserver.cli.manual.commands import commands, find_flag
from fakeapiserver.spelling import closest

_FLAG: Final = re.compile(r"--([a-z][a-z0-9-]*)")
# Flags with another name in other commands: `serve --name` names the server that `clock --server` means.
_ELSEWHERE: Final = {"name": "server", "server": "name"}
_QUOTED: Final = re.compile(r"""["']([\w.-]+)["']|: (\w+)$""")


def suggestion(error: Exception, command: str) -> str:
    """Returns the suggestion that follows the error's sentence, or "".

    `command` is the command that raised the error.
    """
    if isinstance(error, UnknownFlag):
        return close_flag(error, command)
    for word, known in _values(str(error), command):
        if word not in known and (match := closest(word, known)):
            return f"; did you mean {match}?"
    return ""


def close_flag(error: UnknownFlag, command: str) -> str:
    name = error.flag.replace("_", "-")
    if match := closest(name, error.known):
        return f"; did you mean --{match}?"
    if _ELSEWHERE.get(name) in error.known:
        return f"; did you mean --{_ELSEWHERE[name]}?"
    owners = [other.name for other in commands().values() if other.name != command and find_flag(other, name)]
    if not owners:
        return ""
    *others, last = owners
    return f"; it belongs to {', '.join(others)} and {last}" if others else f"; it belongs to {last}"


def _values(message: str, command: str) -> Iterator[tuple[str, Collection[str]]]:
    """The words that a message quotes, each with the values that the flag of the message may have. A message without a flag may be
    about any of the command's."""
    entry = commands().get(command)
    if entry is None:
        return
    flags = {name: flag for topic in entry.topics.values() for name, flag in topic.items() if flag.choices}
    named = [name for name in _FLAG.findall(message) if name in flags] or flags
    known = {value for flag in named for value in choices(flags[flag].choices)}
    for quoted, last in _QUOTED.findall(message):
        yield (quoted or last).removeprefix("-"), known
