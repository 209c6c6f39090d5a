"""SPDY/3.1: several streams over one connection, as far as Kubernetes' streaming uses it.

Upstream: github.com/moby/spdystream (connection.go, stream.go, spdy/), k8s.io/streaming/pkg/httpstream/spdy. As
there, there are no windows: a stream that is not read blocks its connection.
"""

import asyncio
import itertools
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from fakeapiserver.transport.pipe import Pipe

SPDY: Final = "SPDY/3.1"

_VERSION: Final = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN: Final = 1
_REFUSED, _CANCEL = 3, 5
_MAX_HEADERS: Final = 1 << 20
# Headers of a stream; open streams of the other side; unread bytes of a stream; and frames of one turn of the event loop.
_MAX_COUNT: Final = 1_000
MAX_STREAMS: Final = 2_000
_MAX_UNREAD: Final = 1 << 16
_TURN_FRAMES: Final = 64
_PIECE: Final = 1 << 16
_STREAM_ID: Final = (1 << 31) - 1

# What compressed headers may refer to: part of the protocol (SPDY/3, 2.6.10.1).
_NAMES: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200+OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 "
    "Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug "
    "Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset="
    "utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">I", len(encoded)) + encoded


DICTIONARY: Final = b"".join(_text(name.replace("+", " ")) for name in _NAMES.split(" ")) + _REST.encode()


class SPDYError(ConnectionError):
    """The other side doesn't keep to the protocol."""


