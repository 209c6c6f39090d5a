"""The runner and its TLS: certificates asked for but not judged, quick start and stop, nothing left behind."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.endpoints.request import PUSH
from fakeapiserver.server.http.edge_state import Limits
from fakeapiserver.server.http.freed_memory import trim
from fakeapiserver.server.http.protocol import EdgeProtocol
from fakeapiserver.server.http.serving import Server
from fakeapiserver.server.http.tls_context import TLSContext, server_context
from fakeapiserver.transport.certificates import create_authority, issue_client, issue_server
from fakeapiserver.transport.key_pair import KeyPair

AUTHORITY = create_authority()
SERVING = issue_server(AUTHORITY)


def run_on_asyncio(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def run_on_uvloop(main: Coroutine[Any, Any, None]) -> None:
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


@pytest.fixture(params=[run_on_asyncio, run_on_uvloop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


def context(*, requests_certificates: bool = True) -> TLSContext:
    return server_context(SERVING.certificate, SERVING.key, requests_certificates=requests_certificates)


def client_context(folder: Path | None = None, pair: KeyPair | None = None) -> ssl.SSLContext:
    client = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    client.set_alpn_protocols(["h2", "http/1.1"])
    if folder and pair:
        (folder / "client.pem").write_bytes(pair.certificate + pair.key)
        client.load_cert_chain(folder / "client.pem")
    return client


async def remember(scope: Any, receive: Any, send: Any) -> None:
    """Keeps each request's scope in `seen`; sends back as much as the query says."""
    seen.append(scope)
    size = int(scope["query_string"] or b"2")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    await send({"type": "http.response.body", "body": b"x" * size})


seen: list[dict[str, Any]] = []


async def get(port: int, client: ssl.SSLContext | None, times: int = 1, size: int = 2) -> ssl.SSLObject | None:
    """GET over one connection, `times` times."""
    reader, writer = await asyncio.open_connection("localhost", port, ssl=client)
    for _ in range(times):
        writer.write(b"GET /?%d HTTP/1.1\r\nHost: x\r\n\r\n" % size)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert await reader.readexactly(size) == b"x" * size
    connection: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    writer.close()
    return connection


def serve(run: Any, test: Callable[[Server], Coroutine[Any, Any, None]], app: Any = remember, **named: Any) -> None:
    async def main() -> None:
        server = Server(app, **named)
        await server.start()
        await asyncio.wait_for(test(server), 60)
        await server.stop()

    seen.clear()
    run(main())


@pytest.mark.parametrize("trusted", [True, False])
def test_any_client_certificate_reaches_the_application(run: Any, trusted: bool, tmp_path: Path) -> None:
    authority = AUTHORITY if trusted else create_authority("other")
    pair = issue_client(authority, "jane", ["dev"])

    async def test(server: Server) -> None:
        connection = await get(server.port, client_context(tmp_path, pair), times=2)
        assert connection is not None
        assert connection.selected_alpn_protocol() == "http/1.1"
        assert connection.version() == "TLSv1.3"

    serve(run, test, tls=context())
    tls = seen[0]["extensions"]["tls"]
    # OpenSSL's client adds the authority if it happens to know it
    assert tls["client_cert_der"][0] == ssl.PEM_cert_to_DER_cert(pair.certificate.decode())
    assert len(tls["client_cert_der"]) == (2 if trusted else 1)
    assert tls["client_cert_chain"] == tuple(map(ssl.DER_cert_to_PEM_cert, tls["client_cert_der"]))
    assert tls["tls_version"] == 0x0304
    assert seen[1]["extensions"]["tls"] is tls  # one object per connection


@pytest.mark.parametrize("requested", [True, False])
def test_no_client_certificate(run: Any, requested: bool) -> None:
    async def test(server: Server) -> None:
        await get(server.port, client_context())

    serve(run, test, tls=context(requests_certificates=requested))
    assert seen[0]["extensions"]["tls"]["client_cert_der"] == ()
    assert seen[0]["scheme"] == "https"


def test_large_answers_arrive_whole_over_tls(run: Any) -> None:
    async def test(server: Server) -> None:
        await get(server.port, client_context(), times=2, size=3_000_001)

    serve(run, test, tls=context())


def test_tls_1_2_is_the_least(run: Any) -> None:
    async def test(server: Server) -> None:
        client = client_context()
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        connection = await get(server.port, client)
        assert connection is not None
        assert connection.version() == "TLSv1.2"

    serve(run, test, tls=context())


def test_a_handshake_that_never_ends_is_cut(run: Any) -> None:
    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await reader.read() == b""
        writer.close()

    serve(run, test, tls=context(), limits=Limits(header_timeout=0.1))


def test_answers_do_not_wait_for_acknowledgements() -> None:
    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("localhost", server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        [accepted] = server._state.connections
        assert isinstance(accepted, EdgeProtocol)
        # without it each answer waits 40 ms
        assert accepted.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()

    serve(run_on_asyncio, test, limits=Limits())


async def forever(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.Event().wait()


def test_stop_cuts_what_outlives_the_grace_and_leaves_nothing(run: Any) -> None:
    async def main() -> None:
        server = Server(forever, tls=context())
        await server.start()
        reader, writer = await asyncio.open_connection("localhost", server.port, ssl=client_context())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        started = asyncio.get_running_loop().time()
        await server.stop(0.05)
        assert 0.04 < asyncio.get_running_loop().time() - started < 10  # it would never end
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))
        assert len(asyncio.all_tasks()) == 1

    run(main())


