"""The FastAPI application (see docs/asgi.md)."""

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self, Unpack, get_args

from fastapi import FastAPI
from fastapi.params import Depends
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute

from fakeapiserver import __version__
from fakeapiserver.asgi.dependencies import Guarded
from fakeapiserver.asgi.documents import Documents
from fakeapiserver.asgi.hosting import Anonymous, HostedCluster, HostedServer
from fakeapiserver.asgi.routes import KubernetesRoutes
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.server.control.docs_page import PAGE
from fakeapiserver.transport.kubeconfigs import kubeconfig

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]
_ANONYMOUS: Final = get_args(Anonymous)
_DESCRIPTION: Final = "A Kubernetes API server. Operations are grouped by group and version."


def create_app(
    *,
    anonymous: Anonymous = "user",
    token: str | None = None,
    dependencies: Sequence[Depends] = (),
    middleware: Sequence[Middleware] = (),
    lifespan: Lifespan | None = None,
    **options: Unpack[ClusterOptions],
) -> "APIServerApp":
    """Makes a FastAPI application that is a Kubernetes API server.

    - `anonymous`: who a request without credentials comes from. `user` (the default): the user system:anonymous, who may do what RBAC
      grants to this user. `admin`: the admin, who may do everything. `refused`: such requests get 401.
    - `token`: the admin's bearer token; by default a random one, `app.token`.
    - `dependencies`, `middleware`, `lifespan`: FastAPI's. Dependencies are solved for Kubernetes requests, too.
    - all other options are those of `Cluster`: `nodes=3`, `crds="config/crd"`, `controllers=()` ... `port` opens an HTTPS port as well,
      0 a free one; without it, only the ASGI server listens.

    Raises TypeError for an unknown option and ValueError with one sentence for a wrong value.
    """
    if anonymous not in _ANONYMOUS:
        raise ValueError(f"anonymous: {anonymous!r} is not one of {', '.join(_ANONYMOUS)}")
    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise ValueError(
            "token: a bearer token consists of printable ASCII characters without spaces, and is not empty"
        )
    cluster = HostedCluster(options, token or secrets.token_urlsafe(24), anonymous_auth=anonymous != "refused")
    server = HostedServer(cluster, anonymous)
    return APIServerApp(server, dependencies=dependencies, middleware=middleware, lifespan=lifespan)


class APIServerApp(FastAPI):
    """A FastAPI application that is a Kubernetes API server; `create_app` makes it.

    `app.state.cluster` is its AsyncCluster.

    It starts with the lifespan of the ASGI server that runs it, or else with the first request. Routes that you add go before the
    server's own paths (`/version`, `/healthz` ...), but not before paths of resources (`/api/v1/...`, `/apis/GROUP/VERSION/...`).
    """

    def __init__(
        self,
        server: HostedServer,
        *,
        dependencies: Sequence[Depends],
        middleware: Sequence[Middleware],
        lifespan: Lifespan | None,
    ) -> None:
        super().__init__(
            title="fakeapiserver",
            version=__version__,
            description=_DESCRIPTION,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            dependencies=dependencies,
            middleware=middleware,
            lifespan=_around(server, lifespan),
        )
        self._server = server
        self.state.cluster = server.cluster
        endpoint = Guarded(server, dependencies, self) if dependencies else server
        self.kubernetes = KubernetesRoutes(lambda: server.cluster.table, endpoint)
        self.router.routes.insert(0, self.kubernetes)
        self.router.default = endpoint
        self._documents = Documents()
        self.add_route("/docs", _docs, include_in_schema=False)

    @property
    def token(self) -> str:
        """The admin's bearer token."""
        return self._server.cluster.token

    @property
    def routes(self) -> list[BaseRoute]:
        """The operations of all group versions that are served now, and then all other routes."""
        return [*self.kubernetes.routes, *(route for route in self.router.routes if route is not self.kubernetes)]

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of the Kubernetes operations and of all other routes."""
        return self._documents.merged(super().openapi(), self._server.cluster.table)

    async def start(self) -> Self:
        """Starts storage and controllers, as the lifespan does. For applications that are mounted into others, whose lifespan Starlette
        doesn't run; without it, the first request starts them."""
        await self._server.start()
        return self

    async def stop(self) -> None:
        """Ends what `start`, the lifespan or the first request has started. Everything stored is gone."""
        await self._server.stop()

    def kubeconfig(self, url: str) -> dict[str, Any]:
        """A kubeconfig for the admin, with the token. `url` is where clients reach this application: `http://127.0.0.1:8000`.

        kubectl and client-go send no token over plain HTTP; use `anonymous="admin"` for them."""
        return kubeconfig.render(url, token=self.token)

    def write_kubeconfig(self, path: str | Path, url: str) -> None:
        """Writes `kubeconfig(url)` to a file with mode 0600. Raises OSError."""
        kubeconfig.write(Path(path), self.kubeconfig(url))


def _around(server: HostedServer, lifespan: Lifespan | None) -> Lifespan:
    """A lifespan that runs the server, and the user's own within."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[Any]:
        await server.start()
        try:
            if lifespan is None:
                yield None
            else:
                async with lifespan(app) as state:
                    yield state
        finally:
            await server.stop()

    return running


async def _docs(_: object) -> HTMLResponse:
    return HTMLResponse(PAGE.body, headers=PAGE.headers)
