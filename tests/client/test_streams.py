"""Commands and ports over WebSockets, with a kubelet that speaks v5.channel.k8s.io."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from fakeapiserver.client import streams, synchronous
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import RESTClient

SUCCESS = {"metadata": {}, "status": "Success"}
Serve = Callable[[ServerConnection], Awaitable[None]]


def failed(code: int) -> dict[str, Any]:
    cause = {"reason": "ExitCode", "message": str(code)}
    return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}


async def shouting(connection: ServerConnection) -> None:
    """Prints its input in capitals when that has ended, and complains."""
    heard = b""
    async for message in connection:
        assert isinstance(message, bytes)
        if message == b"\xff\x00":
            break
        assert message[0] == 0
        heard += message[1:]
    await connection.send(b"\x01" + heard.upper())
    await connection.send(b"\x02so loud")
    await connection.send(b"\x03" + json.dumps(failed(3)).encode())


async def talk(
    serving: Serve,
    work: Callable[[RESTClient], Awaitable[Any]],
    protocols: Sequence[str] = ("v5.channel.k8s.io", "v4.channel.k8s.io"),
) -> tuple[Any, str]:
    """Runs `work` with a client; returns its result and the path of the request."""
    paths: list[str] = []

    async def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        paths.append(connection.request.path)
        await serving(connection)

    offered = [Subprotocol(name) for name in protocols]
    async with serve(handler, "127.0.0.1", 0, subprotocols=offered) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with RESTClient(RESTConfig(f"http://127.0.0.1:{port}")) as rest:
            return await work(rest), paths[0]


def test_a_command_gets_its_input_and_leaves_what_it_wrote_and_its_exit_code() -> None:
    done, path = asyncio.run(
        talk(shouting, lambda rest: streams.run(rest, "web", ["tr", "a-z"], stdin=b"hello" * 20_000))
    )
    assert done == streams.Completed(3, b"HELLO" * 20_000, b"so loud")
    query = "command=tr&command=a-z&stdin=true&stdout=true&stderr=true"
    assert path == f"/api/v1/namespaces/default/pods/web/exec?{query}"


def test_a_command_may_write_while_it_reads() -> None:
    async def echoing(connection: ServerConnection) -> None:
        async for message in connection:
            assert isinstance(message, bytes)
            if message == b"\xff\x00":
                break
            await connection.send(b"\x01" + message[1:])
        await connection.send(b"\x03" + json.dumps(SUCCESS).encode())

    stdin = bytes(4_000_000)
    done, _ = asyncio.run(talk(echoing, lambda rest: streams.run(rest, "web", ["cat"], stdin=stdin)))
    assert (done.exit_code, len(done.stdout)) == (0, len(stdin))


def test_a_command_need_not_read_its_input() -> None:
    async def ignoring(connection: ServerConnection) -> None:
        await connection.send(b"\x01done")
        await connection.send(b"\x03" + json.dumps(SUCCESS).encode())
        await connection.close()

    done, _ = asyncio.run(talk(ignoring, lambda rest: streams.run(rest, "web", ["true"], stdin=bytes(1_000_000))))
    assert done == streams.Completed(0, b"done", b"")


def test_an_old_server_cannot_end_the_input() -> None:
    with pytest.raises(ValueError, match=r"it doesn't support v5\.channel\.k8s\.io"):
        asyncio.run(talk(shouting, lambda rest: streams.run(rest, "web", ["cat"], stdin=b"x"), ["v4.channel.k8s.io"]))


def test_a_terminal_has_a_size() -> None:
    async def terminal(connection: ServerConnection) -> None:
        await connection.send(b"\x01" + str(await connection.recv()).encode())
        await connection.send(b"\x03" + json.dumps(SUCCESS).encode())

    async def work(rest: RESTClient) -> list[bytes]:
        async with streams.exec_stream(rest, "web", ["vi"], container="app", stdin=True, tty=True) as process:
            await process.resize(80, 24)
            return [output.data async for output in process.output()]

    found, path = asyncio.run(talk(terminal, work))
    assert found == [str(b'\x04{"Width": 80, "Height": 24}').encode()]
    assert path.endswith("/exec?command=vi&container=app&stdin=true&stdout=true&tty=true")


def test_what_cannot_be_run_is_a_status_error() -> None:
    status = {"status": "Failure", "message": "container not found", "code": 500}

    async def refusing(connection: ServerConnection) -> None:
        await connection.send(b"\x03" + json.dumps(status).encode())

    with pytest.raises(StatusError, match="container not found"):
        asyncio.run(talk(refusing, lambda rest: streams.run(rest, "web", ["ls"], namespace="shop", container="app")))


def test_ports_are_led_to_a_pod() -> None:
    async def echo(connection: ServerConnection) -> None:
        for channel in (b"\x00", b"\x01"):
            await connection.send(channel + (8080).to_bytes(2, "little"))
        async for message in connection:
            assert isinstance(message, bytes)
            await connection.send(message[:1] + message[1:].upper())

    async def work(rest: RESTClient) -> bytes:
        async with streams.PortForwarder(rest, "web", 8080) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello")
            found = await reader.readexactly(5)
            writer.close()
            return found

    found, path = asyncio.run(talk(echo, work))
    assert found == b"HELLO"
    assert path == "/api/v1/namespaces/default/pods/web/portforward?ports=8080"


def test_the_pods_side_is_closed_when_the_client_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_LINGER_SECONDS", 0.01)
    closed = asyncio.Event()

    async def silent(connection: ServerConnection) -> None:
        await connection.wait_closed()
        closed.set()

    async def work(rest: RESTClient) -> None:
        async with streams.PortForwarder(rest, "web", 5432) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await asyncio.wait_for(closed.wait(), 60)

    asyncio.run(talk(silent, work))


def test_a_port_without_a_listener_is_reported() -> None:
    async def refusing(connection: ServerConnection) -> None:
        for message in (b"\x00\x50\x00", b"\x01\x50\x00", b"\x01connection refused"):
            await connection.send(message)

    async def work(rest: RESTClient) -> Exception | None:
        forwarder = streams.PortForwarder(rest, "web", 80)
        async with forwarder as port:
            reader, _ = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            return forwarder.last_error

    found, _ = asyncio.run(talk(refusing, work))
    assert str(found) == "connection refused"


def test_scripts_have_all_of_it_without_an_event_loop() -> None:
    async def ports(connection: ServerConnection) -> None:
        for message in (b"\x00\x50\x00", b"\x01\x50\x00", b"\x00hello"):
            await connection.send(message)

    async def either(connection: ServerConnection) -> None:
        assert connection.request is not None
        await (ports if "/portforward" in connection.request.path else shouting)(connection)

    def script(config: RESTConfig) -> tuple[streams.Completed, bytes]:
        with synchronous.connect(config) as client:
            done = client.run("web", ["tr"], stdin=b"hi")
            with (
                client.port_forward("web", 80) as port,
                socket.create_connection(("127.0.0.1", port)) as connection,
                connection.makefile("rb") as file,
            ):
                return done, file.read()

    found, _ = asyncio.run(talk(either, lambda rest: asyncio.to_thread(script, rest.config)))
    assert found == (streams.Completed(3, b"HI", b"so loud"), b"hello")


def test_scripts_read_logs() -> None:
    async def serve_logs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = b"one\n" + head.split(b" ")[1]
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
        writer.close()

    def script(port: int) -> bytes:
        with synchronous.connect(RESTConfig(f"http://127.0.0.1:{port}")) as client:
            return b"".join(client.logs("web", container="app", tail_lines=2, previous=True, namespace="shop"))

    async def scenario() -> bytes:
        server = await asyncio.start_server(serve_logs, "127.0.0.1", 0)
        async with server:
            return await asyncio.to_thread(script, server.sockets[0].getsockname()[1])

    found = asyncio.run(scenario())
    assert found == b"one\n/api/v1/namespaces/shop/pods/web/log?container=app&previous=true&tailLines=2"
