"""Into a pod: commands, what its processes print, its ports.

Upstream: k8s.io/client-go/tools/remotecommand (v5.channel.k8s.io), k8s.io/kubelet/pkg/cri/streaming/portforward (v4.channel.k8s.io),
k8s.io/client-go/kubernetes/typed/core/v1/pod_expansion.go (logs).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from enum import IntEnum
from typing import Final, TypedDict, Unpack

from msgspec import Struct

from fakeapiserver.client.errors import StatusError, TransportError
from fakeapiserver.client.rest import RESTClient, resource_path
from fakeapiserver.client.websocket import WebSocket, connect

__all__ = [
    "Channel",
    "Completed",
    "LogOptions",
    "Output",
    "PortForwarder",
    "Process",
    "attach_stream",
    "exec_stream",
    "logs",
    "run",
]

_CLOSING: Final = "v5.channel.k8s.io"
_COMMANDS: Final = (_CLOSING, "v4.channel.k8s.io")
_PORTS: Final = ("v4.channel.k8s.io",)
_MAX_PIECE: Final = 1 << 15
_LINGER_SECONDS: Final = 1.0


class Channel(IntEnum):
    """The first byte of a message."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


class Output(Struct, frozen=True):
    """A piece of a process's output, from STDOUT or STDERR."""

    channel: Channel
    data: bytes


class Completed(Struct, frozen=True):
    """The result of a command."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class LogOptions(TypedDict, total=False):
    """Options for logs.

    `container` may be left out if the pod has only one. `follow`: until the container ends; `previous`: of the run before a restart;
    `tail_lines`: the last ones only (0: none); `since_seconds`: no older lines; `timestamps`: before each line;
    `limit_bytes`: at most so many.
    """

    container: str
    follow: bool
    previous: bool
    tail_lines: int | None
    since_seconds: int | None
    timestamps: bool
    limit_bytes: int | None


class Process:
    """A command that runs in a container. Read `output()` to its end, then `exit_code` is there."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._status: dict[str, object] | None = None

    async def write(self, data: bytes) -> None:
        """To its standard input. TransportError when it has ended."""
        for start in range(0, len(data), _MAX_PIECE):
            await self._socket.send(bytes((Channel.STDIN,)) + data[start : start + _MAX_PIECE])

    @property
    def can_close_stdin(self) -> bool:
        """Reports whether the server can signal the end of a command's input."""
        return self._socket.subprotocol == _CLOSING

    async def close_stdin(self) -> None:
        """Ends the command's input. Raises ValueError if the server is too old for that (before 1.30)."""
        if not self.can_close_stdin:
            raise ValueError("the server can't close standard input alone: it doesn't speak v5.channel.k8s.io")
        await self._socket.send(bytes((Channel.CLOSE, Channel.STDIN)))

    async def resize(self, width: int, height: int) -> None:
        """Its terminal's size, in characters."""
        size = json.dumps({"Width": width, "Height": height}).encode()
        await self._socket.send(bytes((Channel.RESIZE,)) + size)

    async def output(self) -> AsyncIterator[Output]:
        """Yields the command's output as it arrives."""
        async for message in self._socket.messages():
            if not message:
                continue
            channel = message[0]
            if channel == Channel.ERROR:
                self._status = json.loads(message[1:])
                return
            if channel in (Channel.STDOUT, Channel.STDERR) and len(message) > 1:
                yield Output(Channel(channel), message[1:])

    @property
    def exit_code(self) -> int:
        """The command's exit code.

        Raises StatusError if it couldn't be run, TransportError if the connection ended before it did.
        """
        status = self._status
        if status is None:
            raise TransportError("the connection ended before the command did")
        if status.get("status") == "Success":
            return 0
        details = status.get("details")
        causes = details.get("causes") or [] if isinstance(details, dict) else []
        for cause in causes:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        raise StatusError(status)


@asynccontextmanager
async def exec_stream(
    rest: RESTClient,
    pod: str,
    command: Sequence[str],
    *,
    namespace: str = "",
    container: str = "",
    stdin: bool = False,
    tty: bool = False,
) -> AsyncGenerator[Process, None]:
    """Runs `command` in a container, which needn't be named where the pod has but one. Leaving the block ends the connection, not the
    command. With a `tty` standard error is part of standard output. StatusError: the server refuses; TransportError."""
    query = [("command", word) for word in command] + _options(container, stdin=stdin, tty=tty)
    async with connect(rest, _path(rest, pod, "exec", namespace), _COMMANDS, query) as socket:
        yield Process(socket)


@asynccontextmanager
async def attach_stream(
    rest: RESTClient, pod: str, *, namespace: str = "", container: str = "", stdin: bool = False, tty: bool = False
) -> AsyncGenerator[Process, None]:
    """The process that a container runs already; otherwise as `exec_stream`."""
    query = _options(container, stdin=stdin, tty=tty)
    async with connect(rest, _path(rest, pod, "attach", namespace), _COMMANDS, query) as socket:
        yield Process(socket)


