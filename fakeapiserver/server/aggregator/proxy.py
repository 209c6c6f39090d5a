"""Hands a request to the server that an APIService names, and its answer back: streaming, with the caller's identity in headers.

Upstream: k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go, k8s.io/apimachinery/pkg/util/proxy/{upgradeaware,transport}.go,
net/http/httputil/reverseproxy.go, k8s.io/client-go/transport/round_trippers.go (SetAuthProxyHeaders).
"""

import asyncio
import posixpath
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote_to_bytes

from fakeapiserver.auth.authenticators.requestheader import RequestHeaderConfig
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import HIJACK, Receive, Request, Response, ResponseBroken, Send, query_pairs
from fakeapiserver.endpoints.request_info import is_long_running
from fakeapiserver.server.aggregator.api_services import RemoteService
from fakeapiserver.server.deadline import seconds_for, timed_out
from fakeapiserver.transport.round_trip import Answer, Connection, Headers, Target, Transport, TransportError
from fakeapiserver.transport.service_resolver import Resolve

# A group version's own document should be there at once, or not hold up every client's discovery.
_DISCOVERY_TIMEOUT: Final = 5.0
_DEADLINE_EXCEEDED: Final = "context deadline exceeded"
_REDIRECTED: Final = b"the backend attempted to redirect this request, which is not permitted"
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
# Credentials and identities are for this server only; what is forwarded is said anew.
_OWN: Final = frozenset((b"authorization", b"host", b"x-remote-user", b"x-remote-uid", b"x-remote-group"))
_OWN_PREFIXES: Final = (b"x-remote-extra-", b"impersonate-")
_FORWARDED: Final = frozenset((b"x-forwarded-for", b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto"))
# What net/url's EscapedPath leaves as it is, beside letters and digits.
_PATH_SAFE: Final = "/$&+,:;=@-_.~"
_TOKEN: Final = "!#$&'*+-.^_`|~"
_CHUNK: Final = 65536
_SWITCHING: Final = 101
# With one of these Go doesn't look into a body for its type.
_TELLS_ITS_TYPE: Final = frozenset((b"content-type", b"content-encoding", b"transfer-encoding"))
_URL: Final = re.compile(rb"(?:(?:https?:)?//(?P<host>[^/?#]*))?(?P<rest>.*)")
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


class Proxy:
    """`resolve` finds a Service; `request_timeout` (seconds) ends what isn't a watch; `believed` are the headers that this
    server takes identities from. A redirect is handed on only if it isn't rejected."""

    def __init__(
        self,
        transport: Transport,
        resolve: Resolve,
        request_timeout: float,
        *,
        believed: RequestHeaderConfig | None = None,
        rejects_redirects: bool = True,
    ) -> None:
        self.transport = transport
        self._resolve = resolve
        self._request_timeout = request_timeout
        self._rejects_redirects = rejects_redirects
        self._own = _OWN | frozenset(believed.headers if believed is not None else ())
        self._own_prefixes = _OWN_PREFIXES + (believed.prefixes if believed is not None else ())

    async def serve(self, request: Request, service: RemoteService) -> Response:
        """The answer of the APIService's server, or what kept it from answering."""
        if not service.available:
            return _unavailable("service unavailable")
        if problem := bundle_problem(service):
            return respond.text(500, problem + "\n")
        try:
            target = self.target(service)
        except LookupError:
            return _unavailable("service unavailable")
        if not request.header(b"audit-id"):
            request.headers.append((b"audit-id", str(uuid.uuid4()).encode()))
        forward = self._upgrade if is_upgrade(request) else self._forward
        if is_long_running(request.info):
            return await forward(request, target, None)
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds_for(request, self._request_timeout)
        limit = min(end, loop.time() + _DISCOVERY_TIMEOUT) if _is_discovery(request) else end
        try:
            async with asyncio.timeout_at(limit) as deadline:
                return await forward(request, target, end)
        except TimeoutError:
            if not deadline.expired():
                raise
            return _unreachable(_DEADLINE_EXCEEDED) if limit < end else timed_out(request)

    def target(self, service: RemoteService) -> Target:
        """Where its server is now. LookupError."""
        host, port = self._resolve(service.service.namespace, service.service.name, service.service.port)
        return Target(host, port, service.service.server_name, service.ca_bundle, service.insecure)

    async def fetch(
        self, service: RemoteService, path: str, user: UserInfo, headers: Headers, timeout: float
    ) -> tuple[Answer, bytes]:
        """What its server answers to a GET of this server's own, whether it is thought available or not, with the body.
        TransportError, also where that takes longer than `timeout` seconds; LookupError."""
        target = self.target(service)
        lines = [(b"Host", target.authority.encode()), *headers, *_identity(user)]
        connected = asyncio.Event()
        try:
            async with asyncio.timeout(timeout):
                answer = await self.transport.round_trip(target, head_of("GET", path, lines), "GET", None, connected)
                return answer, await answer.body()
        except TimeoutError:
            late = (
                _DEADLINE_EXCEEDED if connected.is_set() else "net/http: request canceled while waiting for connection"
            )
            raise TransportError(f"{late} (Client.Timeout exceeded while awaiting headers)") from None

    async def _forward(self, request: Request, target: Target, end: float | None) -> Response:
        read = asyncio.Event()
        body = framed_body(request, read)
        if body is None:
            read.set()
        exchange = self.transport.round_trip(
            target, _request_head(request, target, self._foreign(request)), request.method, body
        )
        try:
            answer = await while_connected(request, exchange, read)
        except TransportError as error:
            return _unreachable(str(error))
        except BodyLost:
            raise ConnectionResetError("the client left before its body was whole") from None
        if self._rejects_redirects and 300 <= answer.status <= 399 and answer.header(b"location"):
            answer.close()
            return Response(502, _REDIRECTED, "text/plain; charset=utf-8")
        # Both servers have the headers that every answer has.
        headers = [(b"cache-control", b"no-cache, private")]
        headers += [
            (name.lower(), redirected(value, target) if name.lower() == b"location" else value)
            for name, value in without_hops(answer.headers)
        ]
        chunks = body_chunks(answer, end)
        if request.method == "HEAD" or any(name.lower() in _TELLS_ITS_TYPE for name, _ in answer.headers):
            return Response(answer.status, b"", "", headers, stream=chunks)
        first = await anext(chunks, b"")
        return Response(answer.status, b"", sniffed(first), headers, stream=_chained(first, chunks))

    async def _upgrade(self, request: Request, target: Target, _: float | None) -> Response:
        """Bytes to and fro once the other server switches protocols; a refusal is handed on as it stands."""
        body = await request.body()
        try:
            connection = await self.transport.connect(target)
        except TransportError as error:
            return _unavailable(f"error dialing backend: {error}")
        try:
            connection.writer.write(_upgrade_head(request, target, self._foreign(request)) + body)
            status, headers = parsed_head(await connection.reader.readuntil(b"\r\n\r\n"))
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            connection.close()
            return _unavailable("unexpected EOF" if isinstance(error, EOFError) else str(error))
        except BaseException:
            connection.close()
            raise
        if status != _SWITCHING and status < 400:
            connection.close()
            return _unavailable(f"invalid upgrade response: status code {status}")
        return relayed(connection, status, headers)

    def _foreign(self, request: Request) -> Headers:
        """The client's headers without its credentials and whatever claims to be somebody."""
        return [
            (name, value)
            for name, value in request.headers
            if name not in self._own and not name.startswith(self._own_prefixes)
        ]


def bundle_problem(service: RemoteService) -> str:
    """Why nothing can be checked against its CA bundle, or nothing."""
    if service.ca_bundle and b"-----BEGIN CERTIFICATE-----" not in service.ca_bundle:
        return "unable to load root certificates: unable to parse bytes as PEM block"
    return ""


def redirected(value: bytes, target: Target) -> bytes:
    """Where a redirect leads: on the server it comes from, if it names no other."""
    authority = target.authority.encode()
    found = _URL.fullmatch(value)
    if found is None or found["host"] not in (None, b"", authority) or not found["rest"].startswith(b"/"):
        return value
    return b"https://" + authority + found["rest"]


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
    """Until one side ends."""

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


async def _chained(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for chunk in rest:
            yield chunk
    finally:
        await rest.aclose()


# ------------------------------------------------------------------ what is said


def sniffed(data: bytes) -> str:
    """What Go's server calls a body that comes without a Content-Type (net/http/sniff.go), of what an API server may answer."""
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


def _unavailable(why: str) -> Response:
    return respond.text(503, why + "\n")


def _unreachable(why: str) -> Response:
    return _unavailable(f"error trying to reach service: {why}")


def is_upgrade(request: Request) -> bool:
    asks = any(b"upgrade" in value.lower() for name, value in request.headers if name == b"connection")
    return asks and HIJACK in request.scope.get("extensions", {})


def _is_discovery(request: Request) -> bool:
    return not request.info.resource_request and request.path.strip("/").count("/") == 2


def framed_body(request: Request, read: asyncio.Event) -> AsyncIterator[bytes] | None:
    """The body, framed as the request head says, BodyLost when the client leaves; None when there is none."""
    chunked = bool(request.header(b"transfer-encoding"))
    if not chunked and request.header(b"content-length") in ("", "0"):
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


def _request_head(request: Request, target: Target, foreign: Headers) -> bytes:
    headers = [(name, value) for name, value in without_hops(foreign) if name not in _FORWARDED]
    if any(name == b"te" and b"trailers" in value.lower() for name, value in request.headers):
        headers.append((b"te", b"trailers"))
    if request.header(b"transfer-encoding"):
        headers.append((b"transfer-encoding", b"chunked"))
    path = _escaped(request.path)
    told = posixpath.normpath(path) + ("/" if path.endswith("/") else "")
    headers += [
        (b"x-forwarded-for", forwarded_for(request)),
        (b"x-forwarded-uri", told.encode()),
        (b"x-forwarded-host", target.authority.encode()),
        (b"x-forwarded-proto", b"https"),
    ]
    return head_of(
        request.method,
        path + _query(request),
        [(b"host", target.authority.encode()), *headers, *_identity(request.user)],
    )


def _upgrade_head(request: Request, target: Target, foreign: Headers) -> bytes:
    """Everything as it came, but for who asks."""
    headers = [(name, value) for name, value in foreign if name != b"x-forwarded-for"]
    headers += [(b"x-forwarded-for", forwarded_for(request)), *_identity(request.user)]
    path = _escaped(request.path) + _query(request)
    return head_of(request.method, path, [(b"host", target.authority.encode()), *headers])


def head_of(method: str, path: str, headers: Headers) -> bytes:
    lines = [f"{method} {path} HTTP/1.1".encode(), *(b"%b: %b" % (_canonical(name), value) for name, value in headers)]
    return b"\r\n".join([*lines, b"", b""])


def without_hops(headers: Headers) -> Headers:
    """What isn't only for the next hop."""
    named = {
        part.strip().lower() for name, value in headers if name.lower() == b"connection" for part in value.split(b",")
    }
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP and name.lower() not in named]


def forwarded_for(request: Request) -> bytes:
    before = [value for name, value in request.headers if name == b"x-forwarded-for"]
    client = request.scope.get("client")
    return b", ".join([*before, client[0].encode()] if client else before)


def _identity(user: UserInfo) -> Headers:
    """Who the caller is, in the headers that an aggregated server trusts."""
    found = [(b"x-remote-user", _value(user.name))]
    if user.uid:
        found.append((b"x-remote-uid", _value(user.uid)))
    found += [(b"x-remote-group", _value(group)) for group in user.groups]
    for key, values in user.extra.items():
        name = f"x-remote-extra-{quote(key, safe=_TOKEN)}".encode()
        found += [(name, _value(value)) for value in values]
    return found


def _value(text: str) -> bytes:
    return text.replace("\r", " ").replace("\n", " ").encode("utf-8", "surrogateescape")


@lru_cache(500)
def _canonical(name: bytes) -> bytes:
    """Go's spelling of a (lower-case) header name."""
    return b"-".join(part.capitalize() for part in name.split(b"-"))


def _escaped(path: str) -> str:
    return quote(path, safe=_PATH_SAFE)


def _query(request: Request) -> str:
    """As net/url encodes what it has read: sorted by name."""
    values: dict[bytes, list[bytes]] = {}
    for key, value in query_pairs(request.scope["query_string"]):
        name, text = (unquote_to_bytes(part.replace("+", " ").encode("latin-1")) for part in (key, value))
        values.setdefault(name, []).append(text)
    told = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name in sorted(values) for value in values[name])
    return "?" + told if told else ""


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