def test_stop_lets_a_running_request_end(run: Any) -> None:
    entered = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        entered.set()
        await asyncio.sleep(0.05)
        await remember(scope, receive, send)

    async def main() -> None:
        server = Server(slow)
        await server.start()
        request = asyncio.ensure_future(get(server.port, None))
        await entered.wait()
        await server.stop(2.0)
        await request

    seen.clear()
    run(main())
    assert len(seen) == 1


def test_a_taken_port_is_an_os_error() -> None:
    async def main() -> None:
        first = Server(remember)
        await first.start()
        with pytest.raises(OSError, match="in use"):
            await Server(remember, port=first.port).start()
        await first.stop()

    asyncio.run(main())


def test_the_loop_gets_a_socket_that_listens(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the loop's own listen() fails, because two sockets are bound to one port, uvloop closes the descriptor twice."""
    listening = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        class Loop:
            def __getattr__(self, name: str) -> Any:
                return getattr(loop, name)

            async def create_server(self, *arguments: Any, sock: socket.socket, **options: Any) -> asyncio.Server:
                listening.append(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
                return await loop.create_server(*arguments, sock=sock, **options)

        monkeypatch.setattr("fakeapiserver.server.http.serving.asyncio.get_running_loop", Loop)
        server = Server(remember)
        await server.start()
        monkeypatch.undo()
        await server.stop()

    run(main())
    assert listening == [1]


def test_certificate_and_key_must_fit() -> None:
    with pytest.raises(ValueError, match="serving certificate and key cannot be used"):
        server_context(SERVING.certificate, AUTHORITY.key)


def test_stop_cuts_an_unfinished_handshake() -> None:
    async def main() -> None:
        server = Server(remember, tls=context())
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.sleep(0.01)  # until it is accepted
        await server.stop()
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()

    asyncio.run(main())


def test_memory_is_returned_once_after_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[int] = []
    monkeypatch.setattr("fakeapiserver.server.http.freed_memory.trim", lambda: trims.append(1))

    async def test(server: Server) -> None:
        def sweep() -> None:  # at the test's times alone
            assert server._sweeper is not None
            server._sweeper.cancel()
            server._sweep()
            server._sweeper.cancel()

        for _ in range(3):
            sweep()
        assert not trims
        await asyncio.gather(*(get(server.port, None) for _ in range(60)))
        for _ in range(1000):
            await asyncio.sleep(0.001 if server._state.connections else 0)
        sweep()
        assert not trims  # it may go on
        for _ in range(3):
            sweep()
        assert trims == [1]

    serve(run_on_asyncio, test, limits=Limits(idle_timeout=60))


def test_trimming_is_harmless() -> None:
    trim()


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("encrypted", [True, False])
def test_a_stream_that_is_cut_looks_cut(run: Any, version: bytes, encrypted: bool) -> None:
    """The bytes end behind a whole line, without the last chunk, or within a line."""
    line = b"x" * 99_999 + b"\n"

    async def lines(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": line, "more_body": True})

    async def main() -> None:
        server = Server(lines, tls=context() if encrypted else None)
        await server.start()
        tls = client_context() if encrypted else None
        reader, writer = await asyncio.open_connection("localhost", server.port, ssl=tls, limit=1000)
        writer.write(b"GET / HTTP/%b\r\nHost: x\r\n\r\n" % version)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.05)  # until nothing more is taken
        await server.stop()
        received = b""
        with suppress(OSError):
            while piece := await reader.read(1 << 20):
                received += piece
        whole = line if version == b"1.0" else b"%x\r\n%b\r\n" % (len(line), line)
        count, rest = divmod(len(received), len(whole))
        assert received == whole * count + whole[:rest]
        assert received
        writer.close()

    run(main())


@pytest.mark.parametrize("encrypted", [True, False])
def test_pieces_are_pushed_as_chunks_while_the_client_takes_them(run: Any, encrypted: bool) -> None:
    pushed: list[bool] = []
    frames = [[b"a"], [b"b" * 9000], [b"c" * 20_000, b"d" * 20_000, b"e"]]

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        assert PUSH in scope["extensions"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

        def attach(push: Any) -> None:
            pushed.extend(push(pieces) for pieces in frames)
            while push((b"x" * 100_000,)):
                pushed.append(True)

        await send({"type": PUSH, "attach": attach, "gone": asyncio.current_task().cancel})  # type: ignore[union-attr]
        await send({"type": "http.response.body", "body": b"the end"})

    async def test(server: Server) -> None:
        tls = client_context() if encrypted else None
        reader, writer = await asyncio.open_connection("localhost", server.port, ssl=tls)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        chunks = []
        while size := int(await reader.readline(), 16):
            chunks.append(await reader.readexactly(size))
            assert await reader.readexactly(2) == b"\r\n"
        writer.close()
        assert len(pushed) > len(frames)  # until the connection was full
        assert chunks[:3] == [b"".join(pieces) for pieces in frames]
        assert chunks[3:-1] == [b"x" * 100_000] * (len(pushed) - 3)
        assert chunks[-1] == b"the end"

    serve(run, test, app=stream, tls=context() if encrypted else None)
