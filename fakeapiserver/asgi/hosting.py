"""An API server without a listener of its own: its requests come from the ASGI server that runs the application.

The handler chain is the server's own `Application` (server/app.py), the same object that `fakeapiserver serve` puts behind its port.
"""

import asyncio
from typing import Final, Literal

from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.asgi import websockets
from fakeapiserver.auth.authenticators.tokenfile import MASTERS
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.request import IN_PROCESS_USER, Receive, Scope, Send
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.config import Config
from fakeapiserver.server.local import ADMIN, LocalServer

Anonymous = Literal["user", "admin", "refused"]

_ADMIN: Final = UserInfo(ADMIN, groups=(MASTERS, "system:authenticated"))
_WEBSOCKET_TOKEN: Final = b"base64url.bearer.authorization.k8s.io."


class HostedServer:
    """An ASGI application. It starts with `start`, or with the first request, and belongs to the event loop in which it started.

    `table` is what is served: the built-in resources until it starts, then also those of definitions."""

    def __init__(
        self, config: Config, *, token: str, anonymous: Anonymous, table: ResourceTable, listens: bool = False
    ) -> None:
        self.config = config
        self.listens = listens
        self.token = token
        self.server: LocalServer | None = None
        self._anonymous = anonymous
        self._table = table
        self._starting: asyncio.Task[APIServer] | None = None

    @property
    def table(self) -> ResourceTable:
        api = self.server.api if self.server is not None else None
        return api.table if api is not None else self._table

    async def start(self) -> APIServer:
        """Starts storage and controllers, or waits for a start that has begun. OSError and ValueError have one sentence."""
        loop = asyncio.get_running_loop()
        if self._starting is None:
            self._starting = loop.create_task(self._start())
        elif self._starting.get_loop() is not loop:
            raise RuntimeError(
                "this application was started in another event loop: let one event loop run its start and all its requests, "
                "with TestClient as `with TestClient(app) as client:`"
            )
        try:
            return await asyncio.shield(self._starting)
        except (OSError, ValueError):
            self._starting = None
            raise

    async def _start(self) -> APIServer:
        server = LocalServer(self.config, listens=self.listens)
        server.admin_token = self.token
        try:
            await server.start()
        except BaseException:
            await server.stop()
            raise
        self.server = server
        assert server.api is not None
        return server.api

    async def stop(self) -> None:
        """Ends watches and controllers. What was stored is gone; a second call does nothing."""
        starting, self._starting = self._starting, None
        if starting is None:
            return
        await asyncio.wait((starting,))
        server, self.server = self.server, None
        if server is not None:
            await server.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        api = await self.start()
        headers = [*map(tuple, scope["headers"])]
        scope = {**scope, "headers": headers}
        if self._anonymous == "admin" and not _has_credentials(headers):
            scope[IN_PROCESS_USER] = _ADMIN
        try:
            if scope["type"] == "websocket":
                await websockets.serve(api.application, scope, receive, send)
            else:
                await api.application(scope, receive, send)
        except ConnectionError:
            return  # the client has disconnected


def _has_credentials(headers: list[tuple[bytes, ...]]) -> bool:
    return any(
        name == b"authorization" or (name == b"sec-websocket-protocol" and _WEBSOCKET_TOKEN in value)
        for name, value in headers
    )
