"""SIGINT and SIGTERM: when a command that serves ends, and with which exit status."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from fakeapiserver.transport.signals import handle_signal


class StopSignals(asyncio.Event):
    """Set by SIGINT and SIGTERM; belongs to the running event loop. With `pass_on`, a signal goes there instead."""

    def __init__(self) -> None:
        super().__init__()
        self.pass_on: Callable[[int], object] | None = None
        self._signals: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            handle_signal(number, self._receive)

    def _receive(self, number: int) -> None:
        if self.pass_on is not None:
            self.pass_on(number)
            return
        self._signals.append(number)
        self.set()

    def status(self, expected: int = 0) -> int:
        """The exit status: 0, or 128 + N if there were more signals than the `expected` one that ends a server which is ready."""
        return 128 + self._signals[-1] if len(self._signals) > expected else 0


async def started(work: Coroutine[Any, Any, object], stop: asyncio.Event) -> bool:
    """Runs what starts a server, and cancels it when `stop` is set. Returns whether it is done; raises what `work` raises."""
    starting, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if stop.is_set():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return False
    stopping.cancel()
    starting.result()
    return True
