"""Serves an ASGI application over HTTP or HTTPS on one address.

Upstream: k8s.io/apiserver/pkg/server/secure_serving.go
"""

import asyncio
import socket
import weakref
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.server.http import freed_memory
from fakeapiserver.server.http.edge_state import EdgeState, Limits
from fakeapiserver.server.http.protocol import EdgeProtocol
from fakeapiserver.server.http.tls_context import TLSContext
from fakeapiserver.server.http.tls_transport import TLSTransport

# Turns of the event loop in which a server that ends still reads requests: those whose bytes had arrived when it stopped listening.
_LAST_TURNS: Final = 3
_BACKLOG: Final = 1024
# After so many connections were closed or have given buffers back, what they freed is returned to the system.
_MANY_FREED: Final = 50


class _Listener(socket.socket):
    """Remembers accepted sockets: asyncio does not expose a connection before the end of its handshake."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.accepted: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self.accepted.add(connection)
        return connection, address


class Server:
    """Runs an ASGI application on one address, over TLS if given its context, in the running event loop.

    It installs no signal handlers and starts no thread. `limits` are the deadlines and sizes of a connection.
    """

    def __init__(
        self,
        app: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: TLSContext | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.app = app
        self.host = host
        self.port = port  # after start: the one that is bound
        self.limits = limits or Limits()
        self._tls = tls
        self._state = EdgeState(app, self.limits)
        self._server: asyncio.Server | None = None
        self._listener: _Listener | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._freed = 0  # connections that were closed or gave buffers back

    async def start(self) -> None:
        """Bind and listen. Raises OSError if the address cannot be had."""
        loop = asyncio.get_running_loop()
        listener = self._bind()

        def connection() -> asyncio.Protocol:
            protocol = EdgeProtocol(self._state, loop)
            return protocol if self._tls is None else TLSTransport(self._tls, protocol, self.limits.header_timeout)

        self._state.is_ending = False
        self._server = await loop.create_server(connection, sock=listener, backlog=_BACKLOG)
        self._listener = listener
        self.port = listener.getsockname()[1]
        self._sweep()

    async def restart(self, tls: TLSContext) -> None:
        """Cuts all connections, and serves new ones with another certificate. Raises OSError if another process takes the port."""
        await self.stop()
        self._tls = tls
        await self.start()

    def _bind(self) -> _Listener:
        family, *_, address = socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sets TCP_NODELAY only on connections of a socket that says it is TCP; without it each answer waits 40 ms
        listener = _Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setblocking(False)
            listener.bind(address)
            # Two sockets can be bound to a port until one listens. If the loop's listen() failed, uvloop would close the descriptor
            # twice, and the second time it may be that of another thread.
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener

    def _sweep(self) -> None:
        """Checks the deadlines of all connections with one timer, so that no request needs its own, and gives memory back."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        released = 0
        for connection in list(self._state.connections):
            connection.sweep(now)
            if isinstance(connection.transport, TLSTransport):
                released += connection.transport.release()
        released += self._state.take_closed()
        self._freed += released
        if self._freed >= _MANY_FREED and not released:  # the burst is over
            self._freed = 0
            freed_memory.trim()
        limits = self.limits
        interval = min(1.0, min(limits.header_timeout, limits.idle_timeout, limits.write_timeout) / 4)
        self._sweeper = loop.call_later(interval, self._sweep)

    async def stop(self, grace: float = 0.0) -> None:
        """Stop listening, let requests that have arrived end for `grace` seconds, then cut the rest. Returns when nothing is left."""
        if self._server is None or self._listener is None:
            return
        server, self._server = self._server, None
        server.close()
        state = self._state
        state.is_ending = True
        for _ in range(_LAST_TURNS if grace > 0 else 0):
            await asyncio.sleep(0)
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks and grace > 0:
            await asyncio.wait(set(state.tasks), timeout=grace)
        await self._cut()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._listener.close()

    async def _cut(self) -> None:
        state = self._state
        running = set(state.tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=5.0)
        await asyncio.sleep(0)  # closed transports send their last bytes
        for connection in list(state.connections):
            if connection.transport is not None:
                with suppress(AttributeError):  # asyncio before 3.11.4 fails on what was closed twice
                    connection.transport.abort()
        for accepted in list(self._listener.accepted if self._listener else ()):
            _shut(accepted)
        for _ in range(100):
            if not state.connections:
                break
            await asyncio.sleep(0)


def _shut(accepted: socket.socket) -> None:
    try:
        accepted.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # closed already
