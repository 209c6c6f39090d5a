"""A client and a process in a container: which protocol they speak, its channels, and how the process has ended.

Upstream: k8s.io/cri-streaming/pkg/streaming/remotecommand/{httpstream,websocket,exec,attach}.go, k8s.io/streaming/pkg/httpstream/
wsstream/conn.go; v5 over WebSockets: k8s.io/apiserver/pkg/util/proxy/{streamtranslator,websocket}.go.
"""

import asyncio
import base64
import binascii
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.authenticators.websocket import protocols
from fakeapiserver.component_helpers.streaming import KubeletError, Streams, Write
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Receive, Request, Response, Send
from fakeapiserver.endpoints.streams.websocket import TURN_BYTES, WebSocket, accept, first_of, is_websocket_request
from fakeapiserver.transport.pipe import Pipe
from fakeapiserver.transport.spdy import SPDY, Session, Stream

_CLOSING: Final = "v5.channel.k8s.io"
_SPDY_PROTOCOLS: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_WEBSOCKET_PROTOCOLS: Final = (
    "",
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
)
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
# Bytes of a terminal's size, and those that are read of sizes in one turn of the event loop.
_MAX_SIZE_TEXT: Final = 1 << 10
_SIZES_AT_ONCE: Final = 1 << 12
_MAX_SIZE: Final = (1 << 16) - 1
_SIZE_BEGINS: Final = re.compile(r"\S")
_CREATION_SECONDS: Final = 30.0
_PROTOCOL_VERSION: Final = b"x-stream-protocol-version"
_SUCCESS: Final[Object] = {"metadata": {}, "status": "Success"}

# Uses the streams and returns an exit code. Raises KubeletError if it can't begin.
Process = Callable[[Streams], Awaitable[int]]


async def serve(request: Request, options: Mapping[str, Any], process: Process) -> Response:
    """Serves exec and attach.

    `options`: PodExecOptions or PodAttachOptions. Returns 400 and 403 for invalid handshakes.
    """
    if is_websocket_request(request):
        offered = protocols(request.headers)
        supported = (_CLOSING,) if _CLOSING in offered else _WEBSOCKET_PROTOCOLS
        return accept(request, lambda socket: _over_websocket(socket, options, process), supported)
    return spdy_response(
        request, _SPDY_PROTOCOLS, lambda session, protocol: _over_spdy(session, protocol, options, process)
    )


def closes_streams(request: Request) -> bool:
    """Reports whether the client speaks the newest protocol, which kubelets may not know (upstream:
    IsWebSocketRequestWithStreamCloseProtocol).
    """
    return is_websocket_request(request) and _CLOSING in protocols(request.headers)


def translated(process: Process) -> Process:
    """Words errors of the kubelet as the API server does that translates its protocol."""

    async def run(streams: Streams) -> int:
        try:
            return await process(streams)
        except KubeletError as error:
            raise KubeletError(error.status, f"Internal error occurred: {error}") from None

    return run


def spdy_response(
    request: Request, supported: Sequence[str], talk: Callable[[Session, str], Awaitable[None]]
) -> Response:
    """The change to SPDY (upstream: httpstream.Handshake, spdy.UpgradeResponse), and then `talk`, while the session runs."""
    values = [value.decode("latin-1") for name, value in request.headers if name == _PROTOCOL_VERSION]
    offered = [name.strip() for value in values for name in value.split(",") if name.strip()]
    if not offered:
        header = "X-Stream-Protocol-Version"
        text = f"unable to upgrade: header {header} does not exist in request with {len(request.headers)} headers"
        return respond.text(400, text + "\n")
    chosen = next((name for name in offered if name in supported), "")
    if not chosen:
        said = f"client supports [{' '.join(offered)}], server accepts [{' '.join(supported)}]"
        refusal = respond.text(403, f"unable to upgrade: unable to negotiate protocol: {said}\n")
        refusal.headers += [(b"x-accepted-stream-protocol-versions", name.encode()) for name in supported]
        return refusal
    if SPDY.lower() not in request.header(b"upgrade").lower():
        return respond.text(400, "unable to upgrade: missing upgrade headers in request\n")

    async def takeover(receive: Receive, send: Send) -> None:
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        async def read() -> bytes:
            while (message := await receive())["type"] != "http.disconnect":
                if message.get("body"):
                    return bytes(message["body"])
            return b""

        try:
            await converse(Session(read, write), lambda session: talk(session, chosen))
            await send({"type": "http.response.body", "body": b""})
        except ConnectionError:
            return  # the client has left first

    headers = [
        (b"Connection", b"Upgrade"),
        (b"Upgrade", SPDY.encode()),
        (b"X-Stream-Protocol-Version", chosen.encode()),
    ]
    return Response(101, headers=headers, takeover=takeover)


async def converse(session: Session, talk: Callable[[Session], Awaitable[None]]) -> None:
    """`talk` with a session that runs meanwhile; ends with either. ConnectionError."""
    running = asyncio.ensure_future(session.run())
    talking = asyncio.ensure_future(talk(session))
    await first_of(running, talking)
    await session.go_away()


async def _status(process: Process, streams: Streams, protocol: str) -> Object:
    """Returns the result for the error channel.

    Upstream's kubelets don't speak v5: the API server that translates has other words.
    """
    try:
        code = await process(streams)
    except KubeletError as error:
        return {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {error}",
            "reason": "InternalError",
            "details": {"causes": [{"message": str(error)}]},
            "code": 500,
        }
    if code == 0:
        return _SUCCESS
    ended = f"command terminated with exit code {code}" if protocol == _CLOSING else f"exit status {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {ended}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _told(status: Object, protocol: str) -> bytes:
    """Encodes the result; before v4 only failures are sent, as text."""
    if protocol.startswith(("v4.", "v5.")):
        return json.dumps(status, separators=(",", ":")).encode()
    return str(status.get("message", "")).encode()


