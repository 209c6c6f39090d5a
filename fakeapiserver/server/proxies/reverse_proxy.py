"""The core of all proxies of this server: forwards a request and its answer, streaming, or the whole connection.

Upstream: net/http/httputil/reverseproxy.go, k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, net/http/{sniff,request}.go.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from functools import lru_cache
from typing import Any, Final

from fakeapiserver.endpoints.request import HIJACK, Receive, Request, Response, ResponseBroken, Send
from fakeapiserver.transport.round_trip import Answer, Connection, Headers, Target, Transport, TransportError

_HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
# Credentials and identities are for this server only.
_OWN: Final = frozenset((b"authorization", b"host", b"x-remote-user", b"x-remote-uid", b"x-remote-group"))
_OWN_PREFIXES: Final = (b"x-remote-extra-", b"impersonate-")
_CHUNK: Final = 65536
SWITCHING: Final = 101
# With one of these Go doesn't look into a body for its type.
_TELLS_ITS_TYPE: Final = frozenset((b"content-type", b"content-encoding", b"transfer-encoding"))
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


# -------------------------------------------------------------------- a request


def credential_free(headers: Headers, own: frozenset[bytes] = frozenset(), prefixes: tuple[bytes, ...] = ()) -> Headers:
    """Returns the client's headers (names in lower case) without credentials and identities; `own` and `prefixes`
    name more to drop.
    """
    return [
        (name, value)
        for name, value in headers
        if name not in _OWN and name not in own and not name.startswith((*_OWN_PREFIXES, *prefixes))
    ]


def handed_on(request: Request, headers: Headers) -> Headers:
    """The headers that go to the next server, with how the body is framed."""
    forwarded = without_hops(headers)
    if any(name == b"te" and b"trailers" in value.lower() for name, value in headers):
        forwarded.append((b"te", b"trailers"))
    if request.header(b"transfer-encoding"):
        forwarded.append((b"transfer-encoding", b"chunked"))
    return forwarded


async def upgraded(request: Request, transport: Transport, target: Target, head: bytes) -> Response:
    """Bytes to and fro once the other server switches protocols; its refusal is handed on as it stands. UpgradeError."""
    connection, status, headers = await switched(transport, target, head + await request.body())
    return relayed(connection, status, headers)


async def switched(transport: Transport, target: Target, sent: bytes) -> tuple[Connection, int, Headers]:
    """A connection whose other end has answered `sent`, which asks for another protocol: with SWITCHING, or a refusal whose body is
    still coming. UpgradeError."""
    try:
        connection = await transport.connect(target)
    except TransportError as error:
        raise UpgradeError(f"error dialing backend: {error}") from error
    try:
        connection.writer.write(sent)
        status, headers = parsed_head(await connection.reader.readuntil(b"\r\n\r\n"))
    except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
        connection.close()
        raise UpgradeError("unexpected EOF" if isinstance(error, EOFError) else str(error)) from None
    except BaseException:
        connection.close()
        raise
    if status != SWITCHING and status < 400:
        connection.close()
        raise UpgradeError(f"invalid upgrade response: status code {status}")
    return connection, status, headers


class UpgradeError(Exception):
    """The other server didn't become this connection's other end; the text is upstream's."""


def is_upgrade(request: Request) -> bool:
    asks = any(b"upgrade" in value.lower() for name, value in request.headers if name == b"connection")
    return asks and HIJACK in request.scope.get("extensions", {})


def framed_body(request: Request, read: asyncio.Event) -> AsyncIterator[bytes] | None:
    """Returns the body in the framing of the request's head, or None without one.

    It raises BodyLost when the client leaves.
    """
    chunked = bool(request.header(b"transfer-encoding"))
    if not chunked and request.header(b"content-length") in ("", "0"):
        read.set()
        return None

    async def pieces() -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise BodyLost
            data, more = message.get("body", b""), message.get("more_body", False)
            if data:
                yield b"%x\r\n%b\r\n" % (len(data), data) if chunked else data
        if chunked:
            yield b"0\r\n\r\n"
        read.set()

    return pieces()


class BodyLost(Exception):
    """The client left before its body was whole."""


