"""`fakeapiserver requests`: shows the last requests of the clients of a server in the background."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from fakeapiserver.cli.arguments import UsageError, choice, read_boolean, read_integer, read_into, text
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.control import remote
from fakeapiserver.evidence import query
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.requests import RequestList

_OUTPUTS: Final = ("text", "json", "transcript", "har", "audit", "roles")
# Those that the server writes, which has the bodies.
_DOCUMENTS: Final = frozenset({"har", "audit", "roles"})
FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "server": text("server"),
    "since": read_integer,
    "follow": read_boolean,
    "user-agent": text("user-agent"),
    "output": choice("output", *_OUTPUTS),
}
# The longest time, in seconds, that the server waits for a request.
_WAIT: Final = 50


class Options(Struct):
    """The command line. `since` is the seq after which requests are shown, `user_agent` a shell pattern."""

    server: str = ""
    since: int = 0
    follow: bool = False
    user_agent: str = "*"
    output: str = "text"


def main(arguments: Sequence[str]) -> int:
    """0; 1 if no such server runs or if it keeps no requests; 2 for a wrong command line."""
    options = Options()
    try:
        words = " ".join(read_into(options, arguments, FLAGS))
        if words:
            query.parse(words)
        if options.output in _DOCUMENTS:
            return _print_document(options, words)
        for rows in _read(options, words):
            _show(rows, options.output)
    except (UsageError, ValueError) as error:
        return refuse(error if isinstance(error, UsageError) else UsageError(str(error)), "requests")
    except remote.RemoteError as error:
        return complain(str(error), 1)
    return 0


def _print_document(options: Options, words: str) -> int:
    if options.follow:
        raise UsageError(f"--output={options.output} is a whole document, and can't be written with --follow")
    asked = _parameters(options, words, options.since, output=options.output)
    sys.stdout.write(remote.ask_bytes(options.server, "GET", f"/requests?{asked}").decode())
    return 0


def _parameters(options: Options, words: str, since: int, **more: int | str) -> str:
    return urlencode({"query": words, "since": since, "agent": options.user_agent, **more})


def _read(options: Options, words: str) -> Iterator[list[dict[str, Any]]]:
    """Yields the requests there are, and then, with --follow, each new one. Raises RemoteError."""
    since = options.since
    rows: list[dict[str, Any]] = remote.ask(options.server, "GET", f"/requests?{_parameters(options, words, since)}")
    yield rows
    while options.follow:
        since = max((row["seq"] for row in rows), default=since)
        asked = _parameters(options, words, since, wait=_WAIT)
        try:
            rows = remote.ask(options.server, "GET", f"/requests?{asked}")
        except remote.RemoteTimeout:
            continue
        yield rows


def _show(rows: Sequence[Mapping[str, Any]], output: str) -> None:
    if output == "json":
        for row in rows:
            print(json.dumps(row), flush=True)
        return
    requests = RequestList(msgspec.convert(row, RequestEntry) for row in rows)
    if requests:
        shown = str(requests) if output == "text" else requests.transcript().rstrip("\n")
        print(shown, flush=True)