async def run(
    rest: RESTClient,
    pod: str,
    command: Sequence[str],
    *,
    namespace: str = "",
    container: str = "",
    stdin: bytes | None = None,
) -> Completed:
    """Runs `command` to its end, with `stdin` as its input, and returns its output. The command need not read its input.

    Raises StatusError if it can't be run, TransportError if the connection fails, and ValueError if there is input but the server can't
    signal its end (before 1.30).
    """
    output_by_channel: dict[Channel, list[bytes]] = {Channel.STDOUT: [], Channel.STDERR: []}
    running = exec_stream(rest, pod, command, namespace=namespace, container=container, stdin=stdin is not None)
    async with running as process:
        if stdin is not None and not process.can_close_stdin:
            raise ValueError(
                "the server can't signal the end of the input to a command: it doesn't support v5.channel.k8s.io"
            )
        # a command that writes while it reads blocks until its output is read
        feeding = asyncio.ensure_future(_feed(process, stdin)) if stdin is not None else None
        try:
            async for output in process.output():
                output_by_channel[output.channel].append(output.data)
        finally:
            if feeding is not None:
                feeding.cancel()
        return Completed(
            process.exit_code, b"".join(output_by_channel[Channel.STDOUT]), b"".join(output_by_channel[Channel.STDERR])
        )


async def _feed(process: Process, stdin: bytes) -> None:
    with suppress(TransportError):  # it has ended before
        await process.write(stdin)
        await process.close_stdin()


def _path(rest: RESTClient, pod: str, subresource: str, namespace: str) -> str:
    return resource_path("", "v1", "pods", namespace or rest.config.namespace, pod, subresource)


def _options(container: str, *, stdin: bool, tty: bool) -> list[tuple[str, str]]:
    """Returns the query of PodExecOptions and PodAttachOptions, which have these in common."""
    flags = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    return [*([("container", container)] if container else []), *((name, "true") for name in flags if flags[name])]


@asynccontextmanager
async def logs(
    rest: RESTClient,
    pod: str,
    *,
    namespace: str = "",
    **options: Unpack[LogOptions],
) -> AsyncGenerator[AsyncIterator[bytes], None]:
    """Yields a container's log in pieces as they arrive. Raises StatusError if the server refuses, TransportError."""
    params: dict[str, str | int | bool | None] = {
        "container": options.get("container"),
        "follow": options.get("follow"),
        "previous": options.get("previous"),
        "tailLines": options.get("tail_lines"),
        "sinceSeconds": options.get("since_seconds"),
        "timestamps": options.get("timestamps"),
        "limitBytes": options.get("limit_bytes"),
    }
    async with rest.stream(
        "GET", _path(rest, pod, "log", namespace), params=params, accept="text/plain, */*"
    ) as chunks:
        yield chunks


class PortForwarder:
    """Listens on this machine and leads each connection to a port of a pod; an async context manager.

    async with PortForwarder(rest, "web-0", 8080) as local_port: ...

    `local_port` 0 is any free port. WebSockets can't signal that a client has no more to send and still listens (kubectl uses SPDY for
    that): a client that closes its side has one second to receive the rest, and then the pod's side is closed too.
    """

    def __init__(
        self,
        rest: RESTClient,
        pod: str,
        port: int,
        *,
        namespace: str = "",
        local_port: int = 0,
        address: str = "127.0.0.1",
    ) -> None:
        self._rest = rest
        self._path = resource_path("", "v1", "pods", namespace or rest.config.namespace, pod, "portforward")
        self._port = port
        self._local_port = local_port
        self._address = address
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # The last error of a connection, to find out why it was closed.
        self.last_error: Exception | None = None

    async def __aenter__(self) -> int:
        """The local port. OSError when it is taken."""
        self._server = await asyncio.start_server(self._accepted, self._address, self._local_port)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with connect(self._rest, self._path, _PORTS, [("ports", str(self._port))]) as socket:
                downloading = asyncio.ensure_future(_download(socket, writer))
                uploading = asyncio.ensure_future(_upload(reader, socket))
                try:
                    await asyncio.wait((downloading, uploading), return_when="FIRST_COMPLETED")
                    # the pod's error says more than the error of the side that no longer listens
                    await asyncio.wait((downloading,), timeout=_LINGER_SECONDS)
                    (downloading if downloading.done() else uploading).result()
                finally:
                    downloading.cancel()
                    uploading.cancel()
        except (StatusError, TransportError, OSError) as error:
            self.last_error = error
        finally:
            writer.close()


async def _upload(reader: asyncio.StreamReader, socket: WebSocket) -> None:
    while data := await reader.read(_MAX_PIECE):
        await socket.send(b"\x00" + data)


async def _download(socket: WebSocket, writer: asyncio.StreamWriter) -> None:
    """Channel 0 is the port's data, 1 its errors; each begins with a message that names the port."""
    begun = set()
    async for message in socket.messages():
        channel = message[0]
        if channel not in begun:
            begun.add(channel)
        elif channel == 0:
            writer.write(message[1:])
            await writer.drain()
        elif len(message) > 1:
            raise TransportError(message[1:].decode("utf-8", "replace"))
