"""`fakeapiserver state`: saves, loads, compares and exports the state of a server in the background, and looks after data directories."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from fakeapiserver.cli.arguments import UsageError, read_boolean, read_into, text
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.control import data_directory, remote
from fakeapiserver.state import archives, diff, file, manifests, sources
from fakeapiserver.state.found import LoadReport

FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "server": text("server"),
    "secrets": read_boolean,
    "noise": read_boolean,
}
# action -> the fewest and the most arguments, and what they are
_ACTIONS: Final = {
    "show": (0, 0, "nothing else"),
    "save": (1, 1, "the name of a file"),
    "load": (1, 1, "the name of a file or folder"),
    "diff": (1, 2, "the names of one or two saved files"),
    "export": (1, 2, "the name of a folder to write, or of a data directory and what to write"),
    "check": (1, 1, "the name of a data directory"),
    "compact": (1, 1, "the name of a data directory"),
}


class Options(Struct):
    """The command line."""

    server: str = ""
    secrets: bool = False
    noise: bool = False


def main(arguments: Sequence[str]) -> int:
    """0; 1 if no such server runs, or a file can't be used; 2 for a wrong command line."""
    options = Options()
    try:
        action, *names = read_into(options, arguments, FLAGS) or ["show"]
        if action not in _ACTIONS:
            raise UsageError(f"there is no state {action}: the actions are {', '.join(_ACTIONS)}")
        fewest, most, what = _ACTIONS[action]
        if not fewest <= len(names) <= most:
            raise UsageError(f"state {action} needs {what}")
        print(_done(action, names, options))
    except UsageError as error:
        return refuse(error, "state")
    except (OSError, ValueError, remote.RemoteError) as error:
        return complain(str(error), 1)
    return 0


def _done(action: str, names: Sequence[str], options: Options) -> str:
    """Does what the command says and returns the text to print. Raises OSError, ValueError, RemoteError."""
    match action:
        case "save":
            file.write(names[0], remote.ask_bytes(options.server, "GET", "/state/save"))
            return f"{names[0]} is saved"
        case "load":
            sources.read(names[0])  # its errors name the file
            answer = remote.ask_bytes(options.server, "POST", "/state/load", archives.packed(Path(names[0])))
            report = msgspec.json.decode(answer, type=LoadReport)
            is_saved_state = not (report.taken or report.untaken)
            return f"{names[0]} is loaded" if is_saved_state else str(structs.replace(report, source=names[0]))
        case "diff":
            old = file.read(names[0])
            if len(names) == 2:
                new = file.read(names[1])
            else:
                new = file.decode(remote.ask_bytes(options.server, "GET", "/state/save"), "the server's state")
            return str(diff.diff(old.storage.snapshot(), new.storage.snapshot(), noise=options.noise))
        case "check":
            return data_directory.check(Path(names[0]))
        case "compact":
            return data_directory.compact(Path(names[0]))
        case "export" if len(names) == 2 or data_directory.is_one(Path(names[0])):
            target = Path(names[1]) if len(names) == 2 else None
            return data_directory.export(Path(names[0]), target, secrets=options.secrets)
        case "export":
            path = f"/state/export?secrets={json.dumps(options.secrets)}"
            paths = manifests.write(Path(names[0]), remote.ask(options.server, "GET", path))
            return f"{len(paths)} manifests are in {names[0]}: kubectl apply -R -f {names[0]}"
    shown = remote.ask(options.server, "GET", "/state")
    return f"revision {shown['revision']}, history from {shown['compacted']}, {shown['watches']} open watches"
