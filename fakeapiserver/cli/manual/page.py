"""The layout of the manual's pages in a terminal."""

import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from fakeapiserver.apis.recorded import NEWEST, read_table
from fakeapiserver.cli.manual import controller_manager_flags, kube_apiserver_flags
from fakeapiserver.cli.manual.commands import commands, find_flag
from fakeapiserver.cli.manual.entry import Command, Flag
from fakeapiserver.cli.manual.overview import WIDTH
from fakeapiserver.cli.manual.topics import TOPICS

_COLUMN: Final = 34
# The table of a command's recorded flags, and those of them that have no effect here.
_RECORDED: Final = {
    "serve": ("flags.json", kube_apiserver_flags.WITHOUT_EFFECT),
    "run": ("flags.json", kube_apiserver_flags.WITHOUT_EFFECT),
    "controller-manager": ("controller_manager_flags.json", controller_manager_flags.WITHOUT_EFFECT),
}
# The placeholder for a value, by the type that upstream's help shows.
_VALUES: Final = {
    "bool": "",
    "duration": "DURATION",
    "float": "NUMBER",
    "float32": "NUMBER",
    "int": "N",
    "int32": "N",
    "int32Slice": "LIST",
    "ip": "ADDRESS",
    "stringArray": "LIST",
    "strings": "LIST",
}


def topic_page(name: str) -> str:
    """Raises KeyError if there is no such topic."""
    topic = TOPICS[name]
    parts = [f"{name}: {topic.summary}\n", _prose(topic.text)]
    if topic.command:
        command = commands()[topic.command]
        parts += [_flags(command, title, command.topics[title]) for title in topic.flags]
    return "\n".join(parts)


def command_page(name: str) -> str:
    """Returns the output of `fakeapiserver NAME --help`. Raises KeyError for an unknown command."""
    command = commands()[name]
    parts = [f"usage: fakeapiserver {command.usage}\n", _prose(command.text)]
    if command.first:
        first = {flag: flag_help for flag in command.first if (flag_help := find_flag(command, flag))}
        parts.append(
            "Flags that people use first:\n" + "".join(_entry(command, *item, example=True) for item in first.items())
        )
    for title, flags in command.topics.items():
        if rest := {flag: entry for flag, entry in flags.items() if flag not in command.first}:
            parts.append(_flags(command, title, rest))
    return "\n".join(parts)


def _prose(text: str) -> str:
    """Wraps paragraphs; indented ones are shown as they are."""
    paragraphs = (
        part if part.startswith(" ") else textwrap.fill(part, WIDTH, break_on_hyphens=False)
        for part in text.split("\n\n")
    )
    return "\n\n".join(paragraphs) + "\n"


def _flags(command: Command, title: str, flags: Mapping[str, Flag]) -> str:
    return f"{title} flags:\n" + "".join(_entry(command, name, flag) for name, flag in flags.items())


def _entry(command: Command, name: str, flag: Flag, *, example: bool = False) -> str:
    recorded, without_effect = _recorded(command.name)
    left = f"  --{name} {_value(flag, recorded.get(name, ''))}".rstrip() + (" *" if name in without_effect else "")
    default = flag.default or _recorded_default(command.name, name)
    sentence = f"{flag.text} (default: {default})" if default else flag.text
    lines = textwrap.wrap(sentence, WIDTH - _COLUMN, break_on_hyphens=False)
    if example and flag.example:
        lines.append(f"Example: {flag.example}")
    return "\n".join(_columns(left, lines)) + "\n"


def _columns(left: str, lines: list[str]) -> Iterator[str]:
    if len(left) >= _COLUMN - 1:
        yield left
    else:
        yield f"{left:{_COLUMN}}{lines.pop(0)}"
    for line in lines:
        yield " " * _COLUMN + line


def _value(flag: Flag, flag_type: str) -> str:
    """The placeholder. A flag of upstream's with an unlisted type takes a text; one of ours says what it takes, or is a boolean."""
    return flag.value or _VALUES.get(flag_type, "TEXT" if flag_type else "")


def takes_value(command: Command, name: str, flag: Flag) -> bool:
    """Reports whether a value must follow the flag."""
    return (name != "version" and bool(_value(flag, _recorded(command.name)[0].get(name, "")))) or bool(flag.choices)


def _recorded(command: str) -> tuple[Mapping[str, str], frozenset[str]]:
    """The types of upstream's flags, and the names of those without effect."""
    if command not in _RECORDED:
        return {}, frozenset()
    table, without_effect = _RECORDED[command]
    types: Mapping[str, str] = _table(table)["flags"]
    return types, without_effect


def _recorded_default(command: str, name: str) -> str:
    table, _ = _RECORDED.get(command, ("", None))
    default: str = _table(table).get("defaults", {}).get(name, "") if table else ""
    return default.strip("[]")


@cache
def _table(name: str) -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = read_table(NEWEST, name)
    return table
