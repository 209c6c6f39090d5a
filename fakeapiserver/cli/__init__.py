"""The `fakeapiserver` command: `serve`, `run -- COMMAND`, `envtest-assets`, `init` and others.

Each command is a module with a function `main`, which is imported when the command is called.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Final, NoReturn

from fakeapiserver import spelling
from fakeapiserver.cli import complain, scaffold
from fakeapiserver.cli.manual import commands, overview, page

# command -> its module
_MODULES: Final = {
    "serve": "serve",
    "run": "run",
    "status": "status",
    "stop": "stop",
    "faults": "control.faults",
    "requests": "control.requests",
    "state": "control.state",
    "clock": "control.clock",
    "ui": "control.page",
    "clone": "clone",
    "diff-versions": "upgrade.diff_versions",
    "sweep": "sweep",
    "explore": "explore",
    "controller-manager": "controller_manager.command",
    "nodes": "nodes.command",
    "envtest-assets": "envtest_assets",
    "version": "version",
    "completion": "completion",
    "help": "help",
}
_SCAFFOLD: Final = ("init", "create", "manifests")
_HELP: Final = ("-h", "--help")
_SIGPIPE: Final = 13  # Windows has no signal of this name


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 0 done; 1 could not start, or could not go on; 2 the command line is wrong; 128 + N:
    signal N ended it before it was done.

    Without `arguments` it is the program itself, and ends it."""
    if arguments is not None:
        return _run(list(arguments))
    # While modules are imported there is nothing to clean up; an exception would end up in whatever module is being imported.
    signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))
    try:
        status = _run(sys.argv[1:])
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except BrokenPipeError:  # the reader of the output has gone, `| head` say
        status = 128 + _SIGPIPE
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    return end_program(status)


def end_program(status: int) -> NoReturn:
    """Ends this program, in which everything is stopped. Finalizing the interpreter takes half as long as a start, and what a signal
    interrupts there ends in a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):  # the reader has gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _run(words: list[str]) -> int:
    if not words or words[0] in _HELP:
        print(overview.overview(), end="")
        return 0 if words else 2
    command, *rest = words
    if command == "--version":
        command = "version"
    if command not in _MODULES and command not in _SCAFFOLD:
        return _unknown(command)
    own = rest[: rest.index("--")] if "--" in rest else rest
    if any(word in _HELP for word in own):
        return _print_page(command, rest)
    if command in _SCAFFOLD:
        return scaffold.main(command, rest)
    if command == "serve":
        # Nothing that starting allocates is garbage; serve.py turns collection on again when the server is ready.
        gc.disable()
    status: int = import_module(f"fakeapiserver.cli.{_MODULES[command]}").main(rest)
    return status


def _print_page(command: str, words: Sequence[str]) -> int:
    name = next((name for name in (f"{command} {words[0]}", command) if name in commands.commands()), "")
    names = [name] if name else [name for name in commands.commands() if name.startswith(f"{command} ")]
    print("\n".join(map(page.command_page, names)), end="")
    return 0


def _unknown(command: str) -> int:
    if command.startswith("-"):
        return complain.complain(f"a command must come before the flag {command}; see fakeapiserver --help", 2)
    match = spelling.closest(command, [*_MODULES, *_SCAFFOLD])
    return complain.complain(
        f"there is no command {command!r}{f'; did you mean {match}?' if match else ''} (see fakeapiserver --help)", 2
    )
