"""A request of a connection and its response: ASGI on one side, HTTP/1.1 on the other, streamed both ways.

Upstream: net/http (server.go, transfer.go).
"""

import asyncio
import http
import logging
import socket
import struct
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from fakeapiserver.endpoints.request import HIJACK, PUSH, ConnectionReset, Piece, ResponseBroken
from fakeapiserver.server.http.request_head import Refusal
from fakeapiserver.server.http.tls_transport import TLSTransport

if TYPE_CHECKING:
    from fakeapiserver.server.http.protocol import EdgeProtocol

logger = logging.getLogger("fakeapiserver.server")

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}
_BODILESS = frozenset((204, 304))
# Bodies of more bytes aren't copied into one piece with their framing: many connections may send the same body.
_LARGE = 8192
_AT_ONCE = struct.pack("ii", 1, 0)
_DISCONNECT = {"type": "http.disconnect"}
_FAILURE_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"21"),
    (b"connection", b"close"),
]


# Bytes of a body that wait for the application, before no more is read.
HIGH_WATER_LIMIT = 65536


class FlowControl:
    """Pauses reading, and lets a writer wait while the peer takes nothing."""

    __slots__ = ("_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Future[None] | None = None
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        """Returns when the peer takes bytes, or is gone."""
        while self.write_paused:
            if self._writable is None or self._writable.done():
                self._writable = asyncio.get_running_loop().create_future()
            await self._writable

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)


class ClientDisconnected(ConnectionError):
    """Raised by `send` when the peer is gone, so that a stream that only sends ends too."""


