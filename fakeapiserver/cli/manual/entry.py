"""The entries of the manual. They are named tuples: help is printed before msgspec, which Structs need, would be imported."""

from collections.abc import Mapping
from typing import NamedTuple


class Flag(NamedTuple):
    """The manual's entry for a flag.

    text: one or more sentences. default: as a user would write it; "" if the sentence says all. value: the
    placeholder for the value;
    "" is made of the flag's type. example: a whole flag. choices: the name of a list in choices.py.
    """

    text: str
    default: str = ""
    value: str = ""
    example: str = ""
    choices: str = ""


class Command(NamedTuple):
    """A command of `fakeapiserver`.

    usage: what follows `fakeapiserver`. text: paragraphs. first: the flags people
    use first; their entries are in `topics`, too. topics: flags by topic, in the order in which help shows them. arguments: the name
    of a list in choices.py that the command's arguments are from.
    """

    name: str
    usage: str
    text: str
    topics: Mapping[str, Mapping[str, Flag]]
    first: tuple[str, ...] = ()
    arguments: str = ""


class Topic(NamedTuple):
    """A page of `fakeapiserver help TOPIC`. flags: a command and its topics whose flags the page lists."""

    summary: str
    text: str
    command: str = ""
    flags: tuple[str, ...] = ()
