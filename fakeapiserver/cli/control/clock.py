"""`fakeapiserver clock`: shows and turns the clock of a server in the background."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.cli.arguments import OUTPUTS, UsageError, choice, read_into, text
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.control import remote

FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "server": text("server"),
    "output": choice("output", *OUTPUTS),
}
_CHANGES: Final[Mapping[str, Mapping[str, Any]]] = {"now": {}, "stop": {"stopped": True}, "start": {"stopped": False}}
_MOVES: Final = ("advance", "jump")


class Options(Struct):
    """The command line."""

    server: str = ""
    output: str = "text"


def main(arguments: Sequence[str]) -> int:
    """0; 1 if no such server runs or if it refuses; 2 for a wrong command line."""
    options = Options()
    try:
        change = _change(read_into(options, arguments, FLAGS) or ["now"])
        time = (
            remote.ask(options.server, "PUT", "/clock", change)
            if change
            else remote.ask(options.server, "GET", "/clock")
        )
    except UsageError as error:
        return refuse(error, "clock")
    except remote.RemoteError as error:
        return complain(str(error), 1)
    print(json.dumps(time) if options.output == "json" else f"{time['now']}{' (stopped)' if time['stopped'] else ''}")
    return 0


def _change(words: Sequence[str]) -> Mapping[str, Any]:
    """Returns the change that the server is asked for; none for the action now. Raises UsageError."""
    action, *rest = words
    if action in _CHANGES:
        if rest:
            raise UsageError(f"unexpected argument {rest[0]!r}")
        return _CHANGES[action]
    if action not in _MOVES:
        raise UsageError(f"there is no clock {action}: the actions are {', '.join((*_CHANGES, *_MOVES))}")
    if len(rest) != 1:
        raise UsageError(f"clock {action} needs a duration, such as 30s or 1h30m")
    try:
        parse_duration(rest[0])
    except ValueError:
        raise UsageError(f"{rest[0]!r} is not a duration, such as 30s or 1h30m") from None
    return {action: rest[0]}
