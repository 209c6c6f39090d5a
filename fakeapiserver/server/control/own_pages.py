"""Keeps web pages of others away from a port on loopback, where a browser may present a client certificate by itself.

A page that a browser shows may send requests to loopback, and may give its own name the address of loopback (DNS rebinding). Both are
recognised by their headers: Origin names another server, or Host isn't loopback.
"""

from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fakeapiserver.apimachinery.errors import new_forbidden
from fakeapiserver.apimachinery.gvk import GroupResource

_LOOPBACK: Final = frozenset(("127.0.0.1", "localhost", "[::1]"))


class OwnPages:
    """Refuses requests of other pages with 403."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (problem := _problem(dict(scope["headers"]), scope["scheme"])):
            error = new_forbidden(GroupResource("", ""), "", problem)
            await JSONResponse(error.status, error.code)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _problem(headers: dict[bytes, bytes], scheme: str) -> str:
    host, origin = (headers.get(name, b"").decode("latin-1").lower() for name in (b"host", b"origin"))
    name = host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]
    if name not in _LOOPBACK:
        return f"the Host {host[:80]!r} is not loopback: use {scheme}://127.0.0.1"
    if origin and origin != f"{scheme}://{host}":
        return f"the Origin {origin[:80]!r} is another server's page"
    return ""
