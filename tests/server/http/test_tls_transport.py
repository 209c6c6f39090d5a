"""TLS over a transport in memory: what arrives, what is held for a reader that takes nothing, and what an idle connection keeps."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from fakeapiserver.server.http.tls_context import TLSContext, server_context
from fakeapiserver.server.http.tls_transport import RECORD, TURN, TLSTransport
from fakeapiserver.transport.certificates import create_authority, issue_server

AUTHORITY = create_authority()
SERVING = issue_server(AUTHORITY)
# Ciphertext of a slow reader: the socket's limit, a piece, and what encryption adds to them.
MOST_HELD = RECORD + 32768 + 256


@pytest.fixture(scope="module")
def context() -> TLSContext:
    return server_context(SERVING.certificate, SERVING.key)


class Socket(asyncio.Transport):
    """Keeps what is written, and is full beyond a limit until it is drained."""

    def __init__(self, tls: TLSTransport) -> None:
        super().__init__()
        self.tls = tls
        self.held = bytearray()
        self.high_water = 65536
        self.most = 0
        self.is_full = False
        self.is_read = True
        self.closed = ""

    def write(self, data: Any) -> None:
        self.held += data
        self.most = max(self.most, len(self.held))
        if len(self.held) > self.high_water and not self.is_full:
            self.is_full = True
            self.tls.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self.high_water = high

    def get_write_buffer_size(self) -> int:
        return len(self.held)

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def drain(self) -> bytes:
        taken, self.held = bytes(self.held), bytearray()
        if self.is_full:
            self.is_full = False
            self.tls.resume_writing()
        return taken

    def is_closing(self) -> bool:
        return bool(self.closed)

    def close(self) -> None:
        self.closed = self.closed or "closed"

    def abort(self) -> None:
        self.closed = "aborted"


class Protocol(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: Any = None
        self.received = b""
        self.calls: list[str] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def eof_received(self) -> None:
        self.calls.append("eof")

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")


class Connection:
    """A server's connection and its client, which are joined by hand."""

    def __init__(self, context: TLSContext) -> None:
        self.protocol = Protocol()
        self.tls = TLSTransport(context, self.protocol, 60)
        self.socket = Socket(self.tls)
        self.tls.connection_made(self.socket)
        client = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def shake_hands(self) -> "Connection":
        for _ in range(3):
            with suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.send()
            self.incoming.write(self.socket.drain())
        assert self.protocol.transport is self.tls
        return self

    def send(self, data: bytes = b"", size: int = TURN) -> None:
        """Sends the client's bytes, so many at once: no more than are read in one turn."""
        if data:
            self.client.write(data)
        sent = self.outgoing.read()
        for start in range(0, len(sent), size):
            self.tls.data_received(sent[start : start + size])

    def read(self) -> bytes:
        """The bytes that the client gets until nothing is left."""
        self.incoming.write(self.socket.drain())
        data = b""
        while True:
            try:
                piece = self.client.read(1 << 20)
            except ssl.SSLWantReadError:
                if not self.socket.held:
                    return data
                self.incoming.write(self.socket.drain())
            else:
                if not piece:
                    return data + b"<end>"
                data += piece


def run(test: Callable[[], None]) -> None:
    """Runs a test within an event loop, which the timer of the handshake needs."""

    async def main() -> None:
        test()

    asyncio.run(main())


