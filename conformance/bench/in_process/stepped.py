"""Serves a cluster whose event loop measures its steps: `… FLAGS`, those of `fakeapiserver serve`.

Prints `{"url": …}` when it is ready. Each line of its standard input is answered with a line of figures since the one before; it ends with
its input. The loop is asyncio's own, since uvloop's steps can't be measured.
"""

import asyncio
import gc
import json
import os
import sys
import time
from asyncio.events import Handle
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fakeapiserver.cli.flags import parse
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.storage.garbage import SetAside

_PAGE: Final = os.sysconf("SC_PAGESIZE")


class Steps:
    """Measures the processor time of each step of every event loop in this thread, from `begin` on. A step is one callback."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.longest_name = ""

    def begin(self) -> None:
        run, clock = Handle._run, time.thread_time

        def measured(handle: Handle) -> None:
            begun = clock()
            run(handle)
            seconds = clock() - begun
            if seconds > self.longest:
                self.longest, self.longest_name = seconds, _name(handle)

        Handle._run = measured  # type: ignore[method-assign,assignment]

    def take(self) -> dict[str, float | str]:
        """Returns the longest step since the last call in milliseconds with its name, the processor seconds and resident bytes of the
        process."""
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
        figures: dict[str, float | str] = {
            "step": self.longest * 1000,
            "name": self.longest_name,
            "processor": time.process_time(),
            "resident": resident,
        }
        self.longest, self.longest_name = 0.0, ""
        return figures


def _name(handle: Handle) -> str:
    """Returns the name of a step's task, or that of its function."""
    callback: object = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return str(getattr(owner.get_coro(), "__qualname__", owner))
    return str(getattr(callback, "__qualname__", callback))


async def serve(config: Config, steps: Steps) -> None:
    """Runs the server until the standard input ends."""
    gc.disable()  # as `fakeapiserver serve` does until it is ready
    server = LocalServer(config)
    try:
        await server.start()
        with SetAside():
            steps.begin()
            print(json.dumps({"url": server.url}), flush=True)
            lines = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(lines)
            await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
            while await lines.readline():
                print(json.dumps(steps.take()), flush=True)
    finally:
        await server.stop()


def main(flags: Sequence[str]) -> None:
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(serve(parse(flags).config, Steps()))


if __name__ == "__main__":
    main(sys.argv[1:])
