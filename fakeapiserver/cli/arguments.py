"""Reads command lines: flags as Go's programs take them, their values, and errors for wrong ones.

Upstream: github.com/spf13/pflag, k8s.io/component-base/cli/flag.
"""

import ipaddress
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import parse_bool, parse_int, parse_uint

LAST_PORT: Final = 65535
MOST: Final = (1 << 31) - 1
OUTPUTS: Final = ("text", "json")


class UsageError(ValueError):
    """The command line is wrong; the text is one sentence that says what to do."""


class InvalidArgument(UsageError):
    """A value that can't be read, in Go's words."""


class UnknownFlag(UsageError):
    """A flag that the command doesn't have. `flag` is its name without dashes, `known` are the command's flags."""

    def __init__(self, word: str, known: Collection[str]) -> None:
        super().__init__(f"unknown flag: {word}")
        self.flag = word.lstrip("-")
        self.known = known


def read_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def read_boolean(text: str) -> bool:
    try:
        return parse_bool(text)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def read_integer(text: str) -> int:
    try:
        return parse_int(text)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def read_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidArgument(f"strconv.ParseFloat: parsing {go_quote(text)}: invalid syntax") from None
    if not isfinite(number):
        raise InvalidArgument(f"strconv.ParseFloat: parsing {go_quote(text)}: value out of range")
    return number


def read_duration(text: str) -> float:
    """Seconds."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def is_number(text: str, most: int) -> bool:
    """Reports whether `text` is a decimal number from 0 to `most`."""
    try:
        return parse_uint(text) <= most
    except ValueError:
        return False


def port(flag: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not is_number(text, LAST_PORT):
            raise UsageError(f"--{flag} must be a number from 0 to {LAST_PORT}, not {text!r}")
        return parse_uint(text)

    return read


def count(flag: str, most: int = MOST) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not is_number(text, most):
            raise UsageError(f"--{flag}: {go_quote(text)} is not a number from 0 to {most}")
        return parse_uint(text)

    return read


def level(text: str) -> int:
    """The value of --v."""
    if not is_number(text.removeprefix("-"), MOST):
        raise UsageError(f"--v must be a number, not {text!r}")
    return parse_int(text)


def address(flag: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            raise UsageError(f"--{flag} must be an IP address, not {text!r}") from None

    return read


def choice(flag: str, *choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise UsageError(f"--{flag} must be {' or '.join(choices)}, not {text!r}")
        return text

    return read


def path(flag: str) -> Callable[[str], Path]:
    """Reads the path of a file."""
    return lambda value: Path(text(flag)(value))


def paths(flag: str) -> Callable[[str], tuple[Path]]:
    """Reads a path, as a list of one: the flag may be repeated."""
    return lambda value: (Path(text(flag)(value)),)


def text(flag: str) -> Callable[[str], str]:
    """Reads a text that mustn't be empty."""

    def read(value: str) -> str:
        if not value:
            raise UsageError(f"--{flag} is empty: give it a value, or leave it out")
        return value

    return read


def split_flag(word: str, rest: list[str], types: Mapping[str, str]) -> tuple[str, str]:
    """`--flag value`, `--flag=value`, and `--flag` alone where it is a boolean; `-v 2` and `-h` as upstream. Takes a value that is a
    word of its own from `rest`. Raises UsageError for an argument, UnknownFlag for a flag that isn't in `types`."""
    if not word.startswith("-"):
        raise UsageError(f"unexpected argument {word!r}")
    name, equals, value = word.lstrip("-").partition("=")
    name = {"h": "help"}.get(name, name).replace("_", "-")
    if name not in types:
        raise UnknownFlag(word.partition("=")[0], types)
    if equals:
        return name, value
    if types[name] == "bool" or types[name].endswith("[=true]"):
        return name, "true"
    if not rest:
        raise UsageError(f"flag needs an argument: --{name}")
    return name, rest.pop(0)


def read_into(options: object, arguments: Sequence[str], flags: Mapping[str, Callable[[str], object]]) -> list[str]:
    """Sets each flag's value as the attribute of its name (with `_` for `-`), and returns the other arguments. A flag that
    `read_boolean` reads needs no value. Raises UsageError."""
    types = {name: "bool" if read is read_boolean else "string" for name, read in flags.items()}
    words, others = list(arguments), list[str]()
    while words:
        word = words.pop(0)
        if word == "--":
            return [*others, *words]
        if not word.startswith("-") or word == "-":
            others.append(word)
            continue
        name, value = split_flag(word, words, types)
        try:
            setattr(options, name.replace("-", "_"), flags[name](value))
        except InvalidArgument as error:
            raise UsageError(f"invalid argument {go_quote(value)} for {go_quote(f'--{name}')} flag: {error}") from None
    return others