class Exchange:
    """A request and its response. `receive` and `send` are the application's; the protocol fills in the body."""

    __slots__ = (
        "_bodiless",
        "_chunked",
        "_delivered",
        "_gone",
        "_head",
        "_owed",
        "_raw",
        "_waiter",
        "body",
        "broken",
        "discarded",
        "disconnected",
        "expects_continue",
        "flow",
        "keep_alive",
        "more_body",
        "protocol",
        "response_complete",
        "response_started",
        "scope",
        "transport",
    )

    def __init__(
        self, protocol: "EdgeProtocol", scope: dict[str, Any], expects_continue: bool, keep_alive: bool
    ) -> None:
        self.protocol = protocol
        self.transport = protocol.transport
        self.flow = protocol.flow
        self.scope = scope
        self.expects_continue = expects_continue
        self.keep_alive = keep_alive
        self.body = bytearray()
        self.more_body = True  # the peer has not sent all of it
        self.discarded = 0  # bytes of the body that came after the response
        self.broken: Refusal | None = None  # the body is no body
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self._delivered = False  # the application has got the end of the body
        self._chunked = False
        self._bodiless = False
        self._owed: int | None = None  # bytes left of a declared Content-Length
        self._raw = False  # taken over by the application: bytes go to and fro as they are
        self._head = b""  # kept back for the rest of this turn, to leave in one record with the first piece of body
        self._waiter: asyncio.Future[None] | None = None
        self._gone: Callable[[], object] | None = None  # called when the peer is gone

    def wake(self) -> None:
        """Something for `receive` has come."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def disconnect(self) -> None:
        """The peer is gone or was refused: nothing more is read or written."""
        self.disconnected = True
        self.wake()
        if self._gone is not None:
            self._gone()

    async def run_asgi(self, app: Any) -> None:
        """Call the application; its exception is logged and, if nothing was sent yet, answered as 500."""
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            self._cut()
            raise
        except ResponseBroken as error:
            self._cut(resets=isinstance(error, ConnectionReset))
        except Exception as error:
            if not (self.disconnected and isinstance(error, ConnectionError)):
                logger.error("exception in the application", exc_info=error)
                await self._fail()
        else:
            if not self.response_complete and not self.disconnected:
                logger.error("the application returned without completing its response")
                await self._fail()

    async def _fail(self) -> None:
        if self.response_complete or self.disconnected:
            return
        if self.response_started and not self._head:
            self._cut()
            return
        self._head = b""
        self._start_response(500, _FAILURE_HEADERS)
        await self.send({"type": "http.response.body", "body": b"Internal Server Error"})

    def _cut(self, *, resets: bool = False) -> None:
        """End the connection with the response unfinished; the peer must see that it is not whole. `resets`: by a TCP reset."""
        if not self.disconnected and not self.response_complete:
            self._flush_head()
            self._gone = None
            self.disconnect()
            if resets:
                # the kernel sends a reset for a socket that is closed without waiting for its data
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                self.transport.abort()
            else:
                self.transport.close()

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body; once it is all read, waits until the peer is gone or the response is complete."""
        if self.expects_continue and self.more_body and not self.response_started and not self.transport.is_closing():
            self.transport.write(_CONTINUE)
        self.expects_continue = False
        while not (self.disconnected or self.response_complete):
            if self.body or not (self.more_body or self._delivered):
                message = {"type": "http.request", "body": bytes(self.body), "more_body": self.more_body}
                self._delivered = not self.more_body
                self.body = bytearray()
                return message
            if self.broken is not None:
                self.protocol.answer_broken(self, self.broken)
                break
            if self.more_body:
                self.flow.resume_reading()
            self._waiter = self.protocol.loop.create_future()
            await self._waiter
        return _DISCONNECT

    async def send(self, message: dict[str, Any]) -> None:
        """Write one ASGI message at once. Waits while the peer takes nothing; raises ClientDisconnected when it is gone."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            raise ClientDisconnected("the peer is gone")
        kind = message["type"]
        if kind == "http.response.body" and self.response_started and not self.response_complete:
            self._write_body(message.get("body", b""), message.get("more_body", False))
        elif kind == "http.response.start" and not self.response_started:
            self._start_response(message["status"], message.get("headers", ()))
            if self._owed is None:  # else the body is at hand
                self.protocol.loop.call_soon(self._flush_head)
        elif kind == HIJACK and not self.response_started:
            self._hijack(message["status"], message["headers"])
        elif kind == PUSH and self.response_started and not self.response_complete:
            self._gone = message["gone"]
            if message["attach"] is not None:
                message["attach"](self.push)
        else:
            raise RuntimeError(f"unexpected ASGI message {kind!r}")

    def push(self, pieces: Sequence[Piece]) -> bool:
        """See endpoints.request.Push."""
        if self.flow.write_paused or self.disconnected or self.response_complete:
            return False
        if self._chunked and not self._bodiless and sum(map(len, pieces)) > _LARGE:
            self._write_chunk(pieces)
        else:
            self._write_body(b"".join(pieces), True)
        return True

    def _write_chunk(self, pieces: Sequence[Piece]) -> None:
        """Writes a large chunk, whose pieces other connections may send as well."""
        head, self._head = self._head, b""
        self._write_parts(b"%b%x\r\n" % (head, sum(map(len, pieces))), *pieces, b"\r\n")

    def _hijack(self, status: int, headers: Any) -> None:
        """Send exactly this head; from now on the connection is the application's."""
        self.response_started = self._raw = True
        self.keep_alive = False
        lines = [_status_line(status), *(b"%b: %b\r\n" % header for header in headers), b"\r\n"]
        if b"".join(lines).count(b"\n") != len(lines):
            raise RuntimeError("a response header contains a line break")
        self.transport.write(b"".join(lines))
        self.more_body, self._delivered = True, False
        self.receive_raw(self.protocol.take_over())

    def receive_raw(self, data: bytes) -> None:
        """Bytes of a connection that was taken over."""
        self.body += data
        if len(self.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        self.wake()

    def _start_response(self, status: int, headers: Any) -> None:
        self.response_started = True
        self._bodiless = self.scope["method"] == "HEAD" or status in _BODILESS
        self._chunked, self._owed = False, None
        line = _status_line(status)
        lines = [line if self.scope["http_version"] != "1.0" else b"HTTP/1.0" + line[8:]]
        lines += [b"%b: %b\r\n" % header for header in headers]
        known = dict(headers)  # names are in lower case, as ASGI wants them
        if b"content-length" in known:
            self._owed = int(known[b"content-length"])
        if b"connection" in known and b"close" in known[b"connection"].lower():
            self.keep_alive = False
        if b"date" not in known:
            lines.append(self.protocol.state.date_line())
        self._frame(lines, known)
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
            raise RuntimeError("a response header contains a line break")
        self._head = head + b"\r\n"

    def _frame(self, lines: list[bytes], names: Collection[bytes]) -> None:
        """Decide how the peer finds the end of the body and whether the connection stays."""
        if self._owed is None and not self._bodiless and b"transfer-encoding" not in names:
            if self.scope["http_version"] == "1.0":
                self.keep_alive = False
            else:
                self._chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
        elif b"transfer-encoding" in names:
            self._chunked = True
        if self.expects_continue and self.more_body:
            self.keep_alive = False  # the peer may or may not send the body without being asked to
        old = self.scope["http_version"] == "1.0"  # HTTP/1.0 closes by default
        if self.keep_alive == old and b"connection" not in names:
            lines.append(b"connection: keep-alive\r\n" if old else b"connection: close\r\n")

    def _flush_head(self) -> None:
        if self._head and not self.disconnected:
            self.transport.write(self._head)
        self._head = b""

    def _write_parts(self, *parts: Piece) -> None:
        """Writes parts without joining them. Before Python 3.13.2 asyncio's own `writelines` doesn't ask a writer to pause."""
        if isinstance(self.transport, TLSTransport):
            self.transport.writelines(parts)
            return
        for part in parts:
            self.transport.write(part)

    def _write_body(self, body: bytes, more: bool) -> None:
        if self._raw:
            pass
        elif self._bodiless:
            body = b""
        elif self._chunked:
            if len(body) > _LARGE:
                self._write_chunk((body,))
                body = b""
            elif body:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            if not more:
                body += b"0\r\n\r\n"
        elif self._owed is not None:
            self._owed -= len(body)
            if self._owed < 0 or (self._owed and not more):
                raise RuntimeError("the response's body is not as long as its Content-Length")
        if self._head and len(body) > _LARGE:
            self._write_parts(self._head, body)
            body, self._head = b"", b""
        elif self._head:
            body, self._head = self._head + body, b""
        if body:
            self.transport.write(body)
        if not more:
            self.response_complete = True
            self.wake()
            self.protocol.on_exchange_complete(self)


def _status_line(status: int) -> bytes:
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
