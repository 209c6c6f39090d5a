"""Thousands of watchers in one event loop: each checks that it gets every event once, in order."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlencode

from httptools import HttpResponseParser

from conformance.robustness.client import Credentials

_REVISION: Final = re.compile(rb'"resourceVersion":"(\d+)"')
# Connections that are being opened at the same time.
_TOGETHER: Final = 100


class Watcher(asyncio.Protocol):
    """Watches a path from a revision. `seen` is called with the revision of each event as it arrives."""

    def __init__(self, request: bytes, seen: Callable[[int], None]) -> None:
        self.revisions: list[int] = []
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._goal = 0
        self._reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._seen = seen
        self._parser = HttpResponseParser(self)
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_headers_complete(self) -> None:
        if not self.opened.done():
            self.opened.set_result(None)

    def on_body(self, body: bytes) -> None:
        *lines, self._rest = (self._rest + body).split(b"\n")
        for line in lines:
            found = _REVISION.search(line)
            if found is not None:
                self.revisions.append(int(found[1]))
                self._seen(self.revisions[-1])
                if len(self.revisions) == self._goal:
                    self._reached.set_result(None)

    def on_message_complete(self) -> None:
        """The server has ended the watch with the last chunk."""
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the server closed the connection"))
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def reached(self, count: int) -> asyncio.Future[None]:
        """Returns what is done once so many events have come. Called once."""
        self._goal = count
        if len(self.revisions) >= count:
            self._reached.set_result(None)
        return self._reached

    def stall(self) -> None:
        """Reads no more until `go_on`."""
        assert self._transport is not None
        self._transport.pause_reading()

    def go_on(self) -> None:
        assert self._transport is not None
        self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def open_watchers(
    credentials: Credentials, path: str, revision: str, count: int, seen: Callable[[int], None]
) -> Sequence[Watcher]:
    """Opens so many watches, and returns once the server has answered all of them."""
    host, port = credentials.address.split(":")
    target = f"{path}?{urlencode({'watch': 1, 'resourceVersion': revision})}"
    head = "".join(f"{name}: {value}\r\n" for name, value in credentials.headers.items())
    request = f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{head}\r\n".encode()
    loop, gate = asyncio.get_running_loop(), asyncio.Semaphore(_TOGETHER)
    context: ssl.SSLContext = credentials.context

    async def opened() -> Watcher:
        async with gate:
            _, watcher = await loop.create_connection(lambda: Watcher(request, seen), host, int(port), ssl=context)
            await watcher.opened
            return watcher

    return await asyncio.gather(*(opened() for _ in range(count)))


class Arrivals:
    """The delays of events: from the beginning of the write to the arrival at each watcher, in seconds."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self._written: dict[int, float] = {}
        self._early: dict[int, list[float]] = {}

    def arrived(self, revision: int) -> None:
        now = time.monotonic()
        if revision in self._written:
            self.delays.append(now - self._written[revision])
        else:  # before the writer has read its answer
            self._early.setdefault(revision, []).append(now)

    def written(self, revision: int, began: float) -> None:
        self._written[revision] = began
        self.delays += [arrival - began for arrival in self._early.pop(revision, ())]
