"""Serves webhooks over TLS, with certificates that may change while it runs.

Upstream: sigs.k8s.io/controller-runtime/pkg/webhook/server.go, pkg/certwatcher.
"""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from fakeapiserver.controller_runtime.healthz import Checker
from fakeapiserver.controller_runtime.http_server import HTTPServer, Receive, Scope, Send, respond
from fakeapiserver.controller_runtime.metrics import Metrics

__all__ = ["METRICS", "Handler", "WebhookServer", "metrics_of"]

log = logging.getLogger(__name__)

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
# The default folder of certificates, below that of temporary files.
_CERTIFICATES: Final = "k8s-webhook-server/serving-certs"
_REACHABLE_SECONDS: Final = 10.0
# The key under which a handler's scope has the server's Metrics.
METRICS: Final = "fakeapiserver.metrics"


class WebhookServer:
    """A manager's runnable.

    cert_dir: a folder with `cert_name` and `key_name`, PEM, by default
        k8s-webhook-server/serving-certs among temporary files. They are read every `reload_period` seconds; connections made after they
        have changed get the new ones. What doesn't fit together is logged, and the old ones stay.
    client_ca_name: PEM in cert_dir of authorities whose certificates callers must show; "" for none.
    port 0 takes a free one.
    """

    need_leader_election: Final = False

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 9443,
        cert_dir: Path | str = "",
        cert_name: str = "tls.crt",
        key_name: str = "tls.key",
        client_ca_name: str = "",
        reload_period: float = 10.0,
    ) -> None:
        folder = Path(cert_dir or Path(tempfile.gettempdir(), _CERTIFICATES))
        self._certificate, self._key = folder / cert_name, folder / key_name
        self._client_ca = folder / client_ca_name if client_ca_name else None
        self._handlers: dict[str, Handler] = {}
        self._reload_period = reload_period
        self._loaded: tuple[bytes, bytes] | None = None
        self._metrics: Metrics | None = None
        self._host = host
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
        if self._metrics is not None:
            self._metrics.of_webhook(path)

    def count_in(self, metrics: Metrics) -> None:
        """Has it count there, as a manager does."""
        self._metrics = metrics
        for path in self._handlers:
            metrics.of_webhook(path)

    def handler(self, path: str) -> Handler | None:
        """Returns the handler that is registered for a path."""
        return self._handlers.get(path)

    async def wait_until_ready(self) -> None:
        """Waits until it listens."""
        await self._ready.wait()

    def started_checker(self) -> Checker:
        """A check for `add_readyz_check`: whether the server can be reached."""
        return self._check_started

    async def _check_started(self) -> None:
        if not self._ready.is_set():
            raise ValueError("webhook server has not been started yet")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is asked whether, not who
        try:
            async with asyncio.timeout(_REACHABLE_SECONDS):
                _, writer = await asyncio.open_connection(self._host or "127.0.0.1", self.port, ssl=context)
        except OSError as error:
            raise ValueError(f"webhook server is not reachable: {error}") from None
        writer.close()

    async def run(self) -> None:
        """Runs until it is cancelled. OSError with one sentence when there is no certificate, or the port is taken."""
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
        if self._metrics is None:
            await handler(scope, receive, send)
        else:
            await _counted(handler, self._metrics, scope, receive, send)

    def _load(self, context: ssl.SSLContext) -> bool:
        """Reports whether there was something new. OSError, ssl.SSLError: the context is what it was."""
        if self._metrics is not None:
            self._metrics.certificate_reads.inc()
        try:
            pair = self._certificate.read_bytes(), self._key.read_bytes()
        except FileNotFoundError:
            raise OSError(
                f"the webhook server finds no certificate: put {self._certificate.name} and {self._key.name} into "
                f"{self._certificate.parent}"
            ) from None
        if pair == self._loaded:
            return False
        # files of its own, as the folder's may change between one context and the other; a context takes what fits only
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder) / "tls.crt", Path(folder) / "tls.key"
            for path, content in zip(paths, pair, strict=True):
                path.write_bytes(content)
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*paths)
            context.load_cert_chain(*paths)
        self._loaded = pair
        return True

    async def _reload(self, context: ssl.SSLContext) -> None:
        while True:
            await asyncio.sleep(self._reload_period)
            try:
                if self._load(context):
                    log.info("the webhook server has a new certificate")
            except OSError as error:  # ssl.SSLError is one
                if self._metrics is not None:
                    self._metrics.certificate_errors.inc()
                log.error("the webhook server's new certificate can't be read, the old one stays: %s", error)


async def _counted(handler: Handler, metrics: Metrics, scope: Scope, receive: Receive, send: Send) -> None:
    path, start, status = scope["path"], perf_counter(), 500

    async def sent(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        await send(message)

    in_flight = metrics.webhook_in_flight.labels(path)
    in_flight.inc()
    try:
        await handler({**scope, METRICS: metrics}, receive, sent)
    finally:
        in_flight.dec()
        metrics.webhook_requests.labels(str(status), path).inc()
        metrics.webhook_latency.labels(path).observe(perf_counter() - start)


def metrics_of(scope: Scope) -> Metrics | None:
    """Returns the metrics of a handler, or None."""
    metrics: Metrics | None = scope.get(METRICS)
    return metrics
