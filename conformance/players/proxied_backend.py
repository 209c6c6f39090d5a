"""A backend for pods' ports, services' endpoints and nodes' ports of a test: its requests contain the responses that it sends.

A request whose path has `/say/BASE64` in it is answered with exactly these bytes, and the connection closed; any other with itself, as
JSON. `received` has every request, by its header `X-Case`.
"""

import base64
import json
import socket
import ssl
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from conformance.players.tls_server import self_signed

_SAY: Final = b"/say/"


class Backend:
    """A context manager: plain HTTP at `port`, TLS at `port` + 1, on all of this machine's addresses."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.received: dict[str, list[dict[str, Any]]] = {}
        key, certificate = self_signed()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            chain = Path(folder) / "chain.pem"
            chain.write_bytes(key + certificate)
            context.load_cert_chain(chain)
        context.set_alpn_protocols(["http/1.1"])
        self._listeners = [(socket.create_server(("", port)), None), (socket.create_server(("", port + 1)), context)]

    def __enter__(self) -> Self:
        for listener, context in self._listeners:
            threading.Thread(target=self._accept, args=(listener, context), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for listener, _context in self._listeners:
            listener.close()

    def _accept(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection, context), daemon=True).start()

    def _serve(self, connection: socket.socket, context: ssl.SSLContext | None) -> None:
        with connection, suppress(OSError):
            connection.settimeout(3)
            stream = context.wrap_socket(connection, server_side=True) if context is not None else connection
            with stream:
                self._answer(stream)

    def _answer(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        line = file.readline().rstrip(b"\r\n")
        headers: list[tuple[str, str]] = []
        while header := file.readline().rstrip(b"\r\n"):
            name, _, value = header.decode("latin-1").partition(":")
            headers.append((name, value.strip()))
        known = {name.lower(): value for name, value in headers}
        body = b""
        if known.get("transfer-encoding") == "chunked":
            while size := int(file.readline(), 16):
                body += file.read(size)
                file.readline()
            file.readline()
        elif "content-length" in known:
            body = file.read(int(known["content-length"]))
        told = {"line": line.decode("latin-1"), "headers": sorted(headers), "body": body.decode("latin-1")}
        self.received.setdefault(known.get("x-case", ""), []).append(told)
        path = line.split(b" ")[1]
        if _SAY in path:
            said = path.partition(_SAY)[2].partition(b"/")[0].partition(b"?")[0]
            answer = base64.urlsafe_b64decode(said + b"==")
            connection.sendall(answer)
            return
        text = json.dumps(told).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        connection.sendall(head % len(text) + (b"" if line.startswith(b"HEAD ") else text))


def said(answer: bytes) -> str:
    """The end of a path that is answered so."""
    return "say/" + base64.urlsafe_b64encode(answer).rstrip(b"=").decode()


def reachable_address() -> str:
    """This machine's, where it isn't only on loopback: proxies refuse that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        return str(probe.getsockname()[0])
