"""Hands requests to pods, services and nodes on, as the pages of this server that they then are.

Upstream: k8s.io/apimachinery/pkg/util/proxy/{upgradeaware,transport}.go, pkg/controlplane/apiserver/config.go (CreateProxyTransport),
net/http/transport.go (what it asks for and undoes by itself: gzip).
"""

import asyncio
import posixpath
import zlib
from collections.abc import AsyncGenerator
from typing import Final

from fakeapiserver.apimachinery.errors import new_internal_error, new_service_unavailable, status_error
from fakeapiserver.apimachinery.go.url import escaped_path
from fakeapiserver.endpoints.request import Request, Response, ResponseBroken
from fakeapiserver.endpoints.streams.proxy import Location
from fakeapiserver.server.proxies import reverse_proxy
from fakeapiserver.server.proxies.proxied_links import CODINGS, Links
from fakeapiserver.transport.round_trip import Answer, Headers, Target, Transport, TransportError

_WITH_BODY: Final = frozenset(("POST", "PUT", "PATCH"))
# This server decides which origins may see a page.
_CORS: Final = frozenset(
    (
        b"access-control-allow-credentials",
        b"access-control-allow-headers",
        b"access-control-allow-methods",
        b"access-control-allow-origin",
    )
)
# A page whose links are rewritten is read whole; one larger than this is rewritten in a thread.
_SMALL: Final = 1 << 15


class ResourceProxy:
    """Proxies to pods, services and nodes. `ca_bundle`: the authority of their certificates; b"": any."""

    def __init__(self, transport: Transport, ca_bundle: bytes = b"") -> None:
        self._transport = transport
        self._ca_bundle = ca_bundle

    async def serve(self, request: Request, location: Location) -> Response:
        """StatusError 503 and, where the protocol was to change, 500: there is no answer."""
        path = location.path
        if reverse_proxy.is_upgrade(request):
            own = [
                (b"x-forwarded-for", reverse_proxy.forwarded_for(request)),
                *_length(request, request.header(b"content-length")),
            ]
            head = _head(request, path, "", own, _upgrade_headers(request))
            try:
                return await reverse_proxy.upgraded(request, self._transport, self._target(location), head)
            except reverse_proxy.UpgradeError as error:
                raise status_error(500, "", str(error)) from None
        if not path.endswith("/") and request.path.endswith("/"):
            path += "/"
        query = request.scope["query_string"].decode("latin-1")
        query = f"?{query}" if query else ""
        if not path and request.method in ("GET", "HEAD"):
            where = (b"location", f"{request.path}/{query}".encode())
            return Response(301, content_type="", headers=[where])
        path = path or "/"
        prefix = request.path.removesuffix(_with_slash_of(location.path, request.path))
        told = posixpath.normpath(f"{prefix}/{escaped_path(path)}") + ("/" if path.endswith("/") else "")
        unpacks = request.method != "HEAD" and not (request.header(b"accept-encoding") or request.header(b"range"))
        answer = await self._exchange(request, location, (path, query), told, unpacks)
        asked = request.header(b"host")
        links = Links(prefix, frozenset((location.authority, asked)), asked)
        return await _shown(request, answer, links, unpacks)

    async def _exchange(
        self, request: Request, location: Location, asked: tuple[str, str], told: str, unpacks: bool
    ) -> Answer:
        read = asyncio.Event()
        body = reverse_proxy.framed_body(request, read)
        own = [(b"x-forwarded-for", reverse_proxy.forwarded_for(request)), (b"x-forwarded-uri", told.encode())]
        if unpacks:
            own.append((b"accept-encoding", b"gzip"))
        own += _length(request, request.header(b"content-length") if body is not None else "")
        head = _head(
            request, *asked, own, reverse_proxy.handed_on(request, reverse_proxy.credential_free(request.headers))
        )
        try:
            return await reverse_proxy.while_connected(
                request, self._transport.round_trip(self._target(location), head, request.method, body), read
            )
        except TransportError as error:
            raise _unreachable(str(error)) from None

    def _target(self, location: Location) -> Target:
        plain = location.scheme != "https"
        port = location.port if location.port is not None else 80 if plain else 443
        return Target(
            location.host, port, location.host, self._ca_bundle, not self._ca_bundle, plain, dial=location.dial
        )


