"""Bytes that a server holds for clients which read nothing of their watches: Python's own, which are all but OpenSSL's."""

import asyncio
import ssl
import tracemalloc
from pathlib import Path
from typing import Final

import pytest

from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config

_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_WATCH: Final = f"{_MAPS}?watch=1&resourceVersion=1"
_STALLED: Final = 12
_EVENTS: Final = 30
_LARGE: Final = 200_000
# What the history holds and one frame of each event; for a connection, its ciphertext and its objects.
_ALLOWED: Final = 3 * _EVENTS * _LARGE + _STALLED * 150_000


class Client(asyncio.Protocol):
    """A connection that reads an answer's head, and then nothing unless it is asked to."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.begun = asyncio.get_running_loop().create_future()
        self.head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.head += data
        if b"\r\n\r\n" in self.head and not self.begun.done():
            self.transport.pause_reading()
            self.begun.set_result(None)


async def asked(server: LocalServer, method: str, path: str, body: bytes = b"") -> Client:
    """Sends a request over a new connection, and returns once its answer begins."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    context = ssl._create_unverified_context()
    loop, port = asyncio.get_running_loop(), int(server.url.rpartition(":")[2])
    _, client = await loop.create_connection(lambda: Client(request), "127.0.0.1", port, ssl=context)
    await client.begun
    assert client.head.startswith(b"HTTP/1.1 20")
    return client


async def write(server: LocalServer, count: int) -> None:
    """Writes the object so often that it fills all buffers of a connection."""
    for number in range(count):
        text = f"{number:03}" + "x" * _LARGE
        body = b'{"metadata":{"name":"large"},"data":{"text":"%b"}}' % text.encode()
        method, path = ("PUT", f"{_MAPS}/large") if number else ("POST", _MAPS)
        (await asked(server, method, path, body)).transport.abort()


@pytest.mark.parametrize("is_late", [False, True])
def test_stalled_watchers_share_what_they_have_not_read(is_late: bool, tmp_path: Path) -> None:
    """Whether they watch while the events happen, or read them from the history later."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret,admin,1,"system:masters"\n')

    async def scenario() -> None:
        server = LocalServer(Config(token_auth_file=tokens, controllers=("none",)))
        await server.start()
        try:
            tracemalloc.start()
            if is_late:
                await write(server, _EVENTS)
            clients = [await asked(server, "GET", _WATCH) for _ in range(_STALLED)]
            if not is_late:
                await write(server, _EVENTS)
            await asyncio.sleep(0.1)
            _, most = tracemalloc.get_traced_memory()
            assert most < _ALLOWED
            for client in clients:
                client.transport.abort()
        finally:
            tracemalloc.stop()
            await server.stop()

    asyncio.run(scenario())
