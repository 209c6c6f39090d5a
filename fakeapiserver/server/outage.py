"""A time in which a server can't be reached: its port is closed, and its connections are reset."""

import asyncio
import logging
import socket
from typing import Protocol

from fakeapiserver.clock import Timer, Timers
from fakeapiserver.server.http.serving import Server

log = logging.getLogger(__name__)


class Listener(Protocol):
    """A server with a port that can be closed for a while."""

    async def begin_outage(self, seconds: float | None) -> "Outage":
        """Closes the port and resets all connections, for so many seconds of the clock, or until the outage is ended. Raises
        ValueError during another outage."""

    async def restart(self, *, compact: bool) -> None:
        """Resets all connections, and ends all watches. `compact`: forgets the history, so that clients can't resume them."""


class Outage:
    """Begins with `begin` and ends with `end`, or after so many seconds of the clock. Requests that were being handled are broken off:
    a write may be stored or not.
    """

    def __init__(self, server: Server, clock: Timers) -> None:
        self._server = server
        self._clock = clock
        self._timer: Timer | None = None
        self._ending: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._holder: socket.socket | None = None

    @property
    def over(self) -> bool:
        """Reports whether the server can be reached again."""
        return self._over.is_set()

    async def begin(self, seconds: float | None) -> None:
        """Closes the port. `seconds` None: until `end`."""
        await self._server.stop()
        self._holder = _hold(self._server.host, self._server.port)
        if seconds is not None:
            self._timer = self._clock.call_later(seconds, self._end_soon)

    def _end_soon(self) -> None:
        self._ending = asyncio.ensure_future(self.end())

    async def end(self) -> None:
        """Opens the port again. Raises OSError if another process has taken it. A second call does nothing."""
        if self.over:
            return
        self._cancel_timer()
        if self._holder is not None:
            # now another socket may be bound beside it
            self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            await self._server.start()
        except OSError as error:
            log.error("the outage can't end: port %d can't be opened again: %s", self._server.port, error)
            raise
        finally:
            self._let_go()
        self._over.set()

    async def wait(self) -> None:
        """Returns when the outage is over."""
        await self._over.wait()

    def cancel(self) -> None:
        """Leaves the port closed, for a server that stops."""
        self._cancel_timer()
        self._let_go()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _let_go(self) -> None:
        if self._holder is not None:
            self._holder.close()
            self._holder = None


def _hold(host: str, port: int) -> socket.socket | None:
    """A socket that keeps the port from others, and refuses connections since it doesn't listen. None if the port isn't free yet."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        holder.bind(address)
    except OSError:
        holder.close()
        return None
    return holder
