"""A client of one server: HTTPS with the credentials of a kubeconfig, one connection, no retries."""

import json
import ssl
from base64 import b64decode
from collections.abc import Iterator, Mapping
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import yaml

# Seconds without an answer until a client gives up.
PATIENCE: Final = 10.0
# What a client sees of a server that was killed, or can't be reached.
LOST: Final = (OSError, HTTPException, ssl.SSLError)
_JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"


class Credentials:
    """The server and the credentials that a kubeconfig names: a client certificate, or a token for a server whose certificate isn't
    checked."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        [cluster], [user] = config["clusters"], config["users"]
        self.address = urlsplit(cluster["cluster"]["server"]).netloc
        self.headers: Mapping[str, str] = {}
        if "token" in user["user"]:
            self.context = ssl._create_unverified_context()  # of a server on loopback, which has signed its own
            self.headers = {"Authorization": f"Bearer {user['user']['token']}"}
            return
        self.context = ssl.create_default_context(
            cadata=b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
        )
        pem = kubeconfig.with_suffix(".pem")
        parts = (user["user"]["client-certificate-data"], user["user"]["client-key-data"])
        pem.write_bytes(b"".join(map(b64decode, parts)))
        pem.chmod(0o600)
        self.context.load_cert_chain(pem)


class Client:
    def __init__(self, credentials: Credentials, patience: float = PATIENCE) -> None:
        self._credentials = credentials
        self._patience = patience
        self._connection: HTTPSConnection | None = None

    def ask(self, method: str, path: str, body: object = None, content_type: str = _JSON) -> tuple[int, Any]:
        """The status and the object of an answer. Raises what LOST lists; the next request uses a new connection then."""
        try:
            response = self._send(method, path, body, content_type)
            return response.status, json.loads(response.read() or b"{}")
        except ValueError as error:
            self.close()
            raise HTTPException(f"the answer is cut: {error}") from None
        except LOST:
            self.close()
            raise

    def read(self, path: str) -> bytes:
        """The body of the answer to a GET, whose status isn't looked at. Raises what LOST lists."""
        try:
            return self._send("GET", path, None, _JSON).read()
        except LOST:
            self.close()
            raise

    def watch(self, path: str, options: Mapping[str, object]) -> Iterator[tuple[str, Any]]:
        """The type and object of each event, until the watch ends: in the middle of a line, if the server is killed. An answer that is no
        watch is the object of an event with the type ERROR. Raises what LOST lists."""
        try:
            response = self._send("GET", f"{path}?{urlencode({'watch': 1, **options})}", None, _JSON)
            if response.status != 200:
                yield "ERROR", json.loads(response.read() or b"{}")
                return
            for line in response:
                event = json.loads(line)
                yield event["type"], event["object"]
        except ValueError as error:
            raise HTTPException(f"the answer is cut: {error}") from None
        finally:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, path: str, body: object, content_type: str) -> HTTPResponse:
        if self._connection is None:
            self._connection = HTTPSConnection(
                self._credentials.address, context=self._credentials.context, timeout=self._patience
            )
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type, **self._credentials.headers}
        self._connection.request(method, path, data, headers)
        return self._connection.getresponse()
