"""A WebSocket to an API server: the connection that exec, attach and port-forward take over.

Upstream: k8s.io/client-go/transport/websocket/roundtripper.go.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from fakeapiserver.apimachinery.errors import answered
from fakeapiserver.client.errors import TransportError
from fakeapiserver.client.rest import Params, RESTClient, encode_query
from fakeapiserver.transport.round_trip import Connection

_CHUNK = 65536
_MAX_MESSAGE = 64 << 20


class WebSocket:
    """Messages both ways. `subprotocol` is the one that the server chose."""

    def __init__(self, connection: Connection, protocol: ClientProtocol) -> None:
        self._connection = connection
        self._protocol = protocol
        self._waiting: list[Event] = []

    @property
    def subprotocol(self) -> str:
        """The protocol that the server chose among those offered; "" if it chose none."""
        return self._protocol.subprotocol or ""

    async def send(self, message: bytes) -> None:
        """A binary message; waits while the server takes no more. TransportError when the connection is over."""
        if self._protocol.state is not State.OPEN:
            raise TransportError("websocket: close sent")
        self._protocol.send_binary(message)
        await self._flush()

    async def messages(self) -> AsyncIterator[bytes]:
        """Binary and text messages, until the server ends the connection. TransportError when it breaks off."""
        pieces: list[bytes] = []
        while True:
            for event in self._waiting or self._protocol.events_received():
                assert isinstance(event, Frame)
                if event.opcode in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT):
                    pieces.append(bytes(event.data))
                    if event.fin:
                        yield b"".join(pieces)
                        pieces = []
            self._waiting = []
            with suppress(TransportError):  # what has come counts still
                await self._flush()
            if self._protocol.state is not State.OPEN:
                return
            await _receive(self._connection, self._protocol)
            self._waiting = self._protocol.events_received()

    async def close(self) -> None:
        """Closes the connection, with a close frame if the server is still there."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            with suppress(TransportError):
                await self._flush()

    async def _flush(self) -> None:
        data = b"".join(self._protocol.data_to_send())
        if not data:
            return
        if not self._connection.quiet:
            # a write that fails takes with it what has come and isn't read yet, which may be why the server has gone
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        writer = self._connection.writer
        if writer.is_closing() or self._connection.reader.exception() is not None:
            raise TransportError("use of closed network connection", reset=True)
        writer.write(data)
        try:
            await writer.drain()
        except OSError as error:
            raise TransportError(str(error), reset=True) from error


@asynccontextmanager
async def connect(
    rest: RESTClient, path: str, subprotocols: Sequence[str], params: Params | None = None
) -> AsyncGenerator[WebSocket, None]:
    """Opens a WebSocket at `path`.

    Raises StatusError if the server refuses, TransportError if no server is there or it speaks another protocol.
    """
    connection, headers = await rest.dial()
    try:
        scheme = "wss" if rest.config.host.startswith("https") else "ws"
        parts = urlsplit(rest.config.host)
        uri = urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + path, encode_query(params)[1:], ""))
        protocol = ClientProtocol(
            parse_uri(uri), subprotocols=[Subprotocol(name) for name in subprotocols], max_size=_MAX_MESSAGE
        )
        request = protocol.connect()
        for name, value in headers:
            request.headers[name] = value
        protocol.send_request(request)
        socket = WebSocket(connection, protocol)
        await socket._flush()
        while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
            await _receive(connection, protocol)
        if protocol.handshake_exc is not None:
            raise _refusal(protocol.handshake_exc)
        socket._waiting = [event for event in protocol.events_received() if isinstance(event, Frame)]
        yield socket
        await socket.close()
    finally:
        connection.close()


async def _receive(connection: Connection, protocol: ClientProtocol) -> None:
    try:
        data = await connection.reader.read(_CHUNK)
    except OSError as error:
        raise TransportError(str(error), reset=True) from error
    if data:
        protocol.receive_data(data)
        return
    protocol.receive_eof()
    if protocol.handshake_exc is None and protocol.close_rcvd is None:
        raise TransportError("unexpected EOF", reset=True)


def _refusal(error: Exception) -> Exception:
    if isinstance(error, InvalidStatus):
        response = error.response
        return answered(response.status_code, response.headers.get("Content-Type", ""), bytes(response.body or b""))
    return TransportError(f"websocket: bad handshake: {error}")
