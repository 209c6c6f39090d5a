"""HTTP/1.1 as Go's server speaks it: refusals and deadlines around httptools' parser. An exchange (exchange.py) is a connection's request.

Upstream: net/http (server.go, request.go, transfer.go); k8s.io/apiserver/pkg/server/secure_serving.go
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from typing import Any

import httptools

from fakeapiserver.server.http.edge_state import EdgeState
from fakeapiserver.server.http.exchange import HIGH_WATER_LIMIT, Exchange, FlowControl
from fakeapiserver.server.http.request_head import (
    BAD_EXPECTATION,
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    Headers,
    Refusal,
    check_hosts,
    check_line,
    check_transfer,
    decode_path,
    judge,
    split_target,
    translated_head,
)

logger = logging.getLogger("fakeapiserver.server")


_BLANKS = 4
_ENDS = (b"\n\r\n", b"\n\n")  # of a head
_CHECKED_HEADERS = frozenset((b"host", b"expect", b"transfer-encoding", b"content-length"))


async def _server_options(scope: Any, receive: Any, send: Any) -> None:
    """`OPTIONS *` asks about the server itself; Go's answers before anybody sees it."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class EdgeProtocol(asyncio.Protocol):
    """A connection. Deadlines are plain numbers; the server's sweep compares them with the time."""

    __slots__ = (
        "_blanks",
        "_body_left",
        "_checked",
        "_extensions",
        "_framing",
        "_head",
        "_in_headers",
        "_method",
        "_owed",
        "_refused",
        "_rest",
        "_taken_over",
        "_upgrade",
        "active",
        "client",
        "deadline",
        "flow",
        "headers",
        "incoming",
        "limits",
        "loop",
        "parser",
        "scheme",
        "server",
        "stalled_since",
        "state",
        "transport",
        "url",
        "waiting",
    )

    def __init__(self, state: EdgeState, loop: AbstractEventLoop) -> None:
        self.state = state
        self.limits = state.limits
        self.loop = loop
        self.parser: httptools.HttpRequestParser | None = _new_parser(self)
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        self.flow: FlowControl = None  # type: ignore[assignment]
        self.server: tuple[str, int] | None = None
        self.client: tuple[str, int] | None = None
        self.scheme = "http"
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.deadline: float | None = None  # for the peer's next byte, header or body
        self.stalled_since: float | None = None  # the peer takes no bytes since then
        self.active: Exchange | None = None  # the one being answered
        # The one whose body is being read; the same unless requests are pipelined.
        self.incoming: Exchange | None = None
        self.waiting: list[Exchange] = []
        self._extensions: dict[str, Any] = {}
        self._in_headers = True
        self._checked: list[tuple[bytes, bytes]] = []
        self._refused = False
        self._owed: Refusal | None = None  # the answer to a bad request behind others
        self._upgrade: Exchange | None = None  # the one whose request asks for another protocol
        self._rest = b""  # what came after that request
        self._taken_over: Exchange | None = None
        self._framing = b""  # the header that says how long the request's body is
        self._head = bytearray()  # what has come of the head that is being read
        # Line ends that are skipped before the next head: old clients send some behind the body of a POST.
        self._blanks = 0
        self._body_left = 0  # bytes of the body that follow; 0: none, or it is chunked
        self._method = ""  # of the request that begins

    # connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.state.connections.add(self)
        self.transport = transport
        self.flow = FlowControl(transport)
        self.server = _address(transport.get_extra_info("sockname"))
        self.client = _address(transport.get_extra_info("peername"))
        tls = transport.get_extra_info("tls")
        self.scheme = "https" if tls is not None else "http"
        self._extensions = self.state.extensions(tls)
        self.deadline = self.loop.time() + self.limits.header_timeout

    def connection_lost(self, exc: Exception | None) -> None:
        self.state.connections.discard(self)
        self.state.closed += 1
        self.deadline = self.stalled_since = None
        for exchange in (self.active, *self.waiting):
            if exchange is not None and not exchange.response_complete:
                exchange.disconnect()
        self.waiting.clear()
        self.flow.resume_writing()
        self.parser = self.active = self.incoming = self._upgrade = self._taken_over = None

    def data_received(self, data: bytes) -> None:
        """Hands the parser one head, or a part of one body, after the other: each head is known from its first byte to its last."""
        at = 0
        while at < len(data) and not self._refused and self.parser is not None:
            if self._upgrade is not None:
                self._receive_rest(self._upgrade, data[at:])
                return
            at = self._receive_head(data, at) if self._in_headers else self._receive_body(data, at)

    def _receive_head(self, data: bytes, at: int) -> int:
        """Takes what of the data belongs to the head of a request, and returns where the rest begins. A whole head is parsed."""
        head, known = self._head, len(self._head)
        if not known:
            if self._blanks and data[at] in b"\r\n":
                self._blanks -= 1
                return at + 1
            self.deadline = self.loop.time() + self.limits.header_timeout
        head += data[at:] if at else data
        ends = [found + len(end) for end in _ENDS if (found := head.find(end, max(known - len(end) + 1, 0))) >= 0]
        if ends:
            del head[min(ends) :]
        at += len(head) - known
        try:
            if len(head) > self.limits.max_header_bytes:
                raise HEADERS_TOO_LARGE
            if ends:
                self._method, translated = translated_head(bytes(head))
                self._parse(translated)
            elif head.find(b"\n", 0, known) < 0 <= head.find(b"\n", known):  # the first line has just ended
                check_line(head)
        except Refusal as refusal:
            self.refuse(refusal)
        return at

    def _receive_body(self, data: bytes, at: int) -> int:
        """Takes what may belong to the body, and returns where the rest begins. A chunked body ends with a line."""
        if self._body_left:
            piece = data[at : at + self._body_left]
            self._body_left -= len(piece)
        else:
            piece = data[at : data.find(b"\n", at) + 1 or len(data)]
        self._parse(piece)
        return at + len(piece)

    def _parse(self, piece: bytes) -> None:
        assert self.parser is not None
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            if self.incoming is not None and self._framing:
                self._read_body(self.incoming)
            else:
                self._upgrade, self._rest = self.incoming, b""
        except httptools.HttpParserError as error:
            self.refuse(self._refusal_of(error))

    def _read_body(self, exchange: Exchange) -> None:
        """httptools takes a body for the other protocol's bytes; a parser that is handed the body's framing reads it."""
        exchange.more_body = True
        self.deadline = self.loop.time() + self.limits.body_timeout
        self.parser = _new_parser(_BodyCallbacks(self))
        self._in_headers = False
        self._parse(b"POST / HTTP/1.1\r\n%b\r\n\r\n" % self._framing)

    def _receive_rest(self, exchange: Exchange, data: bytes) -> None:
        """Passes bytes after a request for another protocol on to the application, which knows the protocol."""
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

    def _refusal_of(self, error: httptools.HttpParserError) -> Refusal:
        """The answer to what the parser, or one of our callbacks, did not take."""
        cause = error.__context__
        return cause if isinstance(cause, Refusal) else self._judged()

    def _judged(self) -> Refusal:
        """Returns Go's refusal of the head, or that of a body."""
        return judge(bytes(self._head)) if self._in_headers else BAD_REQUEST

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
        """Answers a request whose body turned out to be malformed, once the application reads it."""
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
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.stalled_since = None
        self.flow.resume_writing()

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
        self.url = b""
        self.headers = []
        self._checked = []
        self._in_headers = True

    def on_url(self, url: bytes) -> None:
        self.url += url

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
        assert parser is not None
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
            "method": self._method,
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "target": self.url,
            "extensions": self._extensions,
        }
        self._blanks = _BLANKS if self._method == "POST" else 0
        self._start(Exchange(self, scope, expects, parser.should_keep_alive() and not self.state.is_ending))

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
        task = self.loop.create_task(exchange.run_asgi(_server_options if star else self.state.app))
        self.state.tasks.add(task)
        task.add_done_callback(self.state.tasks.discard)

    def _check_request(self, version: str) -> bool:
        """Refuse what Go's server refuses; true if the peer waits for `100 Continue`."""
        seen: Headers = {}
        for name, value in self._checked:
            seen.setdefault(name, []).append(value)
        check_transfer(seen, version)
        if version not in ("1.1", "1.0"):
            raise self._judged()
        check_hosts(seen, self._method.encode(), version)
        framing = b"content-length" if b"content-length" in seen else b"transfer-encoding"
        self._framing = b"%b: %b" % (framing, seen[framing][0]) if framing in seen else b""
        self._body_left = int(seen[framing][0]) if framing == b"content-length" else 0
        expect = seen[b"expect"][0].lower() if b"expect" in seen else b""
        if expect and expect != b"100-continue":
            raise BAD_EXPECTATION
        return bool(expect) and version == "1.1"

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
        self._head.clear()
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
            self._run(self.waiting.pop(0))
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


def _address(name: object) -> tuple[str, int] | None:
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


class _BodyCallbacks:
    """The parser's callbacks after an invalid first head: only the body and what follows count."""

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
    """Creates a parser as uvicorn does: bytes after a last request are no error."""
    parser = httptools.HttpRequestParser(callbacks)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
