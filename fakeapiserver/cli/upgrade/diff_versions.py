"""`fakeapiserver diff-versions OLD NEW [-- COMMAND]`: what changed between two minor versions, and what that changes for a command."""

import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from fakeapiserver.apis.recorded import minor_version
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.flags import Parsed
from fakeapiserver.cli.manual import diff_versions as manual
from fakeapiserver.cli.serve import read_flags
from fakeapiserver.cli.upgrade import comparison, facts, report, trial

FLAGS: Final = (*manual.FLAGS, "output")
_NAME: Final = "diff-versions"


def main(arguments: Sequence[str]) -> int:
    """0; 3 if COMMAND met differences; 1 if it can't be run, or asks the server nothing; 2 for a wrong command line."""
    if len(arguments) < 2 or any(word.startswith("-") for word in arguments[:2]):
        return complain(f"{_NAME} needs two versions: fakeapiserver {_NAME} 1.35 1.36 [FLAG ...] [-- COMMAND]", 2)
    try:
        old, new = map(minor_version, arguments[:2])
    except ValueError as error:
        return refuse(error, _NAME)
    parsed = read_flags(arguments[2:], _NAME)
    if isinstance(parsed, int):
        return parsed
    if refused := [f"--{name}" for name in parsed.given if name not in FLAGS]:
        return complain(f"{_NAME} takes none of run's other flags: leave {', '.join(refused)} away", 2)
    if parsed.command:
        return _compare(parsed, old, new)
    found = facts.between(old, new)
    print(msgspec.json.encode(found).decode() if parsed.output == "json" else "\n".join(facts.lines(found)))
    return 0


def _compare(parsed: Parsed, old: str, new: str) -> int:
    try:
        first, second = _trial(parsed, old), _trial(parsed, new)
        compared = comparison.compare(first, second)
        if not compared.is_empty:  # what differs by chance is left out
            compared = comparison.compare(first, second, _trial(parsed, old, " again, to see what differs by chance"))
    except FileNotFoundError:
        return complain(f"there is no command {parsed.command[0]!r}", 127)
    except PermissionError:
        return complain(f"{parsed.command[0]!r} can't be executed", 126)
    except (OSError, ValueError) as error:
        return complain(str(error), 1)
    if not any(compared.requests):
        return complain(
            "the command sent no request: it must use the cluster that KUBECONFIG names. The fixtures of pytest have their own: "
            f"for these, compare pytest -o 'fake_cluster_options=kubernetes_version=\"{old.removeprefix('v')}\"' with "
            f'"{new.removeprefix("v")}"',
            1,
        )
    if parsed.output == "json":
        print(msgspec.json.encode(compared, enc_hook=str).decode())
    else:
        print("\n".join(report.lines(compared, old.removeprefix("v"), new.removeprefix("v"))))
    return 0 if compared.is_empty else 3


def _trial(parsed: Parsed, version: str, why: str = "") -> trial.Trial:
    print(
        f"fakeapiserver: running the command with Kubernetes {version.removeprefix('v')}{why}",
        file=sys.stderr,
        flush=True,
    )
    return trial.run(parsed.command, parsed.config, version)
