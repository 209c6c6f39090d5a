"""Requests to the API server that pass the application's dependencies first, as requests to its own routes do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.params import Depends
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from fakeapiserver.asgi.hosting import HostedServer

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Guarded:
    """An ASGI application: `server` behind the dependencies of `app`."""

    def __init__(self, server: "HostedServer", dependencies: Sequence[Depends], app: FastAPI) -> None:
        async def hand_over(request: Request) -> Response:
            return _HandOver(server, request)

        async def hand_over_websocket(websocket: WebSocket) -> None:
            await server(websocket.scope, websocket.receive, websocket.send)

        route = APIRoute(
            "/",
            hand_over,
            methods=[*_METHODS],
            dependencies=dependencies,
            response_model=None,
            dependency_overrides_provider=app,
        )
        websocket_route = APIWebSocketRoute(
            "/", hand_over_websocket, dependencies=dependencies, dependency_overrides_provider=app
        )
        self._http: ASGIApp = route.app
        self._websocket: ASGIApp = websocket_route.app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._websocket if scope["type"] == "websocket" else self._http)(scope, receive, send)


class _HandOver(Response):
    """A response that the API server sends."""

    def __init__(self, server: ASGIApp, request: Request) -> None:
        super().__init__()
        self._server = server
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._server(scope, _from_the_start(self._request, receive), send)
        if self.background is not None:
            await self.background()


def _from_the_start(request: Request, receive: Receive) -> Receive:
    """`receive` with the body in front that a dependency has read from it."""
    body: bytes | None = getattr(request, "_body", None)
    if body is None:
        return receive

    async def replay() -> Message:
        nonlocal body
        if body is None:
            return await receive()
        message, body = {"type": "http.request", "body": body, "more_body": False}, None
        return message

    return replay
