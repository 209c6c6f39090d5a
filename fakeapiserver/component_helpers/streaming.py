"""The kubelet's streams: logs, commands, terminals and ports of pods.

Upstream: k8s.io/cri-streaming/pkg/streaming/server.go (Runtime), pkg/kubelet/server/server.go (HostInterface).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.transport.pipe import Pipe

Write = Callable[[bytes], Awaitable[None]]


class Streams(Struct):
    """The streams between a client and a process; None for a stream that the client does not want.

    `write`s raise ConnectionError when the client is gone. `size`: columns and rows of the client's terminal, once known; `resized` is
    set at each change.
    """

    stdin: Pipe | None
    stdout: Write | None
    stderr: Write | None
    tty: bool = False
    size: tuple[int, int] | None = None
    resized: asyncio.Event = field(default_factory=asyncio.Event)


class LogOptions(Struct, frozen=True):
    """`since`: no lines before, in seconds since the epoch. Upstream: PodLogOptions."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


class KubeletError(Exception):
    """The kubelet answers so: a status of HTTP, and its text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Runtime(Protocol):
    """The container runtime of one node. Methods raise KubeletError when they can't do what is asked."""

    async def logs(self, pod: Object, container: str, options: LogOptions) -> AsyncGenerator[bytes, None]: ...

    def check_running(self, pod: Object, container: str) -> None:
        """Asked before a client is let in."""

    async def execute(self, pod: Object, container: str, command: Sequence[str], streams: Streams) -> int:
        """Its exit code."""

    async def attach(self, pod: Object, container: str, streams: Streams) -> None: ...

    async def dial(self, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the port. Raises OSError if no process listens."""

    async def port_forward(self, pod: Object, port: int, received: Pipe, write: Write) -> None:
        """Runs until the connection to the port ends."""


class Kubelets(Protocol):
    """The nodes whose kubelets run in this process."""

    def runtime(self, node: str) -> Runtime | None:
        """Returns the node's runtime, or None if the node is not simulated.

        Raises ConnectionError with a dialer's text if it is down.
        """
