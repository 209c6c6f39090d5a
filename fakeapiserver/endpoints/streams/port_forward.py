"""A client's connections to a pod's ports.

Upstream: k8s.io/cri-streaming/pkg/streaming/portforward/{httpstream,websocket}.go; SPDY inside of a WebSocket: k8s.io/apiserver/pkg/util/
proxy/streamtunnel.go.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.auth.authenticators.websocket import protocols
from fakeapiserver.component_helpers.streaming import KubeletError, Write
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.streams.remote_command import Channels, converse, spdy_response
from fakeapiserver.endpoints.streams.websocket import WebSocket, accept, first_of, is_websocket_request
from fakeapiserver.transport.pipe import Pipe
from fakeapiserver.transport.spdy import MAX_STREAMS, Session, Stream

_PROTOCOLS: Final = ("portforward.k8s.io",)
TUNNEL: Final = "SPDY/3.1+"
_TUNNELS: Final = (f"{TUNNEL}portforward.k8s.io",)
_CHANNELS: Final = ("", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")

# To a port: what the client sends, and where answers go. KubeletError: there is no such connection.
Forward = Callable[[int, Pipe, Write], Awaitable[None]]


async def serve(request: Request, options: Mapping[str, Any], pod: str, uid: str, forward: Forward) -> Response:
    """Serves port-forward. `options`: PodPortForwardOptions. Raises StatusError 400 without ports."""
    forwarding = _Forwarding(pod, uid, forward)
    if not is_websocket_request(request):
        return spdy_response(request, _PROTOCOLS, lambda session, _: forwarding.over_spdy(session))
    if any(protocol.startswith(TUNNEL) for protocol in protocols(request.headers)):
        return accept(request, forwarding.tunnelled, _TUNNELS)
    ports: list[int] = options.get("ports") or []
    if not ports:
        raise new_bad_request('query parameter "port" is required')
    if 0 in ports:
        raise new_bad_request(f"port {go_quote('0')} must be > 0")
    return accept(request, lambda socket: forwarding.over_channels(socket, ports), _CHANNELS)


def tunnelled_protocols(request: Request) -> list[str]:
    """Returns the protocols that a client offers within SPDY within a WebSocket.

    Upstream: spdyProtocolsFromWebsocketProtocols.
    """
    offered = protocols(request.headers) if is_websocket_request(request) else []
    return [name.removeprefix(TUNNEL) for name in offered if name.startswith(TUNNEL) and name.endswith(".k8s.io")]


class _Forwarding:
    def __init__(self, pod: str, uid: str, forward: Forward) -> None:
        self._pod = pod
        self._uid = uid
        self._forward = forward

    async def _problem(self, port: int, received: Pipe, write: Write) -> str:
        """Why the connection failed, or nothing once it is over."""
        try:
            await self._forward(port, received, write)
        except (KubeletError, OSError) as error:
            return f"error forwarding port {port} to pod {self._pod}, uid {self._uid}: {error}"
        return ""

    async def tunnelled(self, socket: WebSocket) -> None:
        """A WebSocket whose messages are SPDY."""
        messages = socket.messages()

        async def read() -> bytes:
            while (message := await anext(messages, None)) is not None:
                if message:
                    return message
            return b""

        await converse(Session(read, lambda data: socket.send(data, text=False)), self.over_spdy)

    async def over_spdy(self, session: Session) -> None:
        """Each connection is a pair of streams: the errors' and the data's."""
        waiting: dict[str, Stream] = {}
        pairs: set[asyncio.Task[None]] = set()
        try:
            async for stream in session.opened():
                if not _is_valid(stream.headers) or len(waiting) >= MAX_STREAMS:
                    await session.refuse(stream)
                    continue
                await session.reply(stream)
                other = waiting.pop(_request_id(stream), None)
                if other is None or other.headers["streamtype"] == stream.headers["streamtype"]:
                    waiting[_request_id(stream)] = stream
                    continue
                data, error = (stream, other) if stream.headers["streamtype"] == "data" else (other, stream)
                pair = asyncio.ensure_future(self._pair(session, data, error))
                pairs.add(pair)
                pair.add_done_callback(pairs.discard)
        finally:
            for pair in pairs:
                pair.cancel()
            await asyncio.gather(*pairs, return_exceptions=True)

    async def _pair(self, session: Session, data: Stream, error: Stream) -> None:
        try:
            problem = await self._problem(int(data.headers["port"]), data.received, data.write)
            if problem:
                await error.write(problem.encode())
                await data.reset()
            else:
                await data.close()
            await error.close()
        except ConnectionError:
            return  # the client has left first
        finally:
            session.forget(data, error)

    async def over_channels(self, socket: WebSocket, ports: list[int]) -> None:
        """Channels 0 and 1 are the first port's data and errors, and so on; each begins with the port in two bytes."""
        channels = Channels(socket)
        received = [Pipe() for _ in ports]
        for index, port in enumerate(ports):
            for channel in (2 * index, 2 * index + 1):
                await channels.write(channel, port.to_bytes(2, "little"))

        async def listen() -> None:
            try:
                async for channel, data in channels.messages():
                    if channel % 2 == 0 and 0 <= channel < 2 * len(ports):
                        await received[channel // 2].feed(data)
            finally:
                for pipe in received:
                    pipe.end()

        async def forward(index: int) -> None:
            problem = await self._problem(ports[index], received[index], lambda data: channels.write(2 * index, data))
            received[index].drop()
            if problem:
                with suppress(ConnectionError):  # the client has left first
                    await channels.write(2 * index + 1, problem.encode())

        async def all_of_them() -> None:
            await asyncio.gather(*(forward(index) for index in range(len(ports))))

        await first_of(asyncio.ensure_future(listen()), asyncio.ensure_future(all_of_them()))


def _is_valid(headers: Mapping[str, str]) -> bool:
    port = headers.get("port", "")
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 1 << 16
    return is_port and headers.get("streamtype") in ("data", "error")


def _request_id(stream: Stream) -> str:
    """Clients that give none open the error stream first, and the data stream right after it."""
    if given := stream.headers.get("requestid", ""):
        return given
    return str(stream.number if stream.headers["streamtype"] == "error" else stream.number - 2)
