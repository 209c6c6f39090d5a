"""The limits of connections, and what all connections of a server share."""

import asyncio
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from fakeapiserver.endpoints.request import HIJACK, PUSH, ASGIApplication

if TYPE_CHECKING:
    from fakeapiserver.server.http.protocol import EdgeProtocol


class Limits(Struct, frozen=True):
    """The limits of a connection. Times in seconds, sizes in bytes; the defaults are kube-apiserver's."""

    header_timeout: float = 32.0  # silent peers, unfinished handshakes and headers
    body_timeout: float = 90.0  # unfinished bodies; longer than a request may take, so that it is answered
    idle_timeout: float = 90.0  # between two requests of a kept connection
    write_timeout: float = 60.0  # a reader that takes nothing for so long is cut
    linger_timeout: float = 0.5  # how long an unwanted body is read, so that the answer is not lost to a reset
    max_header_bytes: int = (1 << 20) + 4096  # request line and headers
    max_body_bytes: int = 3 << 20  # passed to the application, which answers 413
    max_discard_bytes: int = 256 << 10  # an unread rest up to this size is swallowed to keep the connection


class EdgeState:
    """The state that all connections of a server share."""

    def __init__(self, app: ASGIApplication, limits: Limits) -> None:
        self.app = app
        self.limits = limits
        self.connections: set[EdgeProtocol] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._extensions: dict[int | None, dict[str, Any]] = {}
        self.closed = 0  # connections since the last sweep
        self.is_ending = False  # each connection ends with its next answer
        self._second = 0
        self._date_line = b""

    def extensions(self, tls: dict[str, Any] | None) -> dict[str, Any]:
        """ASGI's extensions of a connection, shared by all that have no client certificate."""
        extensions: dict[str, Any] = {
            "fakeapiserver.limits": {"max_body_bytes": self.limits.max_body_bytes},
            HIJACK: {},
            PUSH: {},
        }
        if tls is None:
            return self._extensions.setdefault(None, extensions)
        extensions["tls"] = tls
        return extensions if tls["client_cert_der"] else self._extensions.setdefault(tls["tls_version"], extensions)

    def take_closed(self) -> int:
        """Returns how many connections were closed since the last call."""
        closed, self.closed = self.closed, 0
        return closed

    def date_line(self) -> bytes:
        """The `date` header line, made once a second."""
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._date_line = f"date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._date_line
