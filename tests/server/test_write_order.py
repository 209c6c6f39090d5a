"""Watchers receive a write no later than its writer gets the response: controllers compare their known state with their last write."""

import asyncio
import json
from typing import Any

import pytest

from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config

PATH = "/api/v1/namespaces/default/configmaps"
OBJECT = {"metadata": {"name": "a"}}
LABELS = {"metadata": {"labels": {"a": "b"}}}


class Client:
    """Writes into `log` what it is sent, when it is sent."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name = name
        self._log = log
        self._body = [b""]
        self.answered = asyncio.Event()

    async def ask(self, api: APIServer, method: str, path: str, query: bytes = b"", body: Any = None) -> None:
        self._body = [json.dumps(body).encode() if body else b""]
        media_type = b"application/merge-patch+json" if method == "PATCH" else b"application/json"
        headers = [(b"authorization", b"Bearer t"), (b"content-type", media_type)]
        scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": headers}
        await api.application(scope | {"raw_path": path.encode(), "http_version": "1.1"}, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if not self._body:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": self._body.pop()}

    async def _send(self, message: Any) -> None:
        if message.get("body"):
            self._log.append(self._name)
            self.answered.set()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", PATH, {"metadata": {"name": "b"}}),
        ("PUT", f"{PATH}/a", OBJECT),
        ("PATCH", f"{PATH}/a", LABELS),
        ("DELETE", f"{PATH}/a", None),
        ("DELETE", PATH, None),
    ],
)
def test_watchers_hear_of_a_write_before_it_is_answered(method: str, path: str, body: Any) -> None:
    async def scenario() -> list[str]:
        api = APIServer(Config(), admin_token="t")
        await api.start()
        log: list[str] = []
        await Client("setup", []).ask(api, "POST", PATH, body=OBJECT | {"data": {"k": "v"}})
        watcher = Client("event", log)
        watching = asyncio.ensure_future(watcher.ask(api, "GET", PATH, b"watch=1&resourceVersion=0"))
        await watcher.answered.wait()
        log.clear()
        await Client("answer", log).ask(api, method, path, body=body)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await api.stop()
        return log

    assert asyncio.run(scenario()) == ["event", "answer"]
