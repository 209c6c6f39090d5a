"""What happens in a run of the shell, and what a process finds. Pure."""

from collections.abc import Generator

from msgspec import Struct

STDOUT, STDERR = 1, 2


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
    """What a process finds: variables and files as (name, text), directories, the name of its host.

    `is_container`: programs that reach for a network or packages count as successful; for a client's exec they aren't followed.
    `is_terminal`: a person types, and sees a prompt."""

    environment: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    directories: tuple[str, ...] = ()
    host: str = ""
    is_container: bool = True
    is_terminal: bool = False
