"""An aggregated API server for scenarios: HTTPS on a free port, one group version, no aggregated discovery.

It shows what it was asked (`/echo`), and answers badly where the last part of a path says so (`FAULTS`).
"""

import json
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from conformance.players.tls_server import TLSServer

ROOT: Final = "/apis/aggregated.example.com/v1"
_RESOURCES: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "aggregated.example.com/v1",
    "resources": [
        {
            "name": "echoes",
            "singularName": "echo",
            "namespaced": True,
            "kind": "Echo",
            "verbs": ["get", "list", "create"],
            "shortNames": ["ec"],
            "categories": ["all"],
        },
        {"name": "echoes/status", "singularName": "", "namespaced": True, "kind": "Echo", "verbs": ["get"]},
        {"name": "orphans/status", "singularName": "", "namespaced": False, "kind": "Other", "verbs": ["get"]},
    ],
}
# What of a request every client and server sends differently.
_UNTOLD: Final = frozenset(
    {"accept-encoding", "user-agent", "content-length", "connection", "audit-id", "x-remote-uid"}
)
# Raw bytes, after which the connection ends.
FAULTS: Final = {
    "closes": b"",
    "babbles": b"babble\r\n\r\n",
    "redirects": b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
    "turns": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://example.com/\r\nContent-Length: 0\r\n\r\n",
    "moved": b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n',
    "empty": b"HTTP/1.1 204 No Content\r\n\r\n",
    "gone": b"HTTP/1.1 410 Gone\r\nContent-Type: text/x-gone\r\nContent-Length: 4\r\n\r\ngone",
    "odd": b"HTTP/1.1 599 Odd\r\nContent-Length: 3\r\n\r\nodd",
    "old": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
    "chunks": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
    "patient": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok",
    "denies": b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
}


class Aggregated(TLSServer):
    """Runs in a thread, as a context manager."""

    def __init__(self) -> None:
        super().__init__(_handler(self))

    def filled(self, text: str) -> str:
        """A request with `"${aggregated}"` (the port) and `${caBundle}` replaced."""
        return text.replace('"${aggregated}"', str(self.port)).replace("${caBundle}", self.ca_bundle)

    def hidden(self, text: str) -> str:
        """An answer without what changes with each start."""
        found = text.replace(self.ca_bundle, "CABUNDLE").replace(f'"port": {self.port}', '"port": 1')
        return found.replace(f"127.0.0.1:{self.port}", "127.0.0.1:PORT")


def _handler(aggregated: Aggregated) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"aggregated": aggregated})


class _Handler(BaseHTTPRequestHandler):
    aggregated: Aggregated
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name: str) -> Any:
        """Every method but HEAD is answered alike."""
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        last = path.rpartition("/")[2]
        if self.aggregated.fault == "closes":
            self.close_connection = True
        elif self.aggregated.fault:
            self.wfile.write(b"HTTP/1.1 %d Faulty\r\nContent-Length: 6\r\n\r\nfaulty" % int(self.aggregated.fault))
            self.close_connection = True
        elif path == ROOT:
            self._say(200, _RESOURCES)
        elif not path.startswith(ROOT):
            self._say(404, {"nothing": path})
        elif last in FAULTS:
            self.wfile.write(FAULTS[last])
            self.close_connection = True
        else:
            told = sorted([name, value] for name, value in self.headers.items() if name.lower() not in _UNTOLD)
            asked = {"method": self.command, "target": self.path, "headers": told, "body": body.decode()}
            self._say(200, {"kind": "Echo", "apiVersion": "aggregated.example.com/v1", **asked})

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/x-head")
        self.send_header("Content-Length", "5")
        self.end_headers()

    def _say(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "max-age=3")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Quiet."""
