"""The bytes that end an exec: its status and the end of the connection leave in one write."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.component_helpers.streaming import Streams
from fakeapiserver.endpoints.request import HIJACK, Request
from fakeapiserver.endpoints.streams import remote_command
from fakeapiserver.endpoints.streams.websocket import TURN_BYTES, WebSocket
from fakeapiserver.transport.spdy import Session, Stream

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


@pytest.mark.parametrize(
    "sent",
    [
        b"no JSON",
        b"[" * 1_000,
        b"[" * 1_000_000,
        b'{"Width":1e999,"Height":1}',
        b'{"Width":65536,"Height":1}',
        b'{"Width":-1,"Height":1}',
        b'{"Width":"5","Height":1}',
        b'{"Width":' + b"9" * 5_000 + b',"Height":1}',
        b"\xff\xfe",
        b"[]",
    ],
)
def test_an_invalid_size_is_ignored(sent: bytes) -> None:
    streams = Streams(None, None, None, True)
    remote_command._resize(streams, sent)
    assert not streams.resized.is_set()
    remote_command._resize(streams, b'{"Width":80,"Height":25}')
    assert streams.size == (80, 25)


def sizes_over_spdy(*sent: bytes) -> list[tuple[int, int]]:
    """Returns the sizes that a terminal has had after each piece of the stream."""
    seen = []

    async def nothing(*_: Any) -> bytes:
        return b""

    async def work() -> None:
        stream = Stream(Session(nothing, nothing), 1, {})
        streams = Streams(None, None, None, True)
        async with remote_command._sizes(stream, streams):
            for piece in sent:
                await stream.received.feed(piece)
                for _ in range(len(piece) // 4_096 + 3):
                    await asyncio.sleep(0)
                seen.append(streams.size)

    asyncio.run(work())
    return seen


def test_sizes_over_spdy_come_in_pieces_and_many_at_once() -> None:
    first, second = b'{"Width":80,"Height":25}', b'{"Width":132,"Height":43}\n'
    assert sizes_over_spdy(first[:9], first[9:] + b" \n" + second, b"[]" * 20_000 + first) == [
        sizes_over_spdy(b"")[0],
        (132, 43),
        (80, 25),
    ]


def test_a_size_over_spdy_of_too_many_levels_ends_the_sizes() -> None:
    assert sizes_over_spdy(b'{"Width":80,"Height":25}', b"[" * 4_096, b'{"Width":1,"Height":1}')[-1] == (80, 25)


def test_a_client_that_opens_no_streams_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_command, "_CREATION_SECONDS", 0)

    async def work() -> list[Any]:
        written = []

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            written.append(message["body"])

        response = await remote_command.serve(
            request("POST", (b"upgrade", b"SPDY/3.1"), (b"x-stream-protocol-version", b"v4.channel.k8s.io")),
            OPTIONS,
            prints,
        )
        assert response.takeover is not None
        await response.takeover(receive, send)
        return written

    assert asyncio.run(work())[-1] == b""


@pytest.mark.parametrize("size", [0, 1, 3, TURN_BYTES - 4, TURN_BYTES, TURN_BYTES + 5, 3 * TURN_BYTES + 2])
def test_long_messages_are_unmasked_and_decoded_in_parts(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    text = b"0" + base64.b64encode(data[:size])
    mask = b"\x01\xfe\x00\x37"
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
    frames = b"\x81\xff" + len(text).to_bytes(8) + mask + masked

    async def work() -> list[tuple[int, bytes]]:
        pieces = iter([{"type": "http.request", "body": frames}, {"type": "http.disconnect"}])

        async def receive() -> Any:
            return next(pieces)

        async def send(message: Any) -> None:
            raise AssertionError("nothing is answered")

        channels = remote_command.Channels(WebSocket(receive, send, "base64.channel.k8s.io"))
        return [message async for message in channels.messages()]

    assert asyncio.run(work()) == [(0, data[:size])]