async def while_connected(request: Request, exchange: Coroutine[Any, Any, Answer], read: asyncio.Event) -> Answer:
    """The answer; ConnectionError when the client leaves before it is there, which ends the exchange. `read`: the request's
    body was read, and what comes next is the client's leave."""

    async def leave() -> None:
        await read.wait()
        while (await request.receive())["type"] != "http.disconnect":
            pass

    exchanging, leaving = asyncio.ensure_future(exchange), asyncio.ensure_future(leave())
    try:
        await asyncio.wait((exchanging, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not exchanging.done():
            raise ConnectionResetError("the client left before it was answered")
        return exchanging.result()
    finally:
        for task in (exchanging, leaving):
            task.cancel()
        await asyncio.gather(exchanging, leaving, return_exceptions=True)


def head_of(method: str, path: str, headers: Headers) -> bytes:
    lines = [f"{method} {path} HTTP/1.1".encode(), *(b"%b: %b" % (_canonical(name), value) for name, value in headers)]
    return b"\r\n".join([*lines, b"", b""])


@lru_cache(500)
def _canonical(name: bytes) -> bytes:
    """Go's spelling of a (lower-case) header name."""
    return b"-".join(part.capitalize() for part in name.split(b"-"))


def without_hops(headers: Headers) -> Headers:
    """Returns the headers that are not only for the next hop."""
    named = {
        part.strip().lower() for name, value in headers if name.lower() == b"connection" for part in value.split(b",")
    }
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP and name.lower() not in named]


def forwarded_for(request: Request) -> bytes:
    before = [value for name, value in request.headers if name == b"x-forwarded-for"]
    client = request.scope.get("client")
    return b", ".join([*before, client[0].encode()] if client else before)


# -------------------------------------------------------------------- an answer


async def streamed(request: Request, status: int, headers: Headers, chunks: AsyncGenerator[bytes, None]) -> Response:
    """An answer with these headers (names as sent, hops gone), and with a type where it says none."""
    told = [(name.lower(), value) for name, value in headers]
    if request.method == "HEAD" or any(name in _TELLS_ITS_TYPE for name, _ in told):
        return Response(status, b"", "", told, stream=chunks)
    first = await anext(chunks, b"")
    return Response(status, b"", sniffed(first), told, stream=_chained(first, chunks))


async def _chained(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for chunk in rest:
            yield chunk
    finally:
        await rest.aclose()


async def body_chunks(answer: Answer, end: float | None) -> AsyncGenerator[bytes, None]:
    """ResponseBroken where the body ends early or isn't complete at `end` (loop time)."""
    try:
        async with asyncio.timeout_at(end):
            async for chunk in answer.chunks():
                yield chunk
    except (TransportError, TimeoutError) as error:
        raise ResponseBroken(str(error)) from None
    finally:
        await answer.finish()


def sniffed(data: bytes) -> str:
    """Returns the type that Go's server detects for a body without a Content-Type (net/http/sniff.go), for types
    that API servers return.
    """
    start = data[:512].lstrip(b" \t\r\n\f").lower()
    if not data:
        return ""
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<p>", b"<h1", b"<div", b"<!--")):
        return "text/html; charset=utf-8"
    if start.startswith(b"<?xml"):
        return "text/xml; charset=utf-8"
    if data.startswith(b"\x1f\x8b\x08"):
        return "application/x-gzip"
    return "application/octet-stream" if _BINARY.search(data[:512]) else "text/plain; charset=utf-8"


def relayed(connection: Connection, status: int, headers: Headers) -> Response:
    """The head of an answer, whose connection is the client's from there on."""

    async def takeover(receive: Receive, send: Send) -> None:
        try:
            await _relay(connection, receive, send)
        except ConnectionError:
            return  # the client has left first
        finally:
            connection.close()

    return Response(status, headers=headers, takeover=takeover)


async def _relay(connection: Connection, receive: Receive, send: Send) -> None:
    """Runs until one side ends."""

    async def to_backend() -> None:
        while (message := await receive())["type"] != "http.disconnect":
            connection.writer.write(message.get("body", b""))
            await connection.writer.drain()

    async def to_client() -> None:
        while data := await connection.reader.read(_CHUNK):
            await send({"type": "http.response.body", "body": data, "more_body": True})

    tasks = [asyncio.ensure_future(to_backend()), asyncio.ensure_future(to_client())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await send({"type": "http.response.body", "body": b""})


def parsed_head(head: bytes) -> tuple[int, Headers]:
    """Status and headers, names as sent. ValueError."""
    first, *lines = head[:-4].split(b"\r\n")
    version, _, rest = first.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise ValueError(f'malformed HTTP response "{first.decode("latin-1")}"')
    return int(rest[:3]), list(_header_lines(lines))


def _header_lines(lines: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for line in lines:
        name, _, value = line.partition(b":")
        yield name, value.strip()
