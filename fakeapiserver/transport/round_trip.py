"""Requests to other API servers, with nothing held back: bodies stream both ways, connections are kept for reuse.

Errors are in Go's words. Upstream: net/http/transport.go, k8s.io/client-go/transport.
"""

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.transport.connections import Connection, IdleConnections
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.proxy import tunnel
from fakeapiserver.transport.webhook import Response, check_host, reason, trusting

Headers = list[tuple[bytes, bytes]]
# Connects in a way of its own. OSError.
Dial = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

_CHUNK: Final = 65536
_BUFFER: Final = 1 << 20  # twice as much is read ahead of who takes a body, no more
# Seconds until a quiet peer is asked, seconds between questions, and how many may go unanswered (upstream: net.KeepAliveConfig).
_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 9}
_MAX_PORT: Final = 65535
_CONNECT_SECONDS: Final = 30.0
_BODILESS: Final = frozenset((204, 304))


class TransportError(Exception):
    """The request failed; the text is what Go's http.Transport says. `reset`: there was a connection, and it broke."""

    def __init__(self, text: str, *, reset: bool = False) -> None:
        super().__init__(text)
        self.reset = reset


class Target(Struct, frozen=True):
    """The address of a server, and the requirements for its certificate.

    The certificate must be for `server_name` and signed in `ca_bundle` (PEM). `plain` is without TLS. `proxy` is
    the URL of a proxy (http,
    https or socks5), or empty. `dial`: opens the connection; None: by TCP. `api_service`: the name of the APIService whose server it is.
    """

    host: str
    port: int
    server_name: str
    ca_bundle: bytes = b""
    insecure: bool = False
    plain: bool = False
    proxy: str = ""
    dial: Dial | None = None
    api_service: str = ""

    @property
    def authority(self) -> str:
        """`127.0.0.1:443`"""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Intercept = Callable[[Target], Awaitable[Response | None]]


class Answer(Struct):
    """A response whose body is still coming: `chunks()` is read to its end, or `close()` called. Header names are as sent."""

    status: int
    reason: str
    headers: Headers
    _chunks: AsyncGenerator[bytes, None]
    _connection: Connection | None = None

    def header(self, name: bytes) -> bytes:
        """Returns the first header of this (lower-case) name, or b""."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. TransportError when it ends early."""
        return self._chunks

    async def body(self) -> bytes:
        """The whole body. TransportError."""
        try:
            return b"".join([chunk async for chunk in self._chunks])
        finally:
            await self.finish()

    def close(self) -> None:
        """Drops the rest of the body."""
        if self._connection is not None:
            self._connection.close()

    async def finish(self) -> None:
        """Keeps the connection if the body was read to its end, closes it if not."""
        await self._chunks.aclose()