class Stream:
    """Both directions of one stream. Header names are in lower case."""

    def __init__(self, session: "Session", number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        self.received = Pipe(_MAX_UNREAD)
        self._session = session
        self._closed = False

    async def read(self) -> bytes:
        """Returns unread data; b"" when the other side has closed."""
        return await self.received.read()

    async def write(self, data: bytes) -> None:
        """ConnectionError when this side is closed, or the connection gone."""
        if self._closed:
            raise BrokenPipeError("the stream is closed")
        for begin in range(0, len(data), _PIECE):
            await self._session.send_data(self.number, 0, data[begin : begin + _PIECE])

    async def close(self) -> None:
        """This side says no more; calling it again does nothing."""
        if not self._closed:
            self._closed = True
            await self._session.send_data(self.number, _FIN, b"")

    async def reset(self) -> None:
        """Neither side says more."""
        self._closed = True
        self.received.drop()
        await self._session.send_control(_RST_STREAM, 0, struct.pack(">II", self.number, _CANCEL))

    def cut(self) -> None:
        """The other side has reset it, or is gone."""
        self._closed = True
        self.received.end()


class Session:
    """An SPDY connection.

    `receive` returns the next bytes (b"" at its end) and `send` sends some. `run` has to run as long as the session is used.
    """

    def __init__(
        self, receive: Callable[[], Awaitable[bytes]], send: Callable[[bytes], Awaitable[None]], *, client: bool = False
    ) -> None:
        self._receive = receive
        self._send = send
        self._streams: dict[int, Stream] = {}
        self._next = 1 if client else 2
        self._opened: asyncio.Queue[Stream | None] = asyncio.Queue()
        self._replies: dict[int, asyncio.Future[None]] = {}
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._writing = asyncio.Lock()
        self._held: bytearray | None = None
        self._received = bytearray()

    async def run(self) -> None:
        """Reads until the connection ends. Raises SPDYError for invalid data."""
        try:
            for count in itertools.count(1):
                if not await self._reaches(8):
                    return
                if count % _TURN_FRAMES == 0:
                    await asyncio.sleep(0)
                first, flags_and_length = struct.unpack_from(">II", self._received)
                flags, length = flags_and_length >> 24, flags_and_length & 0xFFFFFF
                if not await self._reaches(8 + length):
                    return
                payload = bytes(self._received[8 : 8 + length])
                del self._received[: 8 + length]
                if first >> 31:
                    if first >> 16 & 0x7FFF != _VERSION:
                        raise SPDYError("unsupported SPDY version")
                    await self._control(first & 0xFFFF, flags, payload)
                else:
                    await self._data(first, flags, payload)
        except (struct.error, zlib.error) as error:
            raise SPDYError(str(error)) from None
        finally:
            for stream in self._streams.values():
                stream.cut()
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(ConnectionResetError("the connection was closed"))
            self._opened.put_nowait(None)

    async def opened(self) -> AsyncIterator[Stream]:
        """Every stream that the other side opens; it waits for `reply` or `refuse`."""
        while (stream := await self._opened.get()) is not None:
            yield stream

    async def reply(self, stream: Stream) -> None:
        """The stream is taken."""
        await self.send_control(_SYN_REPLY, 0, struct.pack(">I", stream.number), {})

    async def refuse(self, stream: Stream) -> None:
        """Refuses a stream that the other side opened."""
        self._streams.pop(stream.number, None)
        stream.cut()
        await self.send_control(_RST_STREAM, 0, struct.pack(">II", stream.number, _REFUSED))

    async def open(self, headers: Mapping[str, str]) -> Stream:
        """A stream of this side's own, once the other one has taken it. ConnectionError when it doesn't."""
        number, self._next = self._next, self._next + 2
        stream = self._streams[number] = Stream(self, number, headers)
        self._replies[number] = asyncio.get_running_loop().create_future()
        await self.send_control(_SYN_STREAM, 0, struct.pack(">IIH", number, 0, 0), headers)
        try:
            await self._replies[number]
        finally:
            del self._replies[number]
        return stream

    def forget(self, *streams: Stream) -> None:
        """Drops streams that are no longer used."""
        for stream in streams:
            stream.received.drop()
            self._streams.pop(stream.number, None)

    def hold(self) -> None:
        """Keeps all further frames back until `go_away`, which sends them in one write."""
        self._held = bytearray()

    async def go_away(self) -> None:
        """Announces the end of the connection, after the frames that are held."""
        if self._held is None:
            self.hold()
        with suppress(ConnectionError):
            await self.send_control(_GOAWAY, 0, struct.pack(">II", max(self._streams, default=0), 0))
            held, self._held = self._held or b"", None
            await self._send(bytes(held))

    async def send_control(
        self, kind: int, flags: int, payload: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """A control frame, with a block of headers where there are any: their order is the compression's."""
        async with self._writing:
            if headers is not None:
                payload += self._deflated(headers)
            head = struct.pack(">HHI", 0x8000 | _VERSION, kind, flags << 24 | len(payload))
            await self._put(head + payload)

    async def send_data(self, number: int, flags: int, data: bytes) -> None:
        async with self._writing:
            await self._put(struct.pack(">II", number, flags << 24 | len(data)) + data)

    async def _put(self, frame: bytes) -> None:
        if self._held is None:
            await self._send(frame)
        else:
            self._held += frame

    async def _control(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == _SYN_STREAM:
            number = struct.unpack_from(">I", payload)[0] & _STREAM_ID
            stream = Stream(self, number, self._inflated(payload[10:]))
            if flags & _FIN:
                stream.received.end()
            if number in self._streams:
                raise SPDYError(f"stream {number} is opened twice")
            if max(len(self._streams), self._opened.qsize()) >= MAX_STREAMS:
                await self.refuse(stream)
                return
            self._streams[number] = stream
            self._opened.put_nowait(stream)
        elif kind == _SYN_REPLY:
            number = struct.unpack_from(">I", payload)[0] & _STREAM_ID
            self._inflated(payload[4:])
            if (reply := self._replies.get(number)) is not None and not reply.done():
                reply.set_result(None)
        elif kind == _RST_STREAM:
            number = struct.unpack_from(">I", payload)[0] & _STREAM_ID
            if (gone := self._streams.pop(number, None)) is not None:
                gone.cut()
            if (reply := self._replies.get(number)) is not None and not reply.done():
                reply.set_exception(ConnectionRefusedError("the stream was refused"))
        elif kind == _PING and (struct.unpack_from(">I", payload)[0] + self._next) % 2:
            await self.send_control(_PING, 0, payload)

    async def _data(self, number: int, flags: int, payload: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        await stream.received.feed(payload)
        if flags & _FIN:
            stream.received.end()

    def _deflated(self, headers: Mapping[str, str]) -> bytes:
        block = struct.pack(">I", len(headers))
        block += b"".join(_text(name.lower()) + _text(value) for name, value in headers.items())
        return self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def _inflated(self, compressed: bytes) -> dict[str, str]:
        block = self._inflate.decompress(compressed, _MAX_HEADERS)
        if self._inflate.unconsumed_tail:
            raise SPDYError("the headers are too large")
        (count,) = struct.unpack_from(">I", block)
        if count > _MAX_COUNT:
            raise SPDYError("there are too many headers")
        headers, at = {}, 4
        for _ in range(count):
            name, at = _text_at(block, at)
            value, at = _text_at(block, at)
            headers[name] = value.partition("\0")[0]
        return headers

    async def _reaches(self, size: int) -> bool:
        while len(self._received) < size:
            data = await self._receive()
            if not data:
                return False
            self._received += data
        return True


def _text_at(block: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">I", block, at)
    end = at + 4 + size
    if end > len(block):
        raise SPDYError("the headers are cut short")
    return block[at + 4 : end].decode("latin-1"), end
