"""HTTP/1.1 as Go's server speaks it: refusals, deadlines and streaming on top of uvicorn's httptools protocol.

Upstream: net/http (server.go, request.go, transfer.go); k8s.io/apiserver/pkg/server/secure_serving.go
"""

import asyncio
import http
import logging
import re
import time
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Collection
from email.utils import formatdate
from typing import Any

import httptools
from msgspec import Struct
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from fakeapiserver.endpoints.request import HIJACK, ResponseBroken
from fakeapiserver.server.request_head import (
    BAD_EXPECTATION,
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    Headers,
    Refusal,
    check_hosts,
    check_transfer,
    decode_path,
    judge,
    split_target,
)

logger = logging.getLogger("fakeapiserver.server")


class Limits(Struct, frozen=True):
    """What one connection may cost. Times in seconds, sizes in bytes; the defaults are kube-apiserver's."""

    header_timeout: float = 32.0  # silent peers, unfinished handshakes and headers
    body_timeout: float = 90.0  # unfinished bodies; longer than a request may take, so that it is answered
    idle_timeout: float = 90.0  # between two requests of a kept connection
    write_timeout: float = 60.0  # a reader that takes nothing for so long is cut
    linger_timeout: float = 0.5  # how long a body nobody wants is swallowed, so that the answer is not lost to a reset
    max_header_bytes: int = (1 << 20) + 4096  # request line and headers
    max_body_bytes: int = 3 << 20  # told to the application, which answers 413
    max_discard_bytes: int = 256 << 10  # an unread rest up to this size is swallowed to keep the connection


# what the parser knows as a method; any other token is one too, for Go
_METHODS = frozenset(
    b"DELETE GET HEAD POST PUT CONNECT OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK BIND REBIND UNBIND "
    b"ACL REPORT MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PATCH PURGE MKCALENDAR LINK UNLINK SOURCE "
    b"QUERY PRI".split()
)
_REQUEST_LINE = re.compile(rb"([A-Za-z0-9!#$%&'*+\-.^_`|~]+) ([^ \r\n]*) HTTP/1\.([0-9])\r?\n")
_RAW_BYTES = re.compile(rb"[\x80-\xff]")
_VERSIONS = frozenset((b"HTTP/1.1\r", b"HTTP/1.0\r"))
_CHECKED_HEADERS = frozenset((b"host", b"expect", b"transfer-encoding", b"content-length"))
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}
BODILESS = frozenset((204, 304))
DISCONNECT = {"type": "http.disconnect"}
_FAILURE_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"21"),
    (b"connection", b"close"),
]


class ClientDisconnected(ConnectionError):
    """Raised by `send` when the peer is gone, so that a stream that only sends ends too."""


class EdgeState(ServerState):
    """What the connections of one server share."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self._second = 0
        self._date_line = b""

    def date_line(self) -> bytes:
        """The `date` header line, made once a second."""
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._date_line = f"date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._date_line


class Exchange:
    """One request and its response. `receive` and `send` are the application's; the protocol fills in the body."""

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

    def wake(self) -> None:
        """Something for `receive` has come."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def disconnect(self) -> None:
        """The peer is gone or was refused: nothing more is read or written."""
        self.disconnected = True
        self.wake()

    async def run_asgi(self, app: Any) -> None:
        """Call the application; its exception is logged and, if nothing was sent yet, answered as 500."""
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            self._cut()
            raise
        except ResponseBroken:
            self._cut()
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

    def _cut(self) -> None:
        """End the connection with the response unfinished; the peer must see that it is not whole."""
        if not self.disconnected and not self.response_complete:
            self._flush_head()
            self.disconnect()
            self.transport.close()

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body; once it is all read, waits until the peer is gone or the response is complete."""
        if self.expects_continue and self.more_body and not self.response_started and not self.transport.is_closing():
            self.transport.write(CONTINUE)
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
        return DISCONNECT

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
        else:
            raise RuntimeError(f"unexpected ASGI message {kind!r}")

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
        self._bodiless = self.scope["method"] == "HEAD" or status in BODILESS
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
            lines.append(self.protocol.server_state.date_line())
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
            self.keep_alive = False  # the peer may or may not send the body nobody asked for
        old = self.scope["http_version"] == "1.0"  # it closes unless told otherwise
        if self.keep_alive == old and b"connection" not in names:
            lines.append(b"connection: keep-alive\r\n" if old else b"connection: close\r\n")

    def _flush_head(self) -> None:
        if self._head and not self.disconnected:
            self.transport.write(self._head)
        self._head = b""

    def _write_body(self, body: bytes, more: bool) -> None:
        if self._raw:
            pass
        elif self._bodiless:
            body = b""
        elif self._chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if not more:
                body += b"0\r\n\r\n"
        elif self._owed is not None:
            self._owed -= len(body)
            if self._owed < 0 or (self._owed and not more):
                raise RuntimeError("the response's body is not as long as its Content-Length")
        if self._head:
            body, self._head = self._head + body, b""
        if body:
            self.transport.write(body)
        if not more:
            self.response_complete = True
            self.wake()
            self.protocol.on_exchange_complete(self)


