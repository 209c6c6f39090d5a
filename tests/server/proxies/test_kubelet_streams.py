"""Commands of WebSocket clients at kubelets that speak SPDY."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.component_helpers.streaming import KubeletError, Streams
from fakeapiserver.server.proxies import kubelet_streams
from fakeapiserver.transport.connections import Connection
from fakeapiserver.transport.pipe import Pipe
from fakeapiserver.transport.spdy import Session, Stream

V4 = "v4.channel.k8s.io"
Kubelet = Callable[[dict[str, Stream]], Awaitable[None]]


def status(**fields: Any) -> bytes:
    return json.dumps({"metadata": {}, **fields}).encode()


def exited(code: str) -> bytes:
    causes = {"causes": [{"reason": "ExitCode", "message": code}]}
    return status(status="Failure", reason="NonZeroExitCode", details=causes, message="it has")


async def ran(streams: Streams, kubelet: Kubelet, count: int, protocol: str = V4) -> int:
    """Returns what `run` returns if `kubelet` serves the first `count` streams that it opens."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(data: bytes) -> None:
            writer.write(data)

        session = Session(lambda: reader.read(1 << 16), write)
        running = asyncio.ensure_future(session.run())
        opened: dict[str, Stream] = {}
        async for stream in session.opened():
            await session.reply(stream)
            opened[stream.headers["streamtype"]] = stream
            if len(opened) == count:
                break
        await kubelet(opened)
        for stream in opened.values():
            await stream.close()
        await running
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        address = server.sockets[0].getsockname()
        connection = Connection(*await asyncio.open_connection(*address))
        return await asyncio.wait_for(kubelet_streams.run(connection, protocol, streams), 60)


def test_what_goes_in_comes_out() -> None:
    async def cat(opened: dict[str, Stream]) -> None:
        while data := await opened["stdin"].read():
            await opened["stdout"].write(data)
        await opened["stderr"].write(b"done")
        await opened["error"].write(status(status="Success"))

    async def main() -> tuple[int, bytes, bytes]:
        source, out, err = Pipe(), bytearray(), bytearray()

        async def stdout(data: bytes) -> None:
            out.extend(data)

        async def stderr(data: bytes) -> None:
            err.extend(data)

        async def feed() -> None:
            for _ in range(40):
                await source.feed(b"x" * 50_000)
            source.end()

        feeding = asyncio.ensure_future(feed())
        code = await ran(Streams(source, stdout, stderr), cat, 4)
        await feeding
        return code, bytes(out), bytes(err)

    assert asyncio.run(main()) == (0, b"x" * 2_000_000, b"done")


def test_a_terminal_has_a_size() -> None:
    told = bytearray()

    async def main() -> None:
        begun = asyncio.Event()

        async def terminal(opened: dict[str, Stream]) -> None:
            while told.count(b"\n") < 2:
                told.extend(await opened["resize"].read())
                begun.set()
            await opened["error"].write(status(status="Success"))

        async def stdout(_: bytes) -> None: ...

        streams = Streams(None, stdout, None, tty=True, size=(80, 25))

        async def resize() -> None:
            await begun.wait()
            streams.size = (100, 30)
            streams.resized.set()

        resizing = asyncio.ensure_future(resize())
        await ran(streams, terminal, 3)
        await resizing

    asyncio.run(main())
    assert [json.loads(line) for line in told.splitlines()] == [
        {"Width": 80, "Height": 25},
        {"Width": 100, "Height": 30},
    ]


@pytest.mark.parametrize(
    ("protocol", "message", "expected"),
    [
        (V4, exited("7"), 7),
        (V4, b"", 0),
        (V4, exited("256"), 'error stream protocol error: invalid exit code value "256"'),
        (V4, status(status="Failure", reason="NonZeroExitCode"), "error stream protocol error: details must be set"),
        (V4, status(status="Failure", message="no runtime"), "no runtime"),
        (V4, status(status="Maybe"), "error stream protocol error: unknown error"),
        ("v2.channel.k8s.io", b"it broke", "error executing remote command: it broke"),
    ],
)
def test_how_a_command_has_ended(protocol: str, message: bytes, expected: int | str) -> None:
    async def kubelet(opened: dict[str, Stream]) -> None:
        if message:
            await opened["error"].write(message)

    async def main() -> int:
        async def stdout(_: bytes) -> None: ...

        return await ran(Streams(None, stdout, None), kubelet, 2, protocol)

    if isinstance(expected, int):
        assert asyncio.run(main()) == expected
        return
    with pytest.raises(KubeletError) as raised:
        asyncio.run(main())
    assert str(raised.value) == expected