def _unreachable(why: str) -> Exception:
    return new_service_unavailable(f"error trying to reach service: {why}")


def _with_slash_of(path: str, asked: str) -> str:
    return f"{path}/" if asked.endswith("/") and not path.endswith("/") else path


def _length(request: Request, told: str) -> Headers:
    """Returns the length of the body, if known: `told` is the client's."""
    if request.header(b"transfer-encoding") or not (told or request.method in _WITH_BODY):
        return []
    return [(b"content-length", told.encode("latin-1") or b"0")]


def _head(request: Request, path: str, query: str, own: Headers, foreign: Headers) -> bytes:
    """`own` stand in place of the client's of the same name; `query` begins with its mark."""
    replaced = {b"content-length", *(name for name, _ in own)}
    headers = [(b"host", request.header(b"host").encode("latin-1"))]
    headers += [(name, value) for name, value in foreign if name not in replaced]
    return reverse_proxy.head_of(request.method, (escaped_path(path) or "/") + query, headers + own)


def _upgrade_headers(request: Request) -> Headers:
    """Returns the client's headers, with Go's user agent if the client sent no user agent."""
    headers = [(name, value) for name, value in reverse_proxy.credential_free(request.headers) if name != b"trailer"]
    return headers if request.header(b"user-agent") else [(b"user-agent", b"Go-http-client/1.1"), *headers]


# -------------------------------------------------------------------- the answer


async def _shown(request: Request, answer: Answer, links: Links, unpacks: bool) -> Response:
    headers = [(name, value) for name, value in reverse_proxy.without_hops(answer.headers) if name.lower() not in _CORS]
    chunks = reverse_proxy.body_chunks(answer, None)
    coding = answer.header(b"content-encoding")
    if unpacks and coding.lower() == b"gzip":
        headers, coding, chunks = _without(headers, b"content-encoding", b"content-length"), b"", _unpacked(chunks)
    if redirect := answer.header(b"location"):
        try:
            where = links.rewritten(redirect.decode("utf-8", "surrogateescape"))
        except ValueError as error:
            answer.close()
            raise new_internal_error(f"error trying to parse Location header: {error}") from None
        headers = _without(headers, b"location")
        headers.append((b"location", where.encode("utf-8", "surrogateescape")))
    elif answer.header(b"content-type").partition(b";")[0].strip() == b"text/html" and coding in CODINGS:
        headers = _without(headers, b"content-length")
        chunks = _rewritten(chunks, links, coding)
    return await reverse_proxy.streamed(request, answer.status, headers, chunks)


def _without(headers: Headers, *names: bytes) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in names]


async def _unpacked(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """ResponseBroken for what isn't gzip."""
    unpacker = zlib.decompressobj(31)
    try:
        async for chunk in chunks:
            rest = chunk
            while rest:
                if unpacker.eof:
                    unpacker = zlib.decompressobj(31)
                yield unpacker.decompress(rest)
                rest = unpacker.unused_data
    except zlib.error as error:
        raise ResponseBroken(str(error)) from None
    finally:
        await chunks.aclose()


async def _rewritten(chunks: AsyncGenerator[bytes, None], links: Links, coding: bytes) -> AsyncGenerator[bytes, None]:
    """ResponseBroken for what isn't coded as it says."""
    decode, encode = CODINGS[coding]
    coded = b"".join([chunk async for chunk in chunks])

    def page() -> bytes:
        return encode(links.page(decode(coded)))

    try:
        yield page() if len(coded) < _SMALL else await asyncio.to_thread(page)
    except ValueError as error:
        raise ResponseBroken(str(error)) from None
