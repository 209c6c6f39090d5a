"""A small ASGI application behind a port of its own: metrics, health, webhooks (upstream: controller-runtime/pkg/manager/server.go)."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from fakeapiserver.controller_runtime import uvicorn_server

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class HTTPServer:
    """An HTTP server: `bind()` it, then `run()` it. Cancelled, it answers the requests that have arrived and ends.

    address: `host:port`, or `:port` for every address of this machine; port 0 takes a free one.
    """

    def __init__(self, name: str, application: Application, address: str, tls: ssl.SSLContext | None = None) -> None:
        self.name = name
        self._application = application
        self._address = address
        self.tls = tls
        self._socket: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port it listens on, once it is bound."""
        if self._socket is None:
            raise RuntimeError(f"the {self.name} server is not bound yet")
        port: int = self._socket.getsockname()[1]
        return port

    def bind(self) -> None:
        """Binds the port. Raises OSError with one sentence if it is in use."""
        host, _, port = self._address.rpartition(":")
        host = host.strip("[]")
        try:
            self._socket = socket.create_server(
                (host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            raise OSError(f"the {self.name} server can't listen on {self._address}: {error.strerror}") from error

    async def run(self) -> None:
        """Runs until it is cancelled. Cancelled a second time, it closes its port and resets its connections at once."""
        if self._socket is None:
            self.bind()
        server = uvicorn_server.Server(self._application, self.tls)
        serving = asyncio.ensure_future(server.serve(sockets=[self._socket] if self._socket else None))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            try:
                await serving
            finally:
                server.abort()
            raise


async def read_body(receive: Receive, limit: int) -> bytes:
    """The request's body. ValueError when it is longer than `limit` bytes."""
    body = b""
    while True:
        message = await receive()
        piece: bytes = message.get("body", b"")
        body += piece
        if len(body) > limit:
            raise ValueError(f"request entity is too large; limit is {limit} bytes")
        if not message.get("more_body"):
            return body


async def respond(send: Send, status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
    """A whole answer."""
    headers = [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