def _status_line(status: int) -> bytes:
    return STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status


async def _server_options(scope: Any, receive: Any, send: Any) -> None:
    """`OPTIONS *` asks about the server itself; Go's answers before anybody sees it."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class EdgeProtocol(HttpToolsProtocol):
    """One connection. Deadlines are plain numbers here; the server's sweep compares them with the time."""

    server_state: EdgeState

    def __init__(self, config: Config, state: EdgeState, loop: AbstractEventLoop) -> None:
        super().__init__(config=config, server_state=state, app_state={}, _loop=loop)
        self.limits = state.limits
        self.deadline: float | None = None  # for the peer's next byte, header or body
        self.stalled_since: float | None = None  # the peer takes no bytes since then
        self.active: Exchange | None = None  # the one being answered
        self.incoming: Exchange | None = (
            None  # the one whose body is being read; the same unless requests are pipelined
        )
        self.waiting: deque[Exchange] = deque()
        self._extensions: dict[str, Any] = {}
        self._header_bytes = 0
        self._in_headers = True
        self._checked: list[tuple[bytes, bytes]] = []
        self._refused = False
        self._owed: Refusal | None = None  # the answer to a bad request behind others
        self._upgrade: Exchange | None = None  # the one whose request asks for another protocol
        self._rest = b""  # what came after that request
        self._taken_over: Exchange | None = None
        self._framing = b""  # the header that says how long the request's body is
        self._head = b""  # what has come of the request that begins
        self._begun = 0  # requests since then
        self._method = ""  # of the request that begins, where the parser doesn't know it

    # connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.deadline = self.loop.time() + self.limits.header_timeout
        self._extensions = {"fakeapiserver.limits": {"max_body_bytes": self.limits.max_body_bytes}, HIJACK: {}}
        connection = transport.get_extra_info("ssl_object")
        if connection is not None:
            peer_certificates = getattr(connection, "peer_certificates", None)
            chain: tuple[bytes, ...] = peer_certificates() if peer_certificates else ()
            self._extensions["tls"] = describe_tls(connection, chain)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        self.deadline = self.stalled_since = None
        for exchange in (self.active, *self.waiting):
            if exchange is not None and not exchange.response_complete:
                exchange.disconnect()
        self.waiting.clear()
        self.flow.resume_writing()
        self.parser = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._refused or self.parser is None:
            return
        if self._upgrade is not None:
            self._receive_rest(self._upgrade, data)
            return
        if self._in_headers:
            if self._header_bytes == 0:
                self.deadline = self.loop.time() + self.limits.header_timeout
                self._head, self._begun = data, 0
                data = self._known(data)
            else:
                self._head += data
            self._header_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            if self.incoming is not None and self._framing:
                self._read_body(self.incoming, rest)
            elif self.incoming is not None:
                self._upgrade, self._rest = self.incoming, b""
                self._receive_rest(self.incoming, rest)
        except httptools.HttpParserError as error:
            self.refuse(self._refusal_of(error))
        else:
            if self._in_headers and self._header_bytes > self.limits.max_header_bytes:
                self.refuse(HEADERS_TOO_LARGE)

    def _read_body(self, exchange: Exchange, data: bytes) -> None:
        """httptools takes a body for the other protocol's bytes; a parser that is handed the body's framing reads it."""
        exchange.more_body = True
        self.deadline = self.loop.time() + self.limits.body_timeout
        self.parser = _new_parser(_BodyCallbacks(self))
        self._in_headers = False
        self.data_received(b"POST / HTTP/1.1\r\n%b\r\n\r\n%b" % (self._framing, data))

    def _receive_rest(self, exchange: Exchange, data: bytes) -> None:
        """What follows a request for another protocol: only the application knows what it is."""
        if exchange is self._taken_over:
            exchange.receive_raw(data)
            return
        self._rest += data
        if len(self._rest) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def take_over(self) -> bytes:
        """The active exchange has the connection from now on; what has come for it already."""
        self.deadline = None
        self._upgrade = self._taken_over = self.active
        rest, self._rest = self._rest, b""
        return rest

    def _known(self, data: bytes) -> bytes:
        """The start of a request with a method, a target and a version that the parser takes; its method is kept in `_method`."""
        end = data.find(b"\n")
        if data[: data.find(b" ")] in _METHODS and data[end - 9 : end] in _VERSIONS and data[:end].isascii():
            return data
        line = _REQUEST_LINE.match(data)
        if line is None:
            return data
        method, target, minor = line.groups()
        if method not in _METHODS:
            self._method, method = method.decode("ascii"), b"POST"
        target = _RAW_BYTES.sub(lambda byte: b"%%%02X" % byte[0][0], target)
        return b"%b %b HTTP/1.%d\r\n%b" % (method, target, minor != b"0", data[line.end() :])

    def _refusal_of(self, error: httptools.HttpParserError) -> Refusal:
        """The answer to what the parser, or one of our callbacks, did not take."""
        cause = error.__context__
        return cause if isinstance(cause, Refusal) else self._judged()

    def _judged(self) -> Refusal:
        """What Go says about the head; of one that came behind another request in the same piece we don't know the start."""
        return judge(self._head) if self._in_headers and self._begun <= 1 else BAD_REQUEST

    def refuse(self, refusal: Refusal) -> None:
        """Answer without the application and close, after the answers that are owed to earlier requests."""
        self._refused = True
        exchange = self.incoming
        if self.transport.is_closing():
            return
        if exchange is not None and not self._in_headers:
            if exchange.response_complete:
                self._close_after_rest()
            else:  # the application may answer without the body
                exchange.broken, exchange.keep_alive = refusal, False
                exchange.wake()
        elif exchange is not None and not exchange.response_complete:
            self._owed = refusal
        else:
            self._send_refusal(refusal)

    def _send_refusal(self, refusal: Refusal) -> None:
        self.transport.write(refusal.encode())
        if refusal is HEADERS_TOO_LARGE:
            self._close_after_rest()
        else:
            self.transport.close()

    def answer_broken(self, exchange: Exchange, refusal: Refusal) -> None:
        """The application wants the body that is none."""
        if not (exchange.response_started or exchange.disconnected):
            self.transport.write(refusal.encode())
        exchange.disconnect()
        self._close_after_rest()

    def _close_after_rest(self) -> None:
        """Swallow what the peer is still sending for a moment: closing over unread bytes resets the connection,
        and the peer would lose the answer."""
        self._refused = True
        self.deadline = None
        self.flow.resume_reading()
        self.loop.call_later(self.limits.linger_timeout, self.transport.close)

    def eof_received(self) -> None:
        if self._refused:
            self.transport.close()

    def pause_writing(self) -> None:
        self.stalled_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.stalled_since = None
        super().resume_writing()

    def sweep(self, now: float) -> None:
        """Cut the connection if one of its deadlines has passed."""
        if self.stalled_since is not None and now - self.stalled_since > self.limits.write_timeout:
            self.transport.abort()
        elif self.deadline is not None and now > self.deadline:
            if self.flow.read_paused:  # it is the application that does not read
                self.deadline = now + self.limits.header_timeout
            elif self.transport.is_closing():
                self.transport.abort()
            else:
                self.transport.close()
                self.deadline = now + self.limits.linger_timeout

    # parser callbacks

    def on_message_begin(self) -> None:
        self._begun += 1
        self.url = b""
        self.headers = []
        self._checked = []
        self._in_headers = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_headers:
            return  # a trailer: behind the body it's too late to say who one is
        name = name.lower()
        header = (name, value.rstrip(b" \t"))  # the parser leaves what stands behind a value
        self.headers.append(header)
        if name in _CHECKED_HEADERS:
            self._checked.append(header)

    def on_headers_complete(self) -> None:
        parser = self.parser
        version: str = parser.get_http_version()
        raw_path, query = split_target(self.url)
        path = decode_path(raw_path)
        expects = self._check_request(version)
        self._in_headers = False
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": {},
            "method": self._method or parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "target": self.url,
            "extensions": self._extensions,
        }
        self._method = ""
        self._start(Exchange(self, scope, expects, parser.should_keep_alive()))

    def _start(self, exchange: Exchange) -> None:
        self.incoming = exchange
        # the body's time; cleared as soon as it is complete, mostly in this same turn
        self.deadline = self.loop.time() + self.limits.body_timeout
        if self.active is None or self.active.response_complete:
            self._run(exchange)
        else:
            self.flow.pause_reading()
            self.waiting.append(exchange)

    def _run(self, exchange: Exchange) -> None:
        self.active = exchange
        star = exchange.scope["path"] == "*" and exchange.scope["method"] == "OPTIONS"
        task = self.loop.create_task(exchange.run_asgi(_server_options if star else self.app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _check_request(self, version: str) -> bool:
        """Refuse what Go's server refuses; true if the peer waits for `100 Continue`."""
        if self._header_bytes > self.limits.max_header_bytes and self._header_size() > self.limits.max_header_bytes:
            raise HEADERS_TOO_LARGE
        seen: Headers = {}
        for name, value in self._checked:
            seen.setdefault(name, []).append(value)
        check_transfer(seen, version)
        if version not in ("1.1", "1.0"):
            raise self._judged()
        check_hosts(seen, self.parser.get_method(), version)
        framing = b"content-length" if b"content-length" in seen else b"transfer-encoding"
        self._framing = b"%b: %b" % (framing, seen[framing][0]) if framing in seen else b""
        expect = seen[b"expect"][0].lower() if b"expect" in seen else b""
        if expect and expect != b"100-continue":
            raise BAD_EXPECTATION
        return bool(expect) and version == "1.1"

    def _header_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        exchange = self.incoming
        if exchange is None or self._refused:
            return
        if exchange.response_complete:
            exchange.discarded += len(body)
            if exchange.discarded > self.limits.max_discard_bytes:
                self._close_after_rest()
            return
        exchange.body += body
        if len(exchange.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        exchange.wake()

    def on_message_complete(self) -> None:
        self._header_bytes = 0
        self._in_headers = True
        exchange = self.incoming
        if exchange is None or self._refused:
            return
        exchange.more_body = False
        if exchange.response_complete:
            self._after_both(exchange)
        else:
            self.deadline = None
            exchange.wake()

    # after a response

    def on_exchange_complete(self, exchange: Exchange) -> None:
        """The application has answered: go on with the next request, wait for one, or close."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if not exchange.more_body:
            self._after_both(exchange)
        elif exchange is self._taken_over:
            self.transport.close()
        elif not exchange.keep_alive:
            self._close_after_rest()

    def _after_both(self, exchange: Exchange) -> None:
        if not exchange.keep_alive:
            self.transport.close()
        elif self.waiting:
            self._run(self.waiting.popleft())
        elif self._owed is not None:
            self._send_refusal(self._owed)
        elif self.incoming is exchange:
            self.deadline = self.loop.time() + self.limits.idle_timeout
            if self._upgrade is exchange:
                self._go_on_with_http()

    def _go_on_with_http(self) -> None:
        """The request for another protocol was answered in plain HTTP; the old parser reads no further."""
        self.parser = _new_parser(self)
        rest, self._upgrade, self._rest = self._rest, None, b""
        if rest:
            self.data_received(rest)

    def shutdown(self) -> None:
        """No further request: close now when idle, else after the running response."""
        self.waiting.clear()
        if self.active is None or self.active.response_complete:
            self.transport.close()
        else:
            self.active.keep_alive = False


class _BodyCallbacks:
    """A parser's callbacks where the head of the first request is none: only its body, and what follows, counts."""

    def __init__(self, protocol: EdgeProtocol) -> None:
        self._protocol = protocol
        self.on_body = protocol.on_body
        self.on_message_complete = protocol.on_message_complete
        self._in_body = False

    def on_message_begin(self) -> None:
        if self._in_body:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._in_body:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._in_body:
            self._protocol.on_headers_complete()
        self._in_body = True


def _new_parser(callbacks: Any) -> httptools.HttpRequestParser:
    """As uvicorn makes its own: bytes after a last request are no error."""
    parser = httptools.HttpRequestParser(callbacks)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def describe_tls(connection: Any, chain: tuple[bytes, ...]) -> dict[str, Any]:
    """The ASGI TLS extension of one connection, shared by all its requests; `client_cert_der` is an addition of ours."""
    from ssl import DER_cert_to_PEM_cert

    return {
        "server_cert": None,
        "client_cert_chain": tuple(DER_cert_to_PEM_cert(der) for der in chain),
        "client_cert_name": None,
        "client_cert_error": None,
        "tls_version": {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}.get(connection.version()),
        "cipher_suite": None,
        "client_cert_der": chain,
    }
