"""The entries of the manual."""

from collections.abc import Mapping

from msgspec import Struct


class Flag(Struct, frozen=True):
    """What the manual says about a flag.

    text: one or more sentences. default: as a user would write it; "" if the sentence says all. value: the placeholder for the value;
    "" is made of the flag's type. example: a whole flag. choices: the name of a list in choices.py.
    """

    text: str
    default: str = ""
    value: str = ""
    example: str = ""
    choices: str = ""


class Command(Struct, frozen=True):
    """A command of `fakeapiserver`.

    usage: what follows `fakeapiserver`. summary: one sentence, for the list of commands. text: paragraphs. first: the flags people
    use first; their entries are in `topics`, too. topics: flags by topic, in the order in which help shows them. arguments: the name
    of a list in choices.py that the command's arguments are from.
    """

    name: str
    usage: str
    summary: str
    text: str
    topics: Mapping[str, Mapping[str, Flag]]
    first: tuple[str, ...] = ()
    arguments: str = ""


class Topic(Struct, frozen=True):
    """A page of `fakeapiserver help TOPIC`. flags: a command and its topics whose flags the page lists."""

    summary: str
    text: str
    command: str = ""
    flags: tuple[str, ...] = ()
