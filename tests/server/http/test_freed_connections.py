"""The objects of a connection and of its requests are freed at its end, without a collection of garbage."""

import asyncio
import gc
import ssl
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakeapiserver.endpoints.verbs.watch import Stream
from fakeapiserver.server.http.exchange import Exchange
from fakeapiserver.server.http.protocol import EdgeProtocol
from fakeapiserver.server.http.tls_transport import TLSTransport
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config

# The request log keeps requests.
PARTS = (EdgeProtocol, TLSTransport, Exchange, Stream)


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def parts() -> Counter[str]:
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, PARTS))


async def opened(server: LocalServer, path: str) -> asyncio.StreamWriter:
    """Sends a request over a new connection, and returns once its answer begins."""
    port = int(server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=ssl._create_unverified_context())
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    return writer


@pytest.mark.parametrize("path", ["/api/v1/configmaps", "/api/v1/configmaps?watch=true"])
@pytest.mark.usefixtures("uncollected")
def test_nothing_of_a_connection_is_left(path: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret,admin,1,"system:masters"\n')

    async def scenario() -> None:
        server = LocalServer(Config(token_auth_file=tokens, controllers=("none",)))
        await server.start()
        others = parts()
        try:
            writers = [await opened(server, path) for _ in range(3)]
            assert (parts() - others)["EdgeProtocol"] == len(writers)
            for writer in writers:
                writer.transport.abort()
            for _ in range(200):
                if not (parts() - others)["EdgeProtocol"]:
                    break
                await asyncio.sleep(0.01)
            assert not parts() - others
        finally:
            await server.stop()

    asyncio.run(scenario())
