"""GETs documents over HTTPS, as the API server does from OpenID providers.

Each request has a connection of its own; errors are in Go's words. Upstream: net/http/client.go.
"""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from ssl import SSLContext
from typing import Final
from urllib.parse import urljoin, urlsplit

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.transport.tls_dial import open_tls
from fakeapiserver.transport.webhook import Response, check_host, read_response, reason, trusting

_PORTS: Final = {"https": 443, "http": 80}
_MAX_REDIRECTS: Final = 10
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_TIMEOUT: Final = 30.0


class FetchError(Exception):
    """The request failed; the text is what Go's client says."""


class Fetcher:
    """Fetches documents from servers that the authorities of `ca` (PEM) signed for, or those of the system without
    one.
    """

    def __init__(self, ca: bytes = b"") -> None:
        self._ca = ca

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Response:
        """The answer at the end of all redirects, whatever its status. FetchError."""
        shown, headers = url, headers or {}
        for _ in range(_MAX_REDIRECTS):
            response = await self._get(url, headers, shown)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or not location:
                return response
            before, url = urlsplit(url).hostname, urljoin(url, location)
            if urlsplit(url).hostname != before:
                headers = {}  # they were for the first server
        raise FetchError(f'Get "{url}": stopped after 10 redirects')

    async def _get(self, url: str, headers: Mapping[str, str], shown: str) -> Response:
        parts = urlsplit(url)
        try:
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise FetchError(f"parse {go_quote(url)}: {error}") from None
        if parts.scheme not in _PORTS or not host:
            raise FetchError(f'Get "{shown}": unsupported protocol scheme {go_quote(parts.scheme)}')
        lines = {"Host": parts.netloc.rpartition("@")[2], "User-Agent": "Go-http-client/1.1", **headers}
        if any("\r" in value or "\n" in value for value in lines.values()):
            raise FetchError(f'Get "{shown}": net/http: invalid header field value')
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        request = f"GET {target} HTTP/1.1\r\n{head}Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await self._exchange(request.encode(), host, port, parts.scheme == "https")
        except TimeoutError:
            raise FetchError(f'Get "{shown}": context deadline exceeded') from None
        except (OSError, EOFError) as error:
            raise FetchError(f'Get "{shown}": {reason(error, host, port)}') from error

    async def _exchange(self, request: bytes, host: str, port: int, secure: bool) -> Response:
        if secure:
            reader, writer = await open_tls(host, port, self._context, host)
        else:
            reader, writer = await asyncio.open_connection(host, port)
        try:
            if secure:
                check_host(host, writer.get_extra_info("peercert") or {})
            writer.write(request)
            return await read_response(reader)
        finally:
            writer.close()

    @cached_property
    def _context(self) -> SSLContext:
        return trusting(self._ca)
