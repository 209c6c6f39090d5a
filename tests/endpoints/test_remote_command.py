"""The bytes that end an exec: its status and the end of the connection leave in one write."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.component_helpers.streaming import Streams
from fakeapiserver.endpoints.request import HIJACK, Request
from fakeapiserver.endpoints.streams import remote_command
from fakeapiserver.transport.spdy import Session

OPTIONS = {"stdout": True}
STATUS = b'{"metadata":{},"status":"Success"}'
CLOSE = b"\x88\x02\x03\xe8"


async def prints(streams: Streams) -> int:
    assert streams.stdout is not None
    await streams.stdout(b"hi\n")
    return 0


async def fails(streams: Streams) -> int:
    return 3


def request(method: str, *headers: tuple[bytes, bytes]) -> Request:
    async def nothing() -> Any:
        raise AssertionError("the handshake reads no body")

    return Request(method, "/exec", {}, list(headers), nothing, {"extensions": {HIJACK: {}}})


def writes_over_websocket(protocol: bytes, process: Callable[[Streams], Awaitable[int]]) -> list[tuple[bytes, bool]]:
    """Each write of the server, and whether more may follow."""
    handshake = request(
        "GET",
        (b"connection", b"Upgrade"),
        (b"upgrade", b"websocket"),
        (b"sec-websocket-key", b"bm90aGluZyBzcGVjaWFsIQ=="),
        (b"sec-websocket-version", b"13"),
        (b"sec-websocket-protocol", protocol),
    )
    written = []

    async def work() -> None:
        response = await remote_command.serve(handshake, OPTIONS, process)
        assert response.takeover is not None

        async def silence() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            written.append((message["body"], message.get("more_body", False)))

        await response.takeover(silence, send)

    asyncio.run(work())
    return written


def frame(opcode: int, payload: bytes) -> bytes:
    length = bytes([len(payload)]) if len(payload) < 126 else b"\x7e" + len(payload).to_bytes(2)
    return bytes([128 | opcode]) + length + payload


@pytest.mark.parametrize("protocol", [b"v4.channel.k8s.io", b"v5.channel.k8s.io"])
def test_a_websocket_ends_with_its_status_and_close_frame_in_one_write(protocol: bytes) -> None:
    *before, (last, more) = writes_over_websocket(protocol, prints)
    assert before == [(frame(2, b"\x01"), True), (frame(2, b"\x01hi\n"), True)]
    assert (last, more) == (frame(2, b"\x03" + STATUS) + CLOSE, False)


def test_a_websocket_in_base64_ends_in_one_write() -> None:
    *_, (last, more) = writes_over_websocket(b"v4.base64.channel.k8s.io", prints)
    assert (last, more) == (frame(1, b"3" + base64.b64encode(STATUS)) + CLOSE, False)


def test_an_exit_code_comes_with_the_close_frame() -> None:
    *_, (last, more) = writes_over_websocket(b"v4.channel.k8s.io", fails)
    assert b'{"reason":"ExitCode","message":"3"}' in last
    assert (last.endswith(CLOSE), more) == (True, False)


def test_without_a_status_the_close_frame_is_written_alone() -> None:
    """Before v4 success is the absence of an error."""
    *_, last = writes_over_websocket(b"channel.k8s.io", prints)
    assert last == (CLOSE, False)


def test_spdy_ends_with_its_status_the_ends_of_all_streams_and_goaway_in_one_write() -> None:
    written: list[bytes] = []

    async def work() -> bytes:
        to_server: asyncio.Queue[bytes] = asyncio.Queue()
        to_client: asyncio.Queue[bytes] = asyncio.Queue()

        async def receive() -> Any:
            return {"type": "http.request", "body": await to_server.get(), "more_body": True}

        async def send(message: Any) -> None:
            written.append(message["body"])
            await to_client.put(message["body"])

        response = await remote_command.serve(
            request("POST", (b"upgrade", b"SPDY/3.1"), (b"x-stream-protocol-version", b"v4.channel.k8s.io")),
            OPTIONS,
            prints,
        )
        assert response.takeover is not None
        serving = asyncio.ensure_future(response.takeover(receive, send))
        client = Session(to_client.get, to_server.put, client=True)
        running = asyncio.ensure_future(client.run())
        error = await client.open({"streamtype": "error"})
        stdout = await client.open({"streamtype": "stdout"})
        output = [await stdout.read(), await error.read(), await stdout.read(), await error.read()]
        await asyncio.gather(serving, running)
        return b"|".join(output)

    assert asyncio.run(work()) == b"hi\n|" + STATUS + b"||"
    *_, output, last, end = written
    assert output.endswith(b"hi\n")
    assert last.count(STATUS) == 1
    assert last[-16:-8] == b"\x80\x03\x00\x07\x00\x00\x00\x08"  # GOAWAY
    assert end == b""
