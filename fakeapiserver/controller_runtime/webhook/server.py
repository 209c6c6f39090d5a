"""Serves webhooks over TLS, with certificates that may change while it runs.

Upstream: sigs.k8s.io/controller-runtime/pkg/webhook/server.go, pkg/certwatcher.
"""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from fakeapiserver.controller_runtime.http_server import HTTPServer, Receive, Scope, Send, respond

log = logging.getLogger(__name__)

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
_CERTIFICATES: Final = Path(tempfile.gettempdir()) / "k8s-webhook-server" / "serving-certs"
_RELOAD_SECONDS: Final = 10.0


class WebhookServer:
    """A manager's runnable.

    cert_dir: a folder with `cert_name` and `key_name`, PEM; looked at every ten seconds, and read again when they change.
    client_ca_name: PEM in cert_dir of authorities whose certificates callers must show; "" for none.
    port 0 takes a free one.
    """

    need_leader_election: Final = False

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 9443,
        cert_dir: Path | str = _CERTIFICATES,
        cert_name: str = "tls.crt",
        key_name: str = "tls.key",
        client_ca_name: str = "",
    ) -> None:
        folder = Path(cert_dir)
        self._certificate, self._key = folder / cert_name, folder / key_name
        self._client_ca = folder / client_ca_name if client_ca_name else None
        self._handlers: dict[str, Handler] = {}
        self._context: ssl.SSLContext | None = None
        self._server = HTTPServer("webhook", self, f"{host}:{port}")
        self._ready = asyncio.Event()

    @property
    def port(self) -> int:
        """The port it listens on, once it is ready."""
        return self._server.port

    def register(self, path: str, handler: Handler) -> None:
        """ValueError: the path is taken."""
        if path in self._handlers:
            raise ValueError(f"can't register duplicate path: {path}")
        self._handlers[path] = handler

    def handler(self, path: str) -> Handler | None:
        """What is registered for a path."""
        return self._handlers.get(path)

    async def wait_until_ready(self) -> None:
        """Until it listens."""
        await self._ready.wait()

    async def run(self) -> None:
        """Until it is cancelled. OSError with one sentence when there is no certificate, or the port is taken."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        if self._client_ca is not None:
            context.load_verify_locations(self._client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        self._server.tls = context
        self._server.bind()
        watching = asyncio.ensure_future(self._reload(context))
        self._ready.set()
        try:
            await self._server.run()
        finally:
            watching.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            return
        handler = self._handlers.get(scope["path"])
        if handler is None:
            await respond(send, 404, b"404 page not found\n")
            return
        await handler(scope, receive, send)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._certificate, self._key)
        except FileNotFoundError:
            raise OSError(
                f"the webhook server finds no certificate: put {self._certificate.name} and {self._key.name} into "
                f"{self._certificate.parent}"
            ) from None

    async def _reload(self, context: ssl.SSLContext) -> None:
        known = self._stamp()
        while True:
            await asyncio.sleep(_RELOAD_SECONDS)
            if (stamp := self._stamp()) != known:
                try:
                    self._load(context)
                except (OSError, ssl.SSLError) as error:
                    log.error("the webhook server's new certificate can't be read, the old one stays: %s", error)
                else:
                    known = stamp
                    log.info("the webhook server has a new certificate")

    def _stamp(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in (self._certificate, self._key))
