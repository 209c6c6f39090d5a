"""`fakeapiserver faults`: lists, adds and removes the faults of a server in the background."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.cli.arguments import (
    MOST,
    OUTPUTS,
    UsageError,
    choice,
    is_number,
    read_boolean,
    read_duration,
    read_integer,
    read_into,
    text,
)
from fakeapiserver.cli.checks import check_file
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.control import remote
from fakeapiserver.faults import files, readers, rule

FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "server": text("server"),
    "faults": text("faults"),
    "hits": read_integer,
    "timeout": read_duration,
    "compact": read_boolean,
    "output": choice("output", *OUTPUTS),
}
_ACTIONS: Final = ("list", "add", "wait", "remove", "clear", "outage", "restart")


class Options(Struct):
    """The command line. `faults` is a YAML file; `timeout` is in seconds."""

    server: str = ""
    faults: str = ""
    hits: int = 1
    timeout: float = 10.0
    compact: bool = False
    output: str = "text"


def main(arguments: Sequence[str]) -> int:
    """0; 1 if no such server runs or if it refuses; 2 for a wrong command line."""
    options = Options()
    try:
        action, *words = read_into(options, arguments, FLAGS) or ["list"]
        faults = _done(action, words, options)
    except UsageError as error:
        return refuse(error, "faults")
    except (OSError, ValueError, remote.RemoteError) as error:
        return complain(str(error), 1)
    if options.output == "json":
        print(json.dumps(faults))
    for fault in faults if options.output == "text" else ():
        fields = " ".join(f"{name}={_shown(value)}" for name, value in fault["fault"].items())
        print(f"{fault['id']}: {fields} ({fault['hits']} of {fault['seen']} struck)")
    return 0


def _done(action: str, words: Sequence[str], options: Options) -> list[dict[str, Any]]:
    """Does what the command says, and returns the faults to show. Raises UsageError, OSError, ValueError, RemoteError."""
    if action not in _ACTIONS:
        raise UsageError(f"there is no faults {action}: the actions are {', '.join(_ACTIONS)}")
    if action == "add":
        shown: list[dict[str, Any]] = remote.ask(options.server, "POST", "/faults", _described(words, options.faults))
        return shown
    if options.faults:
        raise UsageError("--faults names a file for faults add")
    if action in ("wait", "remove"):
        if len(words) != 1 or not is_number(words[0], MOST):
            raise UsageError(f"faults {action} needs the number of one fault, as faults list shows it")
        if action == "remove":
            remote.ask(options.server, "DELETE", f"/faults/{words[0]}")
            return []
        wait = {"hits": options.hits, "timeout": options.timeout}
        return [remote.ask(options.server, "POST", f"/faults/{words[0]}/wait", wait)]
    if action == "outage":
        if len(words) != 1:
            raise UsageError("faults outage needs a duration, such as 10s")
        remote.ask(options.server, "POST", "/outage", {"duration": words[0]})
        return []
    if words:
        raise UsageError(f"unexpected argument {words[0]!r}")
    if action == "restart":
        remote.ask(options.server, "POST", "/restart", {"compact": options.compact})
        return []
    if action == "clear":
        remote.ask(options.server, "DELETE", "/faults")
        return []
    listed: list[dict[str, Any]] = remote.ask(options.server, "GET", "/faults")
    return listed


def _described(words: Sequence[str], file: str) -> list[Mapping[str, Any]]:
    """Returns the faults of a file, or the one that words such as status=409 describe, checked."""
    if file:
        if words:
            raise UsageError(f"unexpected argument {words[0]!r}: --faults names a file with all fields")
        check_file("faults", Path(file))
        try:
            return files.read(Path(file))
        except ValueError as error:
            raise UsageError(str(error)) from None
    fields = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"a field is written as name=value, not {word!r}")
        fields[name] = readers.from_text(name, value)
    try:
        rule.fault(fields)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return [fields]


def _shown(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value)
