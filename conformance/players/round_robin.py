"""A load balancer in front of API servers that sends each request to the next one, whatever connection it comes on."""

import asyncio
import ssl
import threading
from collections.abc import Sequence
from itertools import count
from typing import Final
from urllib.parse import urlsplit

from conformance.players.tls_server import self_signed, server_context

_HOST: Final = "127.0.0.1"
_MOST: Final = 1 << 20  # bytes of a head
_CHUNK: Final = 1 << 16
_END: Final = b"\r\n\r\n"
_BAD_GATEWAY: Final = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


class RoundRobin:
    """A context manager that speaks HTTP/1.1 over TLS on loopback, in a thread of its own. `url`: where it listens.

    It verifies no certificate, and has one of its own, so clients authenticate by tokens.
    """

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = [(str(parts.hostname), int(parts.port or 443)) for parts in map(urlsplit, servers)]
        self._next = count()
        self._to_servers = ssl._create_unverified_context()
        self._to_servers.set_alpn_protocols(["http/1.1"])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.url = ""

    def __enter__(self) -> "RoundRobin":
        context = server_context(*self_signed())
        context.set_alpn_protocols(["http/1.1"])
        self._thread.start()
        listening = asyncio.start_server(self._serve, _HOST, 0, ssl=context, limit=_MOST)
        server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.url = f"https://{_HOST}:{server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        async def ended() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(ended(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on the requests of a connection until the client leaves."""
        left = asyncio.ensure_future(writer.wait_closed())
        try:
            while await self._pass_on(reader, writer, left):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # either side has gone, or this load balancer ends
        finally:
            writer.close()
            await asyncio.gather(left, return_exceptions=True)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: "asyncio.Future[None]"
    ) -> bool:
        """Passes on one request, until it is answered or the client has `left`. Returns whether the connection can go on."""
        head = await reader.readuntil(_END)
        host, port = self._servers[next(self._next) % len(self._servers)]
        try:
            from_server, to_server = await asyncio.open_connection(host, port, ssl=self._to_servers, limit=_MOST)
        except OSError:
            writer.write(_BAD_GATEWAY)
            return False
        try:
            to_server.write(head)
            await _copy_body(reader, to_server, _Framing(head))
            answer = await from_server.readuntil(_END)
            while answer.startswith(b"HTTP/1.1 1") and not answer.startswith(b"HTTP/1.1 101"):
                writer.write(answer)
                answer = await from_server.readuntil(_END)
            writer.write(answer)
            if answer.startswith(b"HTTP/1.1 101"):
                await asyncio.gather(_copy(reader, to_server), _copy(from_server, writer))
                return False
            framing = _Framing(answer, is_bodiless=head.startswith(b"HEAD ") or answer[9:12] in (b"204", b"304"))
            return await _copy_answer(from_server, writer, framing, left)
        finally:
            to_server.close()


class _Framing:
    """The end of a message's body: after `length` bytes, after the last chunk, or (of an answer) with the connection."""

    def __init__(self, head: bytes, *, is_bodiless: bool = False) -> None:
        fields = dict(line.lower().partition(b":")[::2] for line in head.split(b"\r\n")[1:])
        self.is_chunked = not is_bodiless and b"chunked" in fields.get(b"transfer-encoding", b"")
        self.length = 0 if is_bodiless else int(fields.get(b"content-length", b"-1"))
        self.closes = b"close" in fields.get(b"connection", b"")


async def _copy_answer(
    server: asyncio.StreamReader, writer: asyncio.StreamWriter, framing: _Framing, left: "asyncio.Future[None]"
) -> bool:
    """Copies the body of an answer, unless the client leaves. Returns whether the connection can go on."""
    if not framing.is_chunked and framing.length < 0:
        await _copy(server, writer)
        return False
    copying = asyncio.ensure_future(_copy_body(server, writer, framing))
    try:
        await asyncio.wait((copying, left), return_when=asyncio.FIRST_COMPLETED)
        if not copying.done():
            return False
        copying.result()
        return not framing.closes
    finally:
        copying.cancel()


async def _copy_body(source: asyncio.StreamReader, target: asyncio.StreamWriter, framing: _Framing) -> None:
    if framing.is_chunked:
        while True:
            line = await source.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            target.write(line + await source.readexactly(size + 2))
            await target.drain()
            if size == 0:
                return
    left = max(framing.length, 0)
    while left:
        data = await source.readexactly(min(left, _CHUNK))
        target.write(data)
        await target.drain()
        left -= len(data)
    await target.drain()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copies until the source ends, and ends the target then."""
    while data := await source.read(_CHUNK):
        target.write(data)
        await target.drain()
    target.close()