class Transport:
    """Connects with `client`, the certificate that shows who calls; keeps idle connections."""

    def __init__(self, client: KeyPair | None = None) -> None:
        self._client = client
        self._contexts: dict[tuple[bytes, bool], ssl.SSLContext] = {}
        self._idle: IdleConnections[Target] = IdleConnections()
        # Sees each call of an aggregated server before it is sent: returns the answer in its place, or None; raises OSError.
        self.intercept: Intercept | None = None

    async def round_trip(
        self,
        target: Target,
        head: bytes,
        method: str,
        body: bytes | AsyncIterator[bytes] | None,
        connected: asyncio.Event | None = None,
    ) -> Answer:
        """Sends `head` (with its blank line) and `body` (framed already), and answers as soon as the response's head is there.
        TransportError. Cancelling it closes the connection. `connected` is set when there is one."""
        if (response := await self._intercepted(target)) is not None:
            return Answer(response.status, "", _headers_of(response), _once(response.body))
        while (connection := self._idle.take(target)) is not None:
            with suppress(_Stale):
                return await self._exchange(target, connection, head, method, body, reused=True)
        connection = await self._connect(target)
        if connected is not None:
            connected.set()
        return await self._exchange(target, connection, head, method, body, reused=False)

    async def connect(self, target: Target) -> Connection:
        """A connection of one's own. TransportError."""
        if (response := await self._intercepted(target)) is not None:
            raise TransportError(f"the server answers {response.status}")
        return await self._connect(target)

    async def _intercepted(self, target: Target) -> Response | None:
        if self.intercept is None or not target.api_service:
            return None
        try:
            return await self.intercept(target)
        except OSError as error:
            raise TransportError(reason(error, target.host, target.port)) from error

    async def _connect(self, target: Target) -> Connection:
        if target.port > _MAX_PORT:
            raise TransportError(f"dial tcp: address {target.port}: invalid port")
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await self._open(target)
        except TimeoutError:
            raise TransportError(f"dial tcp {target.authority}: i/o timeout") from None
        except (OSError, EOFError, ValueError) as error:
            raise TransportError(reason(_as_os_error(error), target.host, target.port)) from error
        try:
            if not (target.insecure or target.plain):
                check_host(target.server_name, writer.get_extra_info("peercert") or {})
        except OSError as error:
            writer.close()
            raise TransportError(str(error)) from error
        if target.dial is None:
            _ask_whether_alive(writer.get_extra_info("socket"))
        return Connection(reader, writer)

    async def _open(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if target.dial is not None:
            reader, writer = await target.dial()
            if not target.plain:
                await writer.start_tls(self._context(target), server_hostname=target.server_name)
            return reader, writer
        if not target.proxy:
            context = None if target.plain else self._context(target)
            name = None if target.plain else target.server_name
            return await asyncio.open_connection(
                target.host, target.port, limit=_BUFFER, ssl=context, server_hostname=name
            )

        reader, writer = await tunnel(target.proxy, target.host, target.port)
        if not target.plain:
            await writer.start_tls(self._context(target), server_hostname=target.server_name)
        return reader, writer

    def close(self) -> None:
        """Ends the idle connections."""
        self._idle.close()

    async def _exchange(
        self,
        target: Target,
        connection: Connection,
        head: bytes,
        method: str,
        body: bytes | AsyncIterator[bytes] | None,
        *,
        reused: bool,
    ) -> Answer:
        sending = _sending(connection.writer, head, body)
        reader = _ResponseReader(connection.reader, method)
        try:
            await reader.read_head(sending)
        except (OSError, EOFError) as error:
            connection.close()
            if reused and body is None and not reader.begun:
                raise _Stale from None
            broken = isinstance(error, EOFError | ConnectionError)
            raise TransportError(reason(_as_os_error(error), target.host, target.port), reset=broken) from error
        except BaseException:
            connection.close()
            raise
        finally:
            if sending is not None and not sending.done():
                sending.cancel()
                reader.keep_alive = False

        async def chunks() -> AsyncGenerator[bytes, None]:
            try:
                async for chunk in reader.body():
                    yield chunk
            except (OSError, EOFError) as error:
                raise TransportError(str(error)) from error
            finally:
                if reader.reusable and target.dial is None:
                    self._idle.keep(target, connection)
                else:
                    connection.close()

        return Answer(reader.status, reader.reason, reader.headers, chunks(), connection)

    def _context(self, target: Target) -> ssl.SSLContext:
        key = (target.ca_bundle, target.insecure)
        if key not in self._contexts:
            context = trusting(target.ca_bundle)
            if target.insecure:
                context.verify_mode = ssl.CERT_NONE
            if self._client is not None:
                _present(context, self._client)
            self._contexts[key] = context
        return self._contexts[key]


class _Stale(Exception):
    """The kept connection was closed by the other side before it took the request."""


def _ask_whether_alive(connection: socket.socket) -> None:
    """A machine that is gone without a word is noticed, as Go's net.Dialer does: a connection may be quiet for hours."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # not every system has them all
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _present(context: ssl.SSLContext, client: KeyPair) -> None:
    """The standard library reads files only; mkdtemp makes the folder 0700."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "client.pem")
        with open(path, "wb") as file:
            file.write(client.certificate.rstrip() + b"\n" + client.key)
        context.load_cert_chain(path)


def _as_os_error(error: Exception) -> Exception:
    """Returns the first error of a group: asyncio collects the errors of several addresses."""
    nested = getattr(error, "exceptions", None)
    return nested[0] if nested else error


def _sending(
    writer: asyncio.StreamWriter, head: bytes, body: bytes | AsyncIterator[bytes] | None
) -> "asyncio.Future[None] | None":
    """Sends the request; a body that comes piece by piece is sent while the response is awaited."""
    if body is None or isinstance(body, bytes):
        writer.write(head + body if body else head)
        return None
    sending = asyncio.ensure_future(_send(writer, head, body))
    sending.add_done_callback(lambda done: done.cancelled() or done.exception())
    return sending


async def _send(writer: asyncio.StreamWriter, head: bytes, body: AsyncIterator[bytes]) -> None:
    writer.write(head)
    async for piece in body:
        writer.write(piece)
        await writer.drain()


class _ResponseReader:
    """Reads one response. `begun`: something of it has come."""

    def __init__(self, reader: asyncio.StreamReader, method: str) -> None:
        import httptools

        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._protocol_errors = (httptools.HttpParserError, httptools.HttpParserUpgrade)
        self._method = method
        self._pieces: list[bytes] = []
        self._first = b""
        self._in_body = False
        self._complete = False
        self.begun = False
        self.keep_alive = True
        self.status = 0
        self.reason = ""
        self.headers: Headers = []

    @property
    def reusable(self) -> bool:
        return self._complete and self.keep_alive

    async def read_head(self, sending: "asyncio.Future[None] | None") -> None:
        """Reads the response's head. Raises OSError or EOFError for an invalid one, and what `sending` raises."""
        while not self._in_body:
            if sending is None:
                data = await self._reader.read(_CHUNK)
            else:
                data = await self._read_while(sending)
            if not data:
                raise EOFError("unexpected EOF" if self.begun else "EOF")
            self._feed(data)

    async def _read_while(self, sending: "asyncio.Future[None]") -> bytes:
        reading = asyncio.ensure_future(self._reader.read(_CHUNK))
        try:
            await asyncio.wait((reading, sending) if not sending.done() else (reading,), return_when="FIRST_COMPLETED")
            _check(sending)
            return await reading
        finally:
            reading.cancel()

    async def body(self) -> AsyncIterator[bytes]:
        """EOFError or OSError when it breaks off."""
        while True:
            pieces, self._pieces = self._pieces, []
            if pieces:
                yield b"".join(pieces)
            if self._complete:
                return
            data = await self._reader.read(_CHUNK)
            if data:
                self._feed(data)
            elif self._ends_with_connection:
                self._complete, self.keep_alive = True, False
            else:
                raise EOFError("unexpected EOF")

    def _feed(self, data: bytes) -> None:
        self.begun = True
        if not self._in_body and len(self._first) < _CHUNK:
            self._first += data
        try:
            self._parser.feed_data(data)
        except self._protocol_errors:
            if not self._complete:
                raise OSError(self._malformed()) from None

    def _malformed(self) -> str:
        prefix = "net/http: HTTP/1.x transport connection broken: "
        if self._in_body:
            return prefix + "invalid body"
        line = self._first.partition(b"\n")[0].rstrip(b"\r").decode("utf-8", "replace")
        return f"{prefix}malformed HTTP response {go_quote(line)}"

    @property
    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self.headers}
        return self._in_body and not names & {b"content-length", b"transfer-encoding"}

    # what the parser calls back

    def on_status(self, text: bytes) -> None:
        self.reason += text.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if 100 <= self.status < 200:
            return
        self._in_body = True
        self.keep_alive = self._parser.should_keep_alive()
        if self._method == "HEAD" or self.status in _BODILESS:
            self._complete, self.keep_alive = True, False

    def on_body(self, data: bytes) -> None:
        if not self._complete:
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        if self._in_body:
            self._complete = True
        else:  # 100 Continue: the response itself follows
            self.headers, self.reason = [], ""


def _check(sending: "asyncio.Future[Any]") -> None:
    """Raises the error that stopped the body, unless the peer closed: then `read` finds its answer or its end."""
    if sending.done() and not sending.cancelled():
        error = sending.exception()
        if error is not None and not isinstance(error, OSError):
            raise error


def _headers_of(response: Response) -> Headers:
    length = (b"Content-Length", b"%d" % len(response.body))
    return [*((name.encode(), value.encode()) for name, value in response.headers.items()), length]


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


__all__: Sequence[str] = ("Answer", "Connection", "Target", "Transport", "TransportError")
