"""Commands and ports over WebSockets, with a kubelet that speaks v5.channel.k8s.io."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from fakeapiserver.client import streams
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


async def talk(serving: Serve, work: Callable[[RESTClient], Awaitable[Any]]) -> tuple[Any, str]:
    """What `work` answers, and the path it asked for."""
    paths: list[str] = []

    async def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        paths.append(connection.request.path)
        await serving(connection)

    protocols: Any = ["v5.channel.k8s.io", "v4.channel.k8s.io"]
    async with serve(handler, "127.0.0.1", 0, subprotocols=protocols) as server:
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
