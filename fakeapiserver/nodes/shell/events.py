"""The events of a run of the shell, and a process's environment. Pure."""

from collections.abc import Generator
from typing import Final

from msgspec import Struct

from fakeapiserver.nodes.shell.tree import NotFollowed

STDOUT, STDERR = 1, 2
# Characters of a variable, of a file, and of an expanded word.
MAX_TEXT: Final = 1 << 16
# Characters that count as one step.
STEP_TEXT: Final = 256


class Endless(Exception):
    """The run never ends by itself."""


class Exit(Exception):
    """The shell ends with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class LoopExit(Exception):
    """`break` or `continue`, and how many loops it leaves."""

    def __init__(self, levels: int, *, goes_on: bool) -> None:
        super().__init__()
        self.levels = levels
        self.goes_on = goes_on


class Write(Struct, frozen=True):
    """Text for STDOUT or STDERR."""

    descriptor: int
    text: str


class Sleep(Struct, frozen=True):
    """Seconds that pass."""

    seconds: float


class Read(Struct, frozen=True):
    """Asks for input."""


Event = Write | Sleep | Read
Steps = Generator[Event, str, int]
# Where a descriptor leads: to a real one, to a file, into a list (for `$(…)`), or nowhere.
Sink = int | str | list[str] | None


class Surroundings(Struct, frozen=True):
    """A process's environment: variables and files as (name, text), directories, the name of its host.

    `is_container`: programs that use a network or packages count as successful; for a client's exec they aren't followed.
    `is_terminal`: there is a prompt."""

    environment: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    directories: tuple[str, ...] = ()
    host: str = ""
    is_container: bool = True
    is_terminal: bool = False


def bounded(text: str, before: int = 0) -> str:
    """The text. NotFollowed: it is too long, after `before` other characters."""
    if before + len(text) > MAX_TEXT:
        raise NotFollowed(f"a text of more than {MAX_TEXT} characters")
    return text
