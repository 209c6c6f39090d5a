"""The application around an API server that serves the page below /ui/, and lets its requests in by their cookie.

A request with a session's cookie and without credentials of its own is that of the user `fakeapiserver:ui`, who may do everything. A page
of another origin can't send such requests: the cookie is SameSite=Strict, its host must be this server's (so that no foreign name that
resolves to this machine gets it), the browser's Origin and Sec-Fetch-Site must name this server, and requests that may change something
need the session's token in a header.
"""

import ipaddress
import socket
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

import msgspec

from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.request import IN_PROCESS_USER, ASGIApplication, Message, Receive, Scope, Send
from fakeapiserver.ui.files import files
from fakeapiserver.ui.sessions import Sessions

USER: Final = UserInfo("fakeapiserver:ui", groups=("system:masters", "system:authenticated"))
TOKEN_HEADER: Final = b"x-fakeapiserver-token"
_PREFIX: Final = "/ui"
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_HEADERS: Final = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
# What else is read with the page's session is data: should it be HTML, e.g. of a proxied service, it must not act as the page.
_SANDBOX: Final = (
    (b"content-security-policy", b"sandbox; default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
_LINK: Final = "open the link that `fakeapiserver ui` prints"


class Refused(Exception):
    """A request that is not let in. `status` is the HTTP status, the text says why and what to do."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class UIApplication:
    """An ASGI application: the page, and everything else by `application`.

    `sessions`: who is logged in. `is_open`: requests without a cookie are handed on, for the application to authenticate; otherwise
    they are refused with 401, as on a port without TLS, where no credential should travel.
    """

    def __init__(self, application: ASGIApplication, sessions: Sessions, *, is_open: bool = True) -> None:
        self._application = application
        self._sessions = sessions
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(reversed(scope["headers"]))
        is_page = scope["path"] == _PREFIX or scope["path"].startswith(f"{_PREFIX}/")
        secret = self._secret(scope, headers)
        try:
            if is_page or secret is not None or not self._is_open:
                _check_host(headers)
            if is_page:
                await self._page(scope, headers, secret, send)
                return
            if secret is not None:
                self._check(scope, headers, secret)
                scope, send = {**scope, IN_PROCESS_USER: USER}, _sandboxed(send)
            elif not self._is_open:
                raise Refused(401, f"this port is for the page in a browser that is logged in: {_LINK}")
        except Refused as refused:
            await _answer(send, refused.status, f"{refused}\n".encode(), b"text/plain; charset=utf-8")
            return
        await self._application(scope, receive, send)

    def _secret(self, scope: Scope, headers: dict[bytes, bytes]) -> str | None:
        """Returns the secret of the request's session; None without one, and for a request with credentials of its own."""
        if b"cookie" not in headers or b"authorization" in headers:
            return None
        try:
            cookie = SimpleCookie(headers[b"cookie"].decode("latin-1")).get(_cookie_name(scope))
        except CookieError:
            return None
        return cookie.value if cookie is not None and self._sessions.token(cookie.value) is not None else None

    def _check(self, scope: Scope, headers: dict[bytes, bytes], secret: str) -> None:
        """Raises Refused for a request that may come from a page of another origin."""
        if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
            raise Refused(403, "pages of other origins can't send requests here")
        origin = headers.get(b"origin", b"")
        if origin and origin.partition(b"://")[2] != headers.get(b"host", b""):
            raise Refused(403, "pages of other origins can't send requests here")
        is_safe = scope["method"] in _SAFE and b"upgrade" not in headers
        if not is_safe and not self._sessions.is_token(secret, headers.get(TOKEN_HEADER, b"").decode("latin-1")):
            raise Refused(403, "requests that change something need the header X-Fakeapiserver-Token: reload the page")

    async def _page(self, scope: Scope, headers: dict[bytes, bytes], secret: str | None, send: Send) -> None:
        path = scope["path"].removeprefix(_PREFIX)
        if scope["method"] not in ("GET", "HEAD"):
            raise Refused(405, "the page is read by GET")
        if path == "":
            await _answer(send, 308, b"", b"text/plain", [(b"location", b"/ui/")])
        elif path == "/login":
            await self._log_in(scope, send)
        elif path == "/session":
            if secret is None:
                raise Refused(401, f"this browser isn't logged in: {_LINK}")
            self._check(scope, headers, secret)
            token = msgspec.json.encode({"token": self._sessions.token(secret)})
            await _answer(send, 200, token, b"application/json", [(b"cache-control", b"no-store")])
        else:
            await _static(path.removeprefix("/") or "index.html", scope, send)

    async def _log_in(self, scope: Scope, send: Send) -> None:
        code = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[0]
        secret = self._sessions.log_in(code)
        if secret is None:
            raise Refused(401, "this link has been used, or has expired: `fakeapiserver ui` prints another one")
        attributes = "; Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if scope["scheme"] == "https" else "")
        cookie = f"{_cookie_name(scope)}={secret}{attributes}".encode()
        headers = [(b"location", b"/ui/"), (b"set-cookie", cookie), (b"cache-control", b"no-store")]
        await _answer(send, 303, b"", b"text/plain", headers)


def _sandboxed(send: Send) -> Send:
    """Sends answers with a policy that lets them do nothing in a browser, unless they have a policy of their own."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start" and _SANDBOX[0][0] not in dict(message["headers"]):
            message = {**message, "headers": [*message["headers"], *_SANDBOX]}
        await send(message)

    return guarded


def _cookie_name(scope: Scope) -> str:
    """Returns the cookie's name, with the port: browsers share the cookies of a host's ports."""
    server = scope.get("server") or ("", 0)
    return f"fakeapiserver-ui-{server[1]}"


def _check_host(headers: dict[bytes, bytes]) -> None:
    """Raises Refused unless Host is an address, localhost or this machine's name."""
    host = headers.get(b"host", b"").decode("latin-1").lower()
    name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost" or name.endswith(".localhost") or name == socket.gethostname().lower():
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise Refused(403, "the host of the address isn't this server's: use localhost or an IP address") from None


async def _static(name: str, scope: Scope, send: Send) -> None:
    file = files().get(name)
    if file is None:
        raise Refused(404, "the page has no such file")
    caching = [(b"etag", file.etag), (b"cache-control", b"no-cache")]
    headers = dict(scope["headers"])
    if headers.get(b"if-none-match") == file.etag:
        await _answer(send, 304, b"", file.media_type, caching)
    else:
        await _answer(send, 200, file.body, file.media_type, caching)


async def _answer(
    send: Send, status: int, body: bytes, media_type: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    length = [] if status == 304 else [(b"content-length", b"%d" % len(body))]
    head = [(b"content-type", media_type), *length, *_HEADERS, *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
