"""Servers in poor surroundings: no home, no temporary folder, a full disk, a taken port, few descriptors.

A server serves all the same, or refuses to start with one line that says what is wrong.
"""

import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from conformance.robustness.guarantees.guarantee import Report

# Seconds within which a server has started, run a program and ended.
_END: Final = 120.0
_FEW: Final = 40
_COMMAND: Final = "import sys; from fakeapiserver.cli import main; sys.exit(main())"
_NO_TEMPORARY: Final = f"import tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc']; {_COMMAND}"
# Writes and reads an object with the credentials that the server gives it.
_PROGRAM: Final = """
import os
from pathlib import Path
from conformance.robustness.client import Client, Credentials
from conformance.robustness.served import CONFIG_MAPS, config_map, done
client = Client(Credentials(Path(os.environ["KUBECONFIG"])))
done(client.ask("POST", CONFIG_MAPS, config_map("a")), 201)
done(client.ask("GET", CONFIG_MAPS + "/a"), 200)
print("served")
"""


class _Place(Struct):
    """The surroundings in which a server starts. refusal: words of the line with which it refuses to start; empty if it serves."""

    command: str = _COMMAND
    flags: list[str] = field(default_factory=list)
    without: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    is_folder_gone: bool = False
    refusal: str = ""


def _places(stack: ExitStack) -> dict[str, _Place]:
    taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    return {
        "no HOME": _Place(without="HOME"),
        "a home that doesn't exist": _Place(environment={"HOME": "/nonexistent"}),
        "a home that can't be written": _Place(environment={"HOME": "/proc", "XDG_CACHE_HOME": "/proc"}),
        "no PATH": _Place(without="PATH"),
        "TMPDIR that doesn't exist": _Place(environment={"TMPDIR": "/nonexistent"}),
        "no temporary folder": _Place(_NO_TEMPORARY, refusal="temporary"),
        "a full disk": _Place(limits={resource.RLIMIT_FSIZE: 0}, refusal="temporary"),
        "a full disk for the audit log": _Place(flags=["--audit-log-path=/dev/full"]),
        "a data directory that can't be written": _Place(flags=["--data-dir=/proc/data"], refusal="/proc/data"),
        "a taken port": _Place(flags=[f"--secure-port={taken.getsockname()[1]}"], refusal="port"),
        "few descriptors": _Place(limits={resource.RLIMIT_NOFILE: _FEW}),
        "a working directory that is gone": _Place(is_folder_gone=True),
        "an ASCII locale": _Place(environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        "another time zone": _Place(environment={"TZ": "Pacific/Kiritimati"}),
        "no time zones": _Place(environment={"PYTHONTZPATH": "", "TZ": "nowhere"}),
    }


def surroundings(full: bool) -> Report:
    """Every place in full, two that serve and two that refuse for CI. POSIX only."""
    problems, served = list[str](), 0
    with ExitStack() as stack:
        places = _places(stack)
        chosen = places if full else {name: places[name] for name in ("a full disk", "a taken port", "no HOME")}
        for name, place in chosen.items():
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="robustness-", ignore_cleanup_errors=True))
            )
            wrong = _wrong(place, folder)
            problems += [f"{name}: {text}" for text in wrong]
            served += not wrong and not place.refusal
    return Report({"places": str(len(chosen)), "... in which it serves": str(served)}, problems)


def _wrong(place: _Place, folder: Path) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != place.without}
    environment |= {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "TMPDIR": str(folder),
        **place.environment,
    }
    working = folder / "working"
    working.mkdir()
    words = ["run", "--controllers=", *place.flags, "--", sys.executable, "-c", _PROGRAM]
    done = subprocess.run(
        [sys.executable, "-c", place.command, *words],
        env=environment,
        cwd=working,
        preexec_fn=_prepared(place, working),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_END,
        check=False,
    )
    said = done.stderr.strip()
    if "Traceback" in said:
        return [f"a traceback: {said[-1500:]}"]
    if not place.refusal:
        return [] if done.stdout == "served\n" and done.returncode == 0 else [f"{done.returncode} {done.stdout} {said}"]
    if done.returncode == 0 or place.refusal not in said or len(said.splitlines()) != 1:
        return [f"{done.returncode}, not one line with {place.refusal!r}: {said!r}"]
    return []


def _prepared(place: _Place, working: Path) -> Callable[[], None]:
    def prepare() -> None:
        for limit, most in place.limits.items():
            resource.setrlimit(limit, (most, most))
        if place.is_folder_gone:
            working.rmdir()

    return prepare
