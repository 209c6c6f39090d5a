"""A file that is read again when it changes.

Upstream: k8s.io/apiserver/pkg/server/dynamiccertificates, k8s.io/kubernetes/pkg/util/filesystem (WatchUntil).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_INTERVAL: Final = 0.5  # seconds


class WatchedFile:
    """Calls `use` with the content whenever it is another one; `content` is what is in use already."""

    def __init__(self, path: Path, content: bytes, use: Callable[[bytes], Awaitable[None]]) -> None:
        self._path = path
        self._content = content
        self._use = use

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL)
            await self.look()

    async def look(self) -> None:
        """A file that can't be read is no change: it may be about to be replaced."""
        try:
            content = self._path.read_bytes()
        except OSError as error:
            log.error("can't read %s: %s", self._path, error.strerror)
            return
        if content != self._content:
            self._content = content
            await self._use(content)