SIZES = [1, RECORD - 1, RECORD, RECORD + 1, 1_000_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("segment", [TURN, 1000, 7])
def test_what_the_client_sends_arrives(context: TLSContext, size: int, segment: int) -> None:
    def test() -> None:
        connection = Connection(context).shake_hands()
        data = bytes(range(256)) * (size // 256 + 1)
        connection.send(data[: size if segment > 7 else min(size, 40_000)], segment)
        assert connection.protocol.received == data[: size if segment > 7 else min(size, 40_000)]

    run(test)


@pytest.mark.parametrize("is_paused", [False, True])
def test_much_that_came_at_once_is_read_in_several_turns(context: TLSContext, is_paused: bool) -> None:
    async def test() -> None:
        connection = Connection(context).shake_hands()
        data = bytes(range(256)) * 1024
        connection.client.write(data)
        connection.tls.data_received(connection.outgoing.read())
        if is_paused:
            connection.tls.pause_reading()
        known = 0
        while (received := len(connection.protocol.received)) < len(data):
            assert known < received <= known + TURN
            assert not connection.socket.is_read
            if not is_paused:
                connection.tls.resume_reading()
            assert not connection.socket.is_read
            known = received
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert connection.protocol.received == data
        assert connection.socket.is_read is not is_paused

    asyncio.run(test())


def test_the_rest_of_an_aborted_connection_is_not_read(context: TLSContext) -> None:
    async def test() -> None:
        connection = Connection(context).shake_hands()
        connection.client.write(bytes(4 * TURN))
        connection.tls.data_received(connection.outgoing.read())
        received = len(connection.protocol.received)
        connection.tls.abort()
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(connection.protocol.received) == received
        assert not connection.socket.is_read

    asyncio.run(test())


@pytest.mark.parametrize("size", SIZES)
def test_what_the_server_writes_arrives(context: TLSContext, size: int) -> None:
    def test() -> None:
        connection = Connection(context).shake_hands()
        data = bytes(range(256)) * (size // 256 + 1)
        connection.tls.write(data[:size])
        connection.tls.writelines((b"a" * size, memoryview(b"b"), b"", data[:size]))
        connection.tls.write(b"end")
        connection.tls.close()
        assert connection.read() == data[:size] + b"a" * size + b"b" + data[:size] + b"end<end>"
        assert connection.socket.closed == "closed"

    run(test)


def test_a_slow_reader_holds_no_ciphertext_beyond_the_sockets_limit(context: TLSContext) -> None:
    def test() -> None:
        shared = b"x" * 1_000_000
        slow = [Connection(context).shake_hands() for _ in range(3)]
        for connection in slow:
            connection.tls.writelines((b"head", memoryview(shared)))
            connection.tls.write(b"more")
            assert connection.socket.most <= MOST_HELD
            waiting = connection.tls._backlog
            assert waiting is not None
            assert waiting[0].obj is shared  # type: ignore[union-attr]
            assert connection.tls.backlog_bytes == sum(map(len, waiting))
            assert connection.tls.get_write_buffer_size() == connection.tls.backlog_bytes + len(connection.socket.held)
            assert connection.protocol.calls == ["pause"]
        for connection in slow:
            assert connection.read() == b"head" + shared + b"more"
            assert connection.tls.backlog_bytes == 0
            assert connection.protocol.calls[-1] == "resume"
            assert connection.socket.most <= MOST_HELD

    run(test)


def test_an_idle_connection_gives_its_buffers_back(context: TLSContext) -> None:
    def test() -> None:
        connection = Connection(context).shake_hands()
        connection.tls.release()
        assert not connection.tls.release()
        for size in (100, 100_000):
            connection.tls.write(b"x" * size)
            assert connection.read() == b"x" * size
            assert connection.tls.release() == (size > 65536)
            assert not connection.tls.release()
            connection.send(b"y" * size)
            assert connection.tls.release() == (size > 65536)
        assert connection.protocol.received == b"y" * 100_100

    run(test)


def test_a_connection_keeps_no_buffers_of_its_handshake(context: TLSContext) -> None:
    def test() -> None:
        connection = Connection(context)
        incoming = connection.tls._incoming
        connection.shake_hands()
        assert connection.tls._incoming != incoming
        connection.tls.write(b"x")
        assert connection.read() == b"x"

    run(test)


def test_buffers_in_use_are_kept(context: TLSContext) -> None:
    def test() -> None:
        connection = Connection(context).shake_hands()
        connection.tls.write(b"x" * 1_000_000)
        assert not connection.tls.release()  # a part waits
        assert connection.read() == b"x" * 1_000_000
        assert connection.tls.release()

    run(test)


def test_the_end_of_the_client_is_the_end_of_the_connection(context: TLSContext) -> None:
    def test() -> None:
        connection = Connection(context).shake_hands()
        connection.tls.write(b"x" * 200_000)
        with pytest.raises(ssl.SSLWantReadError):
            connection.client.unwrap()
        connection.send()
        assert connection.protocol.calls == ["pause", "eof"]
        assert not connection.socket.is_closing()  # before what was written is sent
        assert connection.tls.is_closing()
        while connection.socket.held:
            connection.socket.drain()
        assert connection.socket.closed == "closed"
        connection.tls.connection_lost(None)
        assert connection.protocol.calls[-1] == "lost"

    run(test)


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"Client sent an HTTP request to an HTTPS server.\n"),
        (b"\x00" * 100, b""),
    ],
)
def test_what_is_no_tls_is_refused(context: TLSContext, data: bytes, answer: bytes) -> None:
    def test() -> None:
        connection = Connection(context)
        connection.tls.data_received(data)
        sent = connection.socket.drain()
        assert sent.endswith(answer)
        assert connection.socket.closed == "closed"
        connection.tls.connection_lost(None)
        assert connection.protocol.calls == []

    run(test)


def test_altered_records_end_the_connection(context: TLSContext) -> None:
    def test() -> None:
        connection = Connection(context).shake_hands()
        connection.client.write(b"data")
        sent = bytearray(connection.outgoing.read())
        sent[-1] ^= 1
        connection.tls.data_received(bytes(sent))
        assert connection.protocol.received == b""
        assert connection.socket.held  # an alert
        assert connection.socket.closed == "closed"
        connection.tls.write(b"too late")

    run(test)
