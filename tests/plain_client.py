"""Asks a cluster as a test in any language does: plain HTTP, with nothing but Python's own library."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from fakeapiserver import Cluster


class Client:
    """Sends requests as the admin, or without credentials if `token` is "". `url`: of another server with the same credentials."""

    def __init__(self, cluster: Cluster, url: str = "") -> None:
        self._url, self._token = url or cluster.url, cluster.token
        self._context = ssl.create_default_context(cadata=cluster.ca.decode())

    def open(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        content_type: str = "application/json",
        accept: str = "",
    ) -> Any:
        """HTTPError unless it succeeds."""
        headers = {"Content-Type": content_type, **({"Accept": accept} if accept else {})}
        if token := self._token if token is None else token:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        return urllib.request.urlopen(request, context=self._context, timeout=60)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer's object. HTTPError unless it succeeds."""
        with self.open(method, path, body) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def status(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        *,
        token: str | None = None,
        accept: str = "",
    ) -> int:
        """The answer's status code, whatever it is."""
        try:
            with self.open(method, path, body, token=token, content_type=content_type, accept=accept) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
