"""A client of one server: HTTPS with the admin's certificate, one connection, no retries."""

import json
import ssl
from base64 import b64decode
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

NAMESPACE: Final = "robust"
PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
# Seconds without an answer until a client gives up.
PATIENCE: Final = 10.0
# What a client sees of a server that was killed, or can't be reached.
LOST: Final = (OSError, HTTPException, ssl.SSLError)


class Credentials:
    """The server and the credentials that a kubeconfig names."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        [cluster], [user] = config["clusters"], config["users"]
        self.address = urlsplit(cluster["cluster"]["server"]).netloc
        self.context = ssl.create_default_context(
            cadata=b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
        )
        pem = kubeconfig.with_suffix(".pem")
        parts = (user["user"]["client-certificate-data"], user["user"]["client-key-data"])
        pem.write_bytes(b"".join(map(b64decode, parts)))
        pem.chmod(0o600)
        self.context.load_cert_chain(pem)


class Client:
    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._connection: HTTPSConnection | None = None

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the object of an answer. Raises what LOST lists; the next request uses a new connection then."""
        try:
            response = self._send(method, path, body, PATIENCE)
            return response.status, json.loads(response.read() or b"{}")
        except LOST:
            self.close()
            raise

    def watch(self, revision: int) -> Iterator[tuple[str, Any]]:
        """The type and object of each event after `revision`, until the watch ends."""
        path = f"{PATH}?watch=1&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds=3"
        try:
            response = self._send("GET", path, None, PATIENCE)
            for line in response:
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, path: str, body: object, timeout: float) -> HTTPResponse:
        if self._connection is None:
            self._connection = HTTPSConnection(
                self._credentials.address, context=self._credentials.context, timeout=timeout
            )
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, {"Content-Type": "application/json"})
        return self._connection.getresponse()
