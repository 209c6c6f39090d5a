"""`fakeapiserver ui`: opens the page of a server in the browser, or that of a saved state."""

import json
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.cli import serve
from fakeapiserver.cli.arguments import OUTPUTS, UsageError, choice, read_boolean, read_into, text
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.control import remote
from fakeapiserver.cli.stop_signals import StopSignals
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config

FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "server": text("server"),
    "name": text("name"),
    "open": read_boolean,
    "output": choice("output", *OUTPUTS),
}


class Options(Struct):
    """The command line. `name` is the same as `server`."""

    server: str = ""
    name: str = ""
    open: bool = True
    output: str = "text"


def main(arguments: Sequence[str]) -> int:
    """0; 1 if no such server runs, if it has no page, or if the file can't be read; 2 for a wrong command line."""
    options = Options()
    try:
        words = read_into(options, arguments, FLAGS)
        if len(words) > 1:
            raise UsageError(f"unexpected argument {words[1]!r}")
        server = options.server or options.name
        if words and server:
            raise UsageError("--server names a running server: leave the file away, or --server")
        if words:
            return serve.run_loop(_show_file(Path(words[0]), options))
        _show(remote.ask(server, "POST", "/ui/links", {})["url"], options)
    except UsageError as error:
        return refuse(error, "ui")
    except (OSError, ValueError, remote.RemoteError) as error:
        return complain(str(error), 1)
    return 0


async def _show_file(file: Path, options: Options) -> int:
    """Serves the state until a signal comes: its clock stands still, and no controller changes it."""

    def opened(server: LocalServer) -> None:
        assert server.page is not None
        if isinstance(server.clock, AdjustableClock):
            server.clock.stop()
        _show(server.page.new_link(), options)

    stop = StopSignals()
    config = Config(load=file, ui=True, controllers=(), given=frozenset(("load", "ui", "controllers")))
    was_ready = await serve.serve(config, opened, stop)
    return stop.status(1 if was_ready else 0)


def _show(url: str, options: Options) -> None:
    """Prints the link, and opens it unless the caller refuses; where there is no browser, the link is all."""
    print(json.dumps({"url": url}) if options.output == "json" else url, flush=True)
    if options.open and options.output == "text":
        webbrowser.open(url)
