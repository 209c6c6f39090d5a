"""Signals for an event loop, also for the loops of Windows, which handle none."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType


def handle_signal(number: int, receive: Callable[[int], object]) -> None:
    """Calls `receive` with the number, in the running event loop, whenever the signal arrives."""
    loop = asyncio.get_running_loop()

    def interrupt(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(receive, number)

    try:
        loop.add_signal_handler(number, receive, number)
    except NotImplementedError:
        signal.signal(number, interrupt)


def default_signal(number: int) -> None:
    """Lets the signal do to the process what it does by default."""
    with suppress(NotImplementedError):
        asyncio.get_running_loop().remove_signal_handler(number)
    signal.signal(number, signal.SIG_DFL)