# -------------------------------------------------------------------- WebSockets


class Channels:
    """Messages begin with their channel's number; in base64 both are text."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._base64 = "base64." in socket.protocol

    async def write(self, channel: int, data: bytes) -> None:
        await self._socket.send(self._message(channel, data), text=self._base64)

    async def finish(self, channel: int, data: bytes) -> None:
        """Sends the last message together with the close frame."""
        await self._socket.finish(self._message(channel, data), text=self._base64)

    def _message(self, channel: int, data: bytes) -> bytes:
        return b"%d" % channel + base64.b64encode(data) if self._base64 else bytes([channel]) + data

    async def messages(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yields the messages; those that can't be decoded are skipped."""
        async for message in self._socket.messages():
            if not message:
                continue
            if not self._base64:
                yield message[0], message[1:]
                continue
            try:
                yield message[0] - ord("0"), await _from_base64(message[1:])
            except binascii.Error:
                continue


async def _from_base64(text: bytes) -> bytes:
    """Decodes a part of a long text in each turn of the event loop. Raises binascii.Error."""
    pieces = [base64.b64decode(text[:TURN_BYTES], validate=True)]
    for start in range(TURN_BYTES, len(text), TURN_BYTES):
        await asyncio.sleep(0)
        pieces.append(base64.b64decode(text[start : start + TURN_BYTES], validate=True))
    return b"".join(pieces)


async def _over_websocket(socket: WebSocket, options: Mapping[str, Any], process: Process) -> None:
    channels = Channels(socket)

    def writer(number: int) -> Write:
        return lambda data: channels.write(number, data)

    streams = Streams(
        Pipe() if options.get("stdin") else None,
        writer(_STDOUT) if options.get("stdout") else None,
        writer(_STDERR) if _has_stderr(options) else None,
        bool(options.get("tty")),
    )
    # an empty message confirms the connection to the client
    await channels.write(_STDOUT if streams.stdout else _STDERR if streams.stderr else _ERROR, b"")

    async def listen() -> None:
        try:
            async for channel, data in channels.messages():
                if channel == _STDIN and streams.stdin is not None:
                    await streams.stdin.feed(data)
                elif channel == _RESIZE:
                    _resize(streams, data)
                elif (
                    channel == _CLOSE and socket.protocol == _CLOSING and data == b"\x00" and streams.stdin is not None
                ):
                    streams.stdin.end()
        finally:
            if streams.stdin is not None:
                streams.stdin.end()

    async def run() -> None:
        status = await _status(process, streams, socket.protocol)
        if told := _told(status, socket.protocol):
            await channels.finish(_ERROR, told)

    await first_of(asyncio.ensure_future(listen()), asyncio.ensure_future(run()))


def _has_stderr(options: Mapping[str, Any]) -> bool:
    """A terminal has one output only."""
    return bool(options.get("stderr")) and not options.get("tty")


def _resize(streams: Streams, data: bytes) -> None:
    """Sets the terminal's size; ignores invalid ones."""
    if len(data) > _MAX_SIZE_TEXT:
        return
    try:
        size = json.loads(data)
        width, height = size["Width"], size["Height"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    if all(type(number) is int and 0 <= number <= _MAX_SIZE for number in (width, height)):
        streams.size = (width, height)
        streams.resized.set()


# -------------------------------------------------------------------------- SPDY


async def _over_spdy(session: Session, protocol: str, options: Mapping[str, Any], process: Process) -> None:
    """Upstream: createHTTPStreamStreams; the client opens a stream of each kind it has asked for, and one for errors."""
    wanted = ["error", *(name for name in ("stdin", "stdout") if options.get(name))]
    if _has_stderr(options):
        wanted.append("stderr")
    if options.get("tty") and protocol.startswith(("v4.", "v3.")):
        wanted.append("resize")
    by_name: dict[str, Stream] = {}
    try:
        async with asyncio.timeout(_CREATION_SECONDS):
            async for stream in session.opened():
                await session.reply(stream)
                by_name[stream.headers.get("streamtype", "")] = stream
                if all(name in by_name for name in wanted):
                    break
            else:
                return
    except TimeoutError:  # the connection ends
        return
    streams = Streams(
        by_name["stdin"].received if "stdin" in by_name else None,
        by_name["stdout"].write if "stdout" in by_name else None,
        by_name["stderr"].write if "stderr" in by_name else None,
        bool(options.get("tty")),
    )
    async with _sizes(by_name.get("resize"), streams):
        status = await _status(process, streams, protocol)
    session.hold()
    if told := _told(status, protocol):
        await by_name["error"].write(told)
    for stream in by_name.values():
        await stream.close()


@asynccontextmanager
async def _sizes(stream: Stream | None, streams: Streams) -> AsyncGenerator[None, None]:
    """Follows the size of the client's terminal: JSON objects, one after the other."""
    if stream is None:
        yield
        return

    async def follow(stream: Stream) -> None:
        text, decoder = "", json.JSONDecoder()
        while data := await stream.received.read(_SIZES_AT_ONCE):
            text = text[-_MAX_SIZE_TEXT:] + data.decode("utf-8", "replace")
            at = 0
            while begin := _SIZE_BEGINS.search(text, at):
                at = begin.start()
                try:
                    _, end = decoder.raw_decode(text, at)
                except ValueError:
                    break  # the rest is still to come
                except RecursionError:
                    return
                _resize(streams, text[at:end].encode())
                at = end
            text = text[at:]
            await asyncio.sleep(0)

    following = asyncio.ensure_future(follow(stream))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
