"""WebSockets: the handshake as golang.org/x/net/websocket checks it, messages, and watches sent as messages.

Upstream: k8s.io/streaming/pkg/httpstream/wsstream, k8s.io/apiserver/pkg/endpoints/handlers/watch.go (HandleWS).

A handler answers with `accept(request, serve)`; `serve` then talks through a `WebSocket`. Framing is lenient where
golang.org/x/net/
websocket is: reserved bits and opcodes, invalid close codes and invalid texts pass; each frame is a message, whole or a piece.
"""

import asyncio
import base64
import hashlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from fakeapiserver.apimachinery.go.url import request_uri_problem
from fakeapiserver.auth.authenticators.websocket import asks_for_websocket, protocols
from fakeapiserver.endpoints.request import HIJACK, Receive, Request, Response, Send

_ACCEPT_SALT: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NORMAL: Final = 1000
_PROTOCOL_ERROR: Final = 1002
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_MAX_MESSAGE: Final = 32 << 20
_MAX_CONTROL: Final = 125
_LENGTH_BYTES: Final = 4  # in front of each event of a binary watch
# What is done in one turn of the event loop: so many frames, and so many bytes of one, a multiple of the mask's four.
_TURN_FRAMES: Final = 256
TURN_BYTES: Final = 1 << 20

Serve = Callable[["WebSocket"], Awaitable[None]]


def is_websocket_request(request: Request) -> bool:
    """The client asks for it, and the server below can hand a connection over."""
    return asks_for_websocket(request.headers) and HIJACK in request.scope.get("extensions", {})


def accept(request: Request, serve: Serve, supported: Sequence[str] | None = None) -> Response:
    """Returns 101 and runs `serve`, or refuses an invalid handshake. Both have only the headers that Go sends.

    `supported`: the first of the client's subprotocols in this list is chosen ("": none is required); None: the
    client may offer one at
    most, which is chosen."""
    if request.method != "GET":
        return _refused(405, b"bad method")
    key = request.header(b"sec-websocket-key")
    if not key:
        return _refused(400, b"mismatch challenge/response")
    if request.header(b"sec-websocket-version") != "13":
        response = _refused(400, b"missing or bad WebSocket Version")
        response.headers.append((b"Sec-WebSocket-Version", b"13"))
        return response
    offered = [] if (names := protocols(request.headers)) == [""] else names
    if supported is not None:
        chosen = next((protocol for protocol in offered or [""] if protocol in supported), None)
        if chosen is None:
            return _refused(403)
    # Browsers send one, and so must others.
    elif request_uri_problem(request.header(b"origin")):
        return _refused(403)
    elif len(offered) > 1:
        return _refused(400)
    else:
        chosen = "".join(offered)
    answer = base64.b64encode(hashlib.sha1(key.encode("latin-1") + _ACCEPT_SALT).digest())
    headers = [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Accept", answer)]
    if chosen:
        headers.append((b"Sec-WebSocket-Protocol", chosen.encode("latin-1")))

    async def takeover(receive: Receive, send: Send) -> None:
        socket = WebSocket(receive, send, chosen)
        try:
            await serve(socket)
        except ConnectionError:
            return  # the client has left first
        await socket.close()

    return Response(101, headers=headers, takeover=takeover)


def _refused(status: int, reason: bytes = b"") -> Response:
    async def say(_: Receive, send: Send) -> None:
        await send({"type": "http.response.body", "body": reason})

    return Response(status, takeover=say)


class WebSocket:
    """The server's side of an open connection, on the two ASGI callables of a request that was answered with 101. `protocol` is the
    subprotocol that was chosen."""

    def __init__(self, receive: Receive, send: Send, protocol: str = "") -> None:
        self.protocol = protocol
        self._receive = receive
        self._send = send
        self._received = bytearray()
        self._closed = False

    async def send(self, message: bytes, *, text: bool) -> None:
        """Sends a message. Raises ConnectionError when the client is gone."""
        await self._write(_TEXT if text else _BINARY, message)

    async def messages(self) -> AsyncIterator[bytes]:
        """Yields the client's frames until it closes, breaks a rule or sends too much at once; pings are answered."""
        for count in itertools.count(1):
            if not await self._reaches(2):
                return
            if count % _TURN_FRAMES == 0:
                await asyncio.sleep(0)
            opcode, masked, size = self._received[0] & 15, self._received[1] & 128, self._received[1] & 127
            width = 2 if size == 126 else 8 if size == 127 else 0
            begin = 2 + width + (4 if masked else 0)
            if not await self._reaches(begin):
                return
            if width:
                size = int.from_bytes(self._received[2 : 2 + width]) & (1 << 63) - 1
            if not masked:
                await self._write(_CLOSE, _PROTOCOL_ERROR.to_bytes(2))
                return
            if opcode == _CLOSE or size > _MAX_MESSAGE or not await self._reaches(begin + size):
                return
            payload, mask = self._received[begin : begin + size], self._received[begin - 4 : begin]
            del self._received[: begin + size]
            for start in range(0, size, TURN_BYTES):
                if start:
                    await asyncio.sleep(0)
                payload[start : start + TURN_BYTES] = _unmasked(payload[start : start + TURN_BYTES], mask)
            if opcode == _PING:
                await self._write(_PONG, bytes(payload[:_MAX_CONTROL]))
            elif opcode != _PONG:
                yield bytes(payload)

    async def finish(self, message: bytes, *, text: bool) -> None:
        """Sends the last message and the close frame in one write, as golang's server does, and ends the connection.

        A client that closes as soon as it has the message must not leave a close frame behind that arrives later."""
        frames = _frame(_TEXT if text else _BINARY, message) + _frame(_CLOSE, _NORMAL.to_bytes(2))
        await self._put(frames, last=True)

    async def close(self) -> None:
        """Sends the close frame and ends the connection; does nothing after `finish`."""
        await self._put(_frame(_CLOSE, _NORMAL.to_bytes(2)), last=True)

    async def _reaches(self, size: int) -> bool:
        """Waits until so many bytes have arrived; returns False if the client is gone before."""
        while len(self._received) < size:
            received = await self._receive()
            if received["type"] == "http.disconnect":
                return False
            self._received += received.get("body", b"")
        return True

    async def _write(self, opcode: int, payload: bytes) -> None:
        await self._put(_frame(opcode, payload), last=False)

    async def _put(self, frames: bytes, *, last: bool) -> None:
        if not self._closed:
            self._closed = last
            await self._send({"type": "http.response.body", "body": frames, "more_body": not last})


def _frame(opcode: int, payload: bytes) -> bytes:
    size = len(payload)
    length = (
        bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 1 << 16 else b"\x7f" + size.to_bytes(8)
    )
    return bytes([128 | opcode]) + length + payload


def _unmasked(payload: bytearray, mask: bytearray) -> bytes:
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)


