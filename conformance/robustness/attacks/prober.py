"""The client that is kept waiting: a process of its own that reads an object every 5 ms, and measures its longest wait.

On a machine that is busy with other things a wait has several causes. So the processor time that the server used within each wait is
measured as well, and the time for which its event loop and the prober were ready to run and had no processor: a server that didn't use the
processor, or whose event loop got none, hasn't kept anyone waiting. Linux counts both.
"""

import multiprocessing
import time
from collections.abc import Callable
from http.client import HTTPSConnection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from msgspec import Struct

from conformance.robustness.client import LOST, Credentials

_EVERY: Final = 0.005
_PATH: Final = "/api/v1/namespaces/default"
# Seconds after which the client gives up.
_PATIENCE: Final = 120.0


class Waits(Struct, frozen=True):
    """`longest`: the seconds of the longest wait; `held`: the longest in which the server was working, never more than the wait itself;
    `count`: the requests; `failed`: those without an answer 200."""

    longest: float
    held: float
    count: int
    failed: int


def processor_clock(process: int) -> Callable[[], float]:
    """Returns a function that returns the processor time of another process, in seconds (Linux: its clock's number)."""
    clock = (~process << 3) | 2
    return lambda: time.clock_gettime(clock)


def _delayed(process: int | str) -> float:
    """Returns the seconds for which the first thread of a process was ready to run and had no processor."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


class Prober:
    """Probes a server whose process has this number, from `begin` to `end`."""

    def __init__(self, kubeconfig: Path, process: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=_probe, args=(theirs, kubeconfig, process), daemon=True
        )
        self._process.start()
        self._pipe.recv()

    def begin(self) -> None:
        self._pipe.send(True)
        self._pipe.recv()

    def end(self) -> Waits:
        self._pipe.send(False)
        waits: Waits = self._pipe.recv()
        return waits

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def _probe(pipe: Connection, kubeconfig: Path, process: int) -> None:
    credentials, used = Credentials(kubeconfig), processor_clock(process)
    connection = HTTPSConnection(credentials.address, context=credentials.context, timeout=_PATIENCE)
    _wait(connection, credentials)
    pipe.send(True)
    while pipe.recv():
        pipe.send(True)
        longest = held = 0.0
        count = failed = 0
        while not pipe.poll(_EVERY):
            began, cost, delay = time.monotonic(), used(), _delayed(process) + _delayed("self")
            try:
                failed += not _wait(connection, credentials)
            except LOST:
                failed += 1
                connection.close()
            wait, working = time.monotonic() - began, used() - cost
            delay = _delayed(process) + _delayed("self") - delay
            longest, held, count = max(longest, wait), max(held, min(wait - delay, working)), count + 1
        pipe.recv()
        pipe.send(Waits(longest, held, count, failed))


def _wait(connection: HTTPSConnection, credentials: Credentials) -> bool:
    connection.request("GET", _PATH, headers=dict(credentials.headers))
    response = connection.getresponse()
    response.read()
    return response.status == 200
