"""A server whose event loop measures its steps, and load for it."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.bench.requests import run_loader
from conformance.bench.servers import TOKEN, rss_of
from conformance.exchange import Client

_REPOSITORY: Final = Path(__file__).parents[3]
_TOKENS: Final = f'{TOKEN},admin,1,"system:masters"\n'


@dataclass(frozen=True, slots=True)
class Figures:
    """`step`: the longest step of the event loop since the figures before, in milliseconds of processor time, and its name; `processor`:
    seconds since the start of the process; `resident`: bytes."""

    step: float
    name: str
    processor: float
    resident: int


class SteppedServer:
    """A server of this package in a process of its own, and the load generator `program`. `started`: its figures when it was ready."""

    def __init__(self, process: subprocess.Popen[str], program: Path) -> None:
        self._process = process
        self._program = program
        self.url: str = self._line()["url"]
        self.client = Client(self.url, TOKEN)
        self.started = self.take()

    @property
    def resident(self) -> int:
        """The resident bytes of now; may be asked in any thread."""
        return rss_of([self._process])

    def take(self) -> Figures:
        """Returns the figures of now."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Figures(**self._line())

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended with status {self._process.wait()}")
        printed: dict[str, Any] = json.loads(line)
        return printed

    def load(self, mode: str, count: int, **flags: object) -> dict[str, float]:
        """Runs the load generator, and returns what it prints. Raises RuntimeError if a request is refused."""
        return run_loader(self._program, self.url, mode, count, **flags)

    def send(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Returns the body of an answer. Raises RuntimeError if the request is refused."""
        answer = self.client.send({"method": method, "path": path, **({} if body is None else {"body": body})}, [])
        if answer["status"] >= 300:
            raise RuntimeError(f"{method} {path}: {answer}")
        found: dict[str, Any] = answer["body"]
        return found


@contextmanager
def running(program: Path, flags: Sequence[str] = ()) -> Iterator[SteppedServer]:
    """Runs a server with more flags of `fakeapiserver serve`; by default without controllers."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(_TOKENS)
        given = any(flag.startswith("--controllers=") for flag in flags)
        words = [f"--token-auth-file={tokens}", "--secure-port=0", *([] if given else ["--controllers=none"]), *flags]
        command = [sys.executable, "-m", "conformance.bench.in_process.stepped", *words]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_REPOSITORY
        ) as process:
            try:
                yield SteppedServer(process, program)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
