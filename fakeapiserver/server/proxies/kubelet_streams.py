"""Between a client that speaks WebSockets and a kubelet that speaks SPDY.

Upstream: k8s.io/apiserver/pkg/util/proxy/{streamtranslator,streamtunnel}.go, k8s.io/client-go/tools/remotecommand/{spdy,v2,v3,v4,
errorstream}.go, k8s.io/streaming/pkg/httpstream/spdy/roundtripper.go.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.streaming import KubeletError, Streams, Write
from fakeapiserver.endpoints.streams.websocket import WebSocket, first_of
from fakeapiserver.transport.connections import Connection
from fakeapiserver.transport.pipe import Pipe
from fakeapiserver.transport.spdy import SPDY, Session, Stream

# What is offered to a kubelet; v5 only closes streams one by one, which SPDY does anyway.
PROTOCOLS: Final = tuple(f"{version}channel.k8s.io" for version in ("v5.", "v4.", "v3.", "v2.", ""))
VERSION_HEADER: Final = b"x-stream-protocol-version"
_TELLS_STATUS: Final = PROTOCOLS[:2]
_TELLS_SIZES: Final = PROTOCOLS[:3]
_CHUNK: Final = 65536
_MAX_REFUSAL: Final = 50_000
_REFUSAL_SECONDS: Final = 10.0


def speaks_spdy(headers: Object) -> bool:
    """`headers`: of an answer, names in lower case."""
    return "upgrade" in headers.get("connection", "").lower() and SPDY.lower() in headers.get("upgrade", "").lower()


async def refusal(connection: Connection, headers: Object) -> str:
    """Why a kubelet doesn't change the protocol: its answer's body, or the message in it."""
    length = headers.get("content-length", "")
    size = min(int(length), _MAX_REFUSAL) if length.isascii() and length.isdigit() else _MAX_REFUSAL
    body = b""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_REFUSAL_SECONDS):
            while len(body) < size and (data := await connection.reader.read(size - len(body))):
                body += data
    text = body.decode("utf-8", "replace").strip()
    with suppress(ValueError):
        if isinstance(status := json.loads(text), dict):
            messages = [status.get(key) for key in ("message", "error")]
            return next((word for word in messages if isinstance(word, str) and word.strip()), text).strip()
    return text or "empty server response"


# ----------------------------------------------------------------- translating


async def run(connection: Connection, protocol: str, streams: Streams) -> int:
    """Returns the exit code of the process at the other end of `connection`, which has become SPDY.

    Raises KubeletError for the kubelet's error, ConnectionError if the client has left.
    """
    async with _session(connection) as session:
        try:
            error = await session.open({"streamtype": "error"})
            stdin = await session.open({"streamtype": "stdin"}) if streams.stdin is not None else None
            stdout = await session.open({"streamtype": "stdout"}) if streams.stdout is not None else None
            stderr = await session.open({"streamtype": "stderr"}) if streams.stderr is not None else None
            sized = streams.tty and protocol in _TELLS_SIZES
            resize = await session.open({"streamtype": "resize"}) if sized else None
        except ConnectionError as problem:
            raise KubeletError(500, str(problem)) from None
        told = asyncio.ensure_future(_whole(error))
        sending = [asyncio.ensure_future(_send_input(streams.stdin, stdin)) if streams.stdin and stdin else None]
        sending.append(asyncio.ensure_future(_send_sizes(streams, resize)) if resize else None)
        try:
            await asyncio.gather(_copy(stdout, streams.stdout), _copy(stderr, streams.stderr))
            return _exit_code(await told, protocol)
        finally:
            running = [told, *(task for task in sending if task is not None)]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def _session(connection: Connection) -> AsyncIterator[Session]:
    async def write(data: bytes) -> None:
        connection.writer.write(data)
        await connection.writer.drain()

    session = Session(lambda: connection.reader.read(_CHUNK), write, client=True)
    running = asyncio.ensure_future(session.run())
    try:
        yield session
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        connection.close()


async def _whole(stream: Stream) -> bytes:
    parts = []
    while data := await stream.read():
        parts.append(data)
    return b"".join(parts)


async def _copy(stream: Stream | None, write: Write | None) -> None:
    if stream is None or write is None:
        return
    while data := await stream.read():
        await write(data)


async def _send_input(source: Pipe, stream: Stream) -> None:
    with suppress(ConnectionError):  # the process reads no more
        while data := await source.read():
            await stream.write(data)
        await stream.close()


async def _send_sizes(streams: Streams, stream: Stream) -> None:
    with suppress(ConnectionError):
        while True:
            if streams.size is not None:
                width, height = streams.size
                await stream.write(json.dumps({"Width": width, "Height": height}).encode() + b"\n")
            streams.resized.clear()
            await streams.resized.wait()


def _exit_code(message: bytes, protocol: str) -> int:
    """Returns the exit code in the error stream. Raises KubeletError for other errors."""
    text = message.decode("utf-8", "replace")
    if not text:
        return 0
    if protocol not in _TELLS_STATUS:
        raise KubeletError(500, f"error executing remote command: {text}")
    try:
        status = json.loads(text)
    except ValueError as error:
        raise KubeletError(500, f"error stream protocol error: {error} in {go_quote(text)}") from None
    match status:
        case {"status": "Success"}:
            return 0
        case {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [*causes]}}:
            return _told_code(causes)
        case {"status": "Failure", "reason": "NonZeroExitCode"}:
            raise KubeletError(500, "error stream protocol error: details must be set")
        case {"status": "Failure"}:
            raise KubeletError(500, str(status.get("message", "")))
    raise KubeletError(500, "error stream protocol error: unknown error")


def _told_code(causes: list[Object]) -> int:
    for cause in causes:
        if cause.get("reason") == "ExitCode":
            code = cause.get("message", "")
            if code.isascii() and code.isdigit() and int(code[:4]) < 1 << 8:
                return int(code)
            raise KubeletError(500, f"error stream protocol error: invalid exit code value {go_quote(code)}")
    raise KubeletError(500, "error stream protocol error: no ExitCode cause given")


# ------------------------------------------------------------------- tunnelling


async def tunnel(connection: Connection, socket: WebSocket) -> None:
    """Passes data between the kubelet and a WebSocket unchanged until one of them ends."""

    async def to_client() -> None:
        while data := await connection.reader.read(_CHUNK):
            await socket.send(data, text=False)

    async def to_kubelet() -> None:
        async for message in socket.messages():
            connection.writer.write(message)
            await connection.writer.drain()

    try:
        await first_of(asyncio.ensure_future(to_client()), asyncio.ensure_future(to_kubelet()))
    finally:
        connection.close()
