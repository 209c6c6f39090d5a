"""SPDY frames that no client of Kubernetes sends: a session ends or refuses, and keeps little."""

import asyncio
import struct
import zlib
from collections.abc import Iterator

import pytest

from fakeapiserver.transport.spdy import DICTIONARY, MAX_STREAMS, Session, SPDYError

SYN_STREAM, RST_STREAM, PING = 1, 3, 6


def control(kind: int, payload: bytes, version: int = 3) -> bytes:
    return struct.pack(">HHI", 0x8000 | version, kind, len(payload)) + payload


class Opener:
    """The frames that open streams, whose headers one compression has."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, number: int, block: bytes = bytes(4)) -> bytes:
        headers = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(SYN_STREAM, struct.pack(">IIH", number, 0, 0) + headers)


async def received(data: bytes) -> bytes:
    """Runs a session that gets these bytes, and returns the bytes that it sends. Raises SPDYError."""
    pieces = iter([data, b""])
    sent = bytearray()

    async def receive() -> bytes:
        return next(pieces)

    async def send(frames: bytes) -> None:
        sent.extend(frames)

    session = Session(receive, send)
    await session.run()
    return bytes(sent)


def refusals(frames: bytes) -> Iterator[int]:
    """Yields the numbers of the streams that are refused."""
    for start in range(0, len(frames), 16):
        kind, length, number, status = struct.unpack_from(">xxHIII", frames, start)
        assert (kind, length, status) == (RST_STREAM, 8, 3)
        yield number


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (control(PING, bytes(4), version=2), "unsupported SPDY version"),
        (control(SYN_STREAM, b""), "unpack_from requires a buffer"),
        (control(SYN_STREAM, bytes(10) + b"no zlib"), "incorrect header check"),
        (Opener().open(1, struct.pack(">I", 1) + b"\xff" * 8), "cut short"),
        (Opener().open(1, struct.pack(">I", 100_000) + bytes(800_000)), "too many headers"),
        (Opener().open(1, struct.pack(">I", 1) + bytes(50_000_000)), "too large"),
        ((opener := Opener()).open(1) + opener.open(1), "stream 1 is opened twice"),
    ],
)
def test_what_breaks_the_protocol_ends_the_session(frames: bytes, message: str) -> None:
    with pytest.raises(SPDYError, match=message):
        asyncio.run(received(frames))


def test_streams_beyond_the_most_are_refused() -> None:
    opener = Opener()
    sent = asyncio.run(received(b"".join(opener.open(number) for number in range(1, 2 * MAX_STREAMS + 7, 2))))
    assert list(refusals(sent)) == [2 * MAX_STREAMS + 1, 2 * MAX_STREAMS + 3, 2 * MAX_STREAMS + 5]


def test_streams_that_were_reset_and_not_looked_at_count() -> None:
    opener = Opener()
    frames = (
        opener.open(number) + control(RST_STREAM, struct.pack(">II", number, 5))
        for number in range(1, 2 * MAX_STREAMS + 3, 2)
    )
    sent = asyncio.run(received(b"".join(frames)))
    assert list(refusals(sent)) == [2 * MAX_STREAMS + 1]


def test_others_have_turns_while_pings_are_answered() -> None:
    async def work() -> tuple[int, bytes]:
        answering = asyncio.ensure_future(received(control(PING, struct.pack(">I", 1)) * 1_000))
        turns = 0
        while not answering.done():
            turns += 1
            await asyncio.sleep(0)
        return turns, await answering

    turns, sent = asyncio.run(work())
    assert sent == control(PING, struct.pack(">I", 1)) * 1_000
    assert turns > 10
