"""OpenID providers and a token webhook over TLS: `python -m conformance.players.token_servers FOLDER` prints its URL and serves.

Every path with /.well-known/openid-configuration below it is an issuer; all of them publish FOLDER/jwks.json as it is when asked.
/discovery is that of the issuer /elsewhere. /claims answers with the JWT in its query, to who presents the token `claims`.
POST /review is a webhook that knows the tokens of REVIEWS.
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

_WELL_KNOWN: Final = "/.well-known/openid-configuration"
_JANE: Final = {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"example.com/team": ["a", "b"]}}
REVIEWS: Final[dict[str, dict[str, Any]]] = {
    "hook-jane": {"authenticated": True, "user": _JANE},
    "hook-refused": {"authenticated": False, "error": "that one was revoked"},
    "hook-elsewhere": {"authenticated": True, "user": _JANE, "audiences": ["elsewhere"]},
    "hook-second": {"authenticated": True, "user": _JANE, "audiences": ["https://second"]},
    "hook-nobody": {"authenticated": True, "user": {}},
    "hook-odd": {"authenticated": "yes", "user": _JANE},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path
    url: str

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/discovery":
            self._discovery("/elsewhere")
        elif parts.path.endswith(_WELL_KNOWN):
            self._discovery(parts.path.removesuffix(_WELL_KNOWN))
        elif parts.path == "/keys":
            self._send(200, (self.folder / "jwks.json").read_bytes())
        elif parts.path == "/claims" and self.headers.get("Authorization") == "Bearer claims":
            self._send(200, parse_qs(parts.query)["jwt"][0].encode(), "application/jwt")
        else:
            self._send(404, b"{}")

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = REVIEWS.get(review["spec"]["token"], {"authenticated": False})
        self._send(200, json.dumps({**review, "status": status}).encode())

    def _discovery(self, path: str) -> None:
        document = {"issuer": self.url + path, "jwks_uri": f"{self.url}/keys"}
        self._send(200, json.dumps(document).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> int:
    Handler.folder = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.url = f"https://127.0.0.1:{server.server_address[1]}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Handler.folder / "serving.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(Handler.url, flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
