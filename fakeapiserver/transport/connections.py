"""Connections to other servers, and those that wait to be used again.

Upstream: net/http/transport.go.
"""

import asyncio
import select
from typing import Final, Generic, TypeVar

K = TypeVar("K")
_IDLE_SECONDS: Final = 90.0
# Upstream: tlsTransportCache in k8s.io/client-go/transport/cache.go.
_MAX_IDLE: Final = 25


class Connection:
    """An open connection. An idle one is closed after a while."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._expiry: asyncio.TimerHandle | None = None

    def close(self) -> None:
        self.use()
        self.writer.close()

    def abort(self) -> None:
        """A peer that is late with its answer is late with its goodbye."""
        self.writer.transport.abort()

    def rest(self) -> None:
        """Marks the connection as idle."""
        self._expiry = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self.writer.close)

    def use(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()

    @property
    def usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    @property
    def quiet(self) -> bool:
        """Usable, and nothing has come that this process doesn't know of yet: its end, most likely."""
        if not self.usable:
            return False
        descriptor = self.writer.get_extra_info("socket").fileno()
        if not hasattr(select, "poll"):  # Windows
            return not select.select([descriptor], [], [], 0)[0]
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return not poll.poll(0)


class IdleConnections(Generic[K]):
    """Idle connections by their target and the credentials used on them."""

    def __init__(self) -> None:
        self._idle: dict[K, list[Connection]] = {}

    def take(self, key: K) -> Connection | None:
        """Returns the most recently used connection that can take a request, or None."""
        waiting = self._idle.get(key, [])
        while waiting:
            connection = waiting.pop()
            connection.use()
            if connection.quiet:
                return connection
            connection.close()
        return None

    def keep(self, key: K, connection: Connection) -> None:
        waiting = self._idle.setdefault(key, [])
        waiting[:] = [other for other in waiting if other.usable]
        if len(waiting) >= _MAX_IDLE or not connection.usable:
            connection.close()
            return
        connection.rest()
        waiting.append(connection)

    def close(self) -> None:
        """Ends them all."""
        for waiting in self._idle.values():
            for connection in waiting:
                connection.close()
        self._idle.clear()
