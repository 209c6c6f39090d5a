"""Controllers that don't start before there is work for them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

# Returns when something was written after a revision about which controllers may have to do something.
Occasion = Callable[[int], Awaitable[None]]


class Deferral:
    """Waits for an occasion to start controllers, or for a caller who waits for them."""

    def __init__(self, occasion: Occasion) -> None:
        self._occasion = occasion
        self._is_over = asyncio.Event()
        # The controllers that wait.
        self._names: Sequence[str] = ()

    async def wait(self, names: Sequence[str], revision: int, seconds: float | None = None) -> bool:
        """Returns True when these controllers have to start, and False after so many seconds; what was written up to `revision` needs
        none of them."""
        self._names = names
        waits = [asyncio.ensure_future(self._occasion(revision)), asyncio.ensure_future(self._is_over.wait())]
        try:
            done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            self._names = ()
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def end(self) -> Sequence[str]:
        """Ends the wait, and returns the controllers that start now."""
        self._is_over.set()
        return self._names
