"""Carries requests to a server: the protocol of round trippers, and the one that speaks HTTP (upstream: net/http.RoundTripper)."""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.transport.files import Reread
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.round_trip import Connection, Target, Transport, TransportError

# Line breaks, which no line of a request's head may have.
_BREAK: Final = re.compile(r"[\r\n\0]")


class Answer(Protocol):
    """A response whose body is still coming."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> list[tuple[bytes, bytes]]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""

    async def body(self) -> bytes:
        """All of it."""

    async def finish(self) -> None:
        """Discards the rest of the answer."""


class RoundTripper(Protocol):
    """Carries one request to a server. Upstream: net/http.RoundTripper."""

    async def round_trip(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, certificate: KeyPair | None
    ) -> Answer:
        """`target` is path and query. TransportError when there is no answer."""

    def close(self) -> None:
        """Ends what is kept open."""


class HTTPRoundTripper:
    """HTTP/1.1 over TCP, with TLS where the config's host is https; connections are kept."""

    def __init__(self, config: RESTConfig, clock: Clock | None = None) -> None:
        """ValueError, OSError for authorities that can't be used."""
        parts = urlsplit(config.host)
        plain = config.is_plain
        host = parts.hostname or ""
        self._target = Target(
            host,
            parts.port or (80 if plain else 443),
            config.server_name or host,
            config.tls()[0],
            config.insecure,
            plain,
            config.proxy_url,
        )
        paths = [config.ca_file] if config.ca_file is not None and not config.ca_data else []
        self._authorities = Reread(paths, config.authorities, clock or SystemClock())
        self._authority = parts.netloc.rpartition("@")[2]
        self._transports: dict[KeyPair | None, Transport] = {}

    async def round_trip(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, certificate: KeyPair | None
    ) -> Answer:
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self._authority}",
            *(f"{key}: {value}" for key, value in headers),
        ]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}")
        for line in lines:
            if _BREAK.search(line):
                raise TransportError(f"net/http: invalid header field value for {go_quote(line.partition(':')[0])}")
        head = "\r\n".join((*lines, "", "")).encode("utf-8")
        return await self._transport(certificate).round_trip(self._place(), head, method, body or None)

    async def connect(self, certificate: KeyPair | None) -> Connection:
        """A connection of one's own. TransportError."""
        return await self._transport(certificate).connect(self._place())

    def _place(self) -> Target:
        """Drops connections made under an earlier CA bundle, so that the server is verified again."""
        target = self._authorities.current()
        if target != self._target.ca_bundle:
            self.close()
            self._target = replace(self._target, ca_bundle=target)
        return self._target

    def _transport(self, certificate: KeyPair | None) -> Transport:
        """Connections show the certificate they were made with."""
        if certificate not in self._transports:
            self.close()
            self._transports[certificate] = Transport(certificate)
        return self._transports[certificate]

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()
        self._transports.clear()
