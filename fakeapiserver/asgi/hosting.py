"""An API server without a listener of its own: its requests come from the ASGI server that runs the application.

The handler chain is the server's own `Application` (server/app.py), the same object that `fakeapiserver serve` puts behind its port.
"""

import asyncio
import os
from typing import Final, Literal

from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.asgi import websockets
from fakeapiserver.auth.authenticators.tokenfile import MASTERS
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.cluster.async_cluster import AsyncCluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.endpoints.request import IN_PROCESS_USER, ASGIApplication, Receive, Scope, Send
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.authentication import check_options
from fakeapiserver.server.own_certificates import ADMIN

Anonymous = Literal["user", "admin", "refused"]

_ADMIN: Final = UserInfo(ADMIN, groups=(MASTERS, "system:authenticated"))
_NO_PORT: Final = "this cluster has no port of its own: use app.kubeconfig(url) with the URL of the ASGI server, or create_app(port=0)"
_OTHER_LOOP: Final = (
    "this application was started in another event loop: let one event loop run its start and all its requests, with TestClient as "
    "`with TestClient(app) as client:`"
)
_WEBSOCKET_TOKEN: Final = b"base64url.bearer.authorization.k8s.io."


class HostedCluster(AsyncCluster):
    """The cluster of an application: `app.state.cluster`. Without a port of its own it writes no kubeconfigs, because it doesn't know where
    the ASGI server listens; `app.kubeconfig(url)` makes one."""

    def __init__(self, options: ClusterOptions, token: str, *, anonymous_auth: bool) -> None:
        super().__init__(**options)
        self._config.anonymous_auth = anonymous_auth
        self._token = token
        self._listens = "port" in options
        check_options(self._config)
        config = self._config
        self._table = ResourceTable(
            scheme.serving(config.kubernetes_version, config.feature_gates, config.runtime_config, config.emulation)
        )

    @property
    def token(self) -> str:
        """The admin's bearer token, which is known before the cluster runs."""
        return self._token

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT` of the cluster's own port. ValueError if it has none."""
        self._require_port()
        return super().url

    async def write_kubeconfig(self, path: str | os.PathLike[str]) -> None:
        """Adds a context for the cluster's own port to a kubeconfig. ValueError if it has none."""
        self._require_port()
        await super().write_kubeconfig(path)

    @property
    def runs(self) -> bool:
        """Reports whether the cluster answers requests."""
        return self._local is not None and self._local.api is not None

    @property
    def table(self) -> ResourceTable:
        """The resources that are served; before the start, the built-in ones."""
        return self._api.table if self.runs else self._table

    @property
    def application(self) -> ASGIApplication:
        """The handler chain of the running cluster."""
        return self._api.application

    def _new_server(self) -> LocalServer:
        server = LocalServer(self._config, listens=self._listens)
        server.admin_token = self._token
        return server

    def _require_folder(self) -> str:
        self._require_port()
        return super()._require_folder()

    def _require_port(self) -> None:
        if not self._listens:
            raise ValueError(_NO_PORT)


class HostedServer:
    """An ASGI application. It starts with `start`, or with the first request, and belongs to the event loop in which it started."""

    def __init__(self, cluster: HostedCluster, anonymous: Anonymous) -> None:
        self.cluster = cluster
        self._anonymous = anonymous
        self._starting: asyncio.Task[HostedCluster] | None = None

    async def start(self) -> None:
        """Starts storage and controllers, or waits for a start that has begun. OSError and ValueError have one sentence; RuntimeError in
        another event loop than that of the start."""
        loop = asyncio.get_running_loop()
        if self._starting is None:
            self._starting = loop.create_task(self.cluster.start())
        elif self._starting.get_loop() is not loop:
            raise RuntimeError(_OTHER_LOOP)
        try:
            await asyncio.shield(self._starting)
        except (OSError, ValueError):
            self._starting = None
            raise

    async def stop(self) -> None:
        """Ends watches and controllers. What was stored is gone; a second call does nothing."""
        starting, self._starting = self._starting, None
        if starting is not None:
            await asyncio.wait((starting,))
            await self.cluster.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.start()
        headers = [*map(tuple, scope["headers"])]
        scope = {**scope, "headers": headers}
        if self._anonymous == "admin" and not _has_credentials(headers):
            scope[IN_PROCESS_USER] = _ADMIN
        try:
            if scope["type"] == "websocket":
                await websockets.serve(self.cluster.application, scope, receive, send)
            else:
                await self.cluster.application(scope, receive, send)
        except ConnectionError:
            return  # the client has disconnected


def _has_credentials(headers: list[tuple[bytes, ...]]) -> bool:
    return any(
        name == b"authorization" or (name == b"sec-websocket-protocol" and _WEBSOCKET_TOKEN in value)
        for name, value in headers
    )
