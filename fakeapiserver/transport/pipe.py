"""Bytes on their way from one task to another, of which only so many wait."""

import asyncio
from typing import Final

_MOST_WAITING: Final = 1 << 20


class Pipe:
    """A buffer between a writer and a reader.

    The writer waits while more than `most` bytes are unread (default: a mebibyte). Once `drop`ped, nothing is read any more and new data
    is lost.
    """

    def __init__(self, most: int = _MOST_WAITING) -> None:
        self._most = most
        self._waiting = bytearray()
        self._ended = False
        self._changed = asyncio.Event()

    async def feed(self, data: bytes) -> None:
        """Returns when there is room for more."""
        if self._ended:
            return
        self._waiting += data
        self._wake()
        while len(self._waiting) > self._most and not self._ended:
            await self._change()

    def end(self) -> None:
        """No more comes; what waits is still read."""
        self._ended = True
        self._wake()

    def drop(self) -> None:
        """Ends reading, and drops unread data."""
        self._waiting.clear()
        self.end()

    async def read(self, size: int = -1) -> bytes:
        """Returns unread data, at most `size` bytes; b"" at the end."""
        while not (self._waiting or self._ended):
            await self._change()
        count = len(self._waiting) if size < 0 else min(size, len(self._waiting))
        data = bytes(self._waiting[:count])
        del self._waiting[:count]
        self._wake()
        return data

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