async def first_of(*tasks: "asyncio.Future[None]") -> None:
    """Runs both until one ends; the other is cancelled. Raises what went wrong."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(
            tasks
        )  # unlike gather it keeps the message of a cancellation, by which anyio recognizes its own
    for task in tasks:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            raise error


async def streamed(request: Request, response: Response) -> Response:
    """A watch's answer as messages, one for each event: text, or binary without the length in front."""
    stream = response.stream
    assert stream is not None
    text = response.content_type == "application/json"

    async def send_events(socket: WebSocket) -> None:
        async for chunk in stream:
            for event in _lines(chunk) if text else _frames(chunk):
                await socket.send(event, text=text)

    async def ignore_messages(socket: WebSocket) -> None:
        async for _ in socket.messages():
            pass

    async def serve(socket: WebSocket) -> None:
        try:
            await first_of(asyncio.ensure_future(send_events(socket)), asyncio.ensure_future(ignore_messages(socket)))
        finally:
            await stream.aclose()

    accepted = accept(request, serve)
    if accepted.status != 101:
        async for _ in stream:
            break  # begun, so that closing it cleans up
        await stream.aclose()
    return accepted


def _lines(chunk: bytes) -> list[bytes]:
    return [line + b"\n" for line in chunk.split(b"\n") if line]


def _frames(chunk: bytes) -> list[bytes]:
    frames, at = [], 0
    while at < len(chunk):
        end = at + _LENGTH_BYTES + int.from_bytes(chunk[at : at + _LENGTH_BYTES], "big")
        frames.append(chunk[at + _LENGTH_BYTES : end])
        at = end
    return frames
