"""WebSockets of an ASGI server, for endpoints that write frames to a connection themselves (endpoints/streams/websocket.py).

The endpoint sees a connection that was handed over to it (`HIJACK`); its frames become ASGI's messages, and the other way round.
"""

from collections.abc import Iterator
from typing import Any, Final

from fakeapiserver.endpoints.request import HIJACK, ASGIApplication, Message, Receive, Scope, Send

_TEXT, _BINARY, _CLOSE = 1, 2, 8
_NORMAL: Final = 1000
_PROTOCOLS: Final = b"sec-websocket-protocol"
_NO_MASK: Final = bytes(4)
# What a handshake has in HTTP/1.1 and lacks in HTTP/2; the server has checked it.
_HANDSHAKE: Final = {
    b"connection": b"Upgrade",
    b"upgrade": b"websocket",
    b"sec-websocket-key": b"AAAAAAAAAAAAAAAAAAAAAA==",
    b"sec-websocket-version": b"13",
}


async def serve(application: ASGIApplication, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers one WebSocket with what `application` answers to the handshake as a GET request."""
    await receive()  # websocket.connect
    headers = [(name, value) for name, value in scope["headers"] if name not in _HANDSHAKE]
    handshake = {**_HANDSHAKE, **{name: value for name, value in scope["headers"] if name in _HANDSHAKE}}
    if (offered := scope.get("subprotocols")) and not any(name == _PROTOCOLS for name, _ in headers):
        headers.append((_PROTOCOLS, ", ".join(offered).encode()))  # some servers leave the header out
    bridge = _Bridge(scope, receive, send)
    request = {
        **scope,
        "type": "http",
        "method": "GET",
        "headers": [*headers, *handshake.items()],
        "extensions": {**(scope.get("extensions") or {}), HIJACK: {}},
    }
    await application(request, bridge.receive, bridge.send)
    await bridge.close()


class _Bridge:
    """The two callables of the GET request, made from the two of the WebSocket."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._answers_http = "websocket.http.response" in (scope.get("extensions") or {})
        self._open = False  # the handshake is accepted, and neither side has closed
        self._refused = False
        self._read_body = False
        self._frames = bytearray()

    async def receive(self) -> Message:
        if not (self._open or self._refused or self._read_body):
            self._read_body = True
            return {"type": "http.request", "body": b"", "more_body": False}
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._open = False
            return {"type": "http.disconnect"}
        text = message.get("text")
        return {"type": "http.request", "body": _frame(text.encode()) if text is not None else _frame(message["bytes"])}

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == HIJACK and message["status"] == 101:
            self._open = True
            await self._send({"type": "websocket.accept", "subprotocol": _subprotocol(message)})
        elif kind in (HIJACK, "http.response.start"):
            await self._refuse(message)
        elif self._refused:
            await self._send_refusal(message)
        elif self._open:
            self._frames += message.get("body", b"")
            for opcode, payload in self._complete():
                await self._send_frame(opcode, payload)

    async def close(self) -> None:
        """Closes what the application has left open."""
        if self._open:
            await self._send_frame(_CLOSE, b"")

    async def _send_frame(self, opcode: int, payload: bytes) -> None:
        if not self._open:
            return
        if opcode == _CLOSE:
            self._open = False
            code = int.from_bytes(payload[:2]) if len(payload) > 1 else _NORMAL
            await self._send({"type": "websocket.close", "code": code})
        elif opcode == _TEXT:
            await self._send({"type": "websocket.send", "text": payload.decode("utf-8", "replace")})
        elif opcode == _BINARY:
            await self._send({"type": "websocket.send", "bytes": payload})

    async def _refuse(self, message: Message) -> None:
        """A refused handshake: an HTTP response where the ASGI server can send one, else its 403."""
        self._refused = True
        if self._answers_http:
            headers = [(name.lower(), value) for name, value in message["headers"]]
            start = {"type": "websocket.http.response.start", "status": message["status"], "headers": headers}
            await self._send(start)
        else:
            await self._send({"type": "websocket.close", "code": _NORMAL, "reason": ""})

    async def _send_refusal(self, message: Message) -> None:
        if self._answers_http:
            await self._send({**message, "type": "websocket.http.response.body"})

    def _complete(self) -> Iterator[tuple[int, bytes]]:
        """Takes whole frames from what the application has written."""
        while len(self._frames) > 1:
            size = self._frames[1] & 127
            width = 2 if size == 126 else 8 if size == 127 else 0
            begin = 2 + width
            if width:
                size = int.from_bytes(self._frames[2:begin])
            if len(self._frames) < begin + size:
                return
            opcode, payload = self._frames[0] & 15, bytes(self._frames[begin : begin + size])
            del self._frames[: begin + size]
            yield opcode, payload


def _frame(payload: bytes) -> bytes:
    """A client's frame; its mask is zero."""
    size = len(payload)
    if size < 126:
        length = bytes([128 | size])
    elif size < 1 << 16:
        length = b"\xfe" + size.to_bytes(2)
    else:
        length = b"\xff" + size.to_bytes(8)
    return bytes([128 | _BINARY]) + length + _NO_MASK + payload


def _subprotocol(message: Message) -> Any:
    chosen = dict(message["headers"]).get(b"Sec-WebSocket-Protocol")
    return chosen.decode("latin-1") if chosen else None
