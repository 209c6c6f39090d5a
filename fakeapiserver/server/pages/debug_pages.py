"""The pages below /debug: the one flag that can be changed while the server runs, and where profiles would be.

Upstream: k8s.io/apiserver/pkg/server/routes/{flags,profiling}.go, net/http/pprof. Profiles of a Go process don't exist here, nor does
the list of them.
"""

import logging
from typing import Final

from fakeapiserver.apimachinery.go.strconv import parse_uint
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response

_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
_FLAGS: Final = "/debug/flags"
_PROFILES: Final = "/debug/pprof"
_INDEX: Final = b"""<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""
# klog's verbosity as a level of this process' log: from here on everything is logged.
_VERBOSE: Final = 4


async def page(request: Request) -> Response | None:
    """Returns the page, or None for unknown paths."""
    path = request.path
    if path == f"{_FLAGS}/v":
        return await _verbosity(request)
    if path == _FLAGS or path.startswith(f"{_FLAGS}/"):
        return Response(200, _INDEX, "text/html; charset=utf-8")
    if path == _PROFILES:
        body = b'<a href="/debug/pprof/">Found</a>.\n\n' if request.method in ("GET", "HEAD") else b""
        kind = "text/html; charset=utf-8" if body else ""
        return Response(302, body if request.method == "GET" else b"", kind, [(b"location", b"/debug/pprof/")])
    if path.startswith(f"{_PROFILES}/") and path != f"{_PROFILES}/":
        response = respond.text(404, "Unknown profile\n")
        response.headers.append((b"x-go-pprof", b"1"))
        return response
    return None


async def _verbosity(request: Request) -> Response:
    if request.method != "PUT":
        return _plain(406, "unsupported http method")
    text = (await request.body()).decode(errors="replace")
    try:
        verbosity = parse_uint(text, 32)
    except ValueError as error:
        return _plain(400, str(error))
    logging.getLogger("fakeapiserver").setLevel(logging.DEBUG if verbosity >= _VERBOSE else logging.NOTSET)
    return _plain(200, f"successfully set klog.logging.verbosity to {text}")


def _plain(status: int, text: str) -> Response:
    return Response(status, text.encode() + b"\n", "text/plain", [_NOSNIFF])
