"""An API server in this event loop, and requests to it without sockets, which can be cancelled between any two turns of the loop."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final

from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config

_TOKEN: Final = "guarantees"
# Seconds since the epoch: the beginning of 2026.
_BEGINNING: Final = 1767225600.0
Message = MutableMapping[str, Any]


class Exchange:
    """A request, and its answer as far as it has come."""

    def __init__(self, api: APIServer, method: str, target: str, body: object = None, content_type: str = "") -> None:
        self._application = api.application
        self._body = b"" if body is None else json.dumps(body).encode()
        self._received = False
        path, _, query = target.partition("?")
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [
                (b"authorization", f"Bearer {_TOKEN}".encode()),
                (b"content-type", (content_type or "application/json").encode()),
            ],
        }
        self.status = 0
        self.sent = b""

    async def run(self) -> tuple[int, Any]:
        """Returns the status and the object of the answer."""
        await self._application(self._scope, self._receive, self._send)
        return self.status, json.loads(self.sent or b"{}")

    @property
    def events(self) -> list[Any]:
        """The events that a watch has sent so far."""
        return [json.loads(line) for line in self.sent.splitlines()]

    async def _receive(self) -> Message:
        if self._received:
            await asyncio.Event().wait()
        self._received = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.sent += message.get("body", b"")


@asynccontextmanager
async def serving() -> AsyncIterator[APIServer]:
    """A server without controllers, whose objects are in memory, and whose clock is stopped: it writes nothing of its own accord."""
    clock = AdjustableClock(_BEGINNING)
    api = APIServer(Config(controllers=("none",)), clock=clock, admin_token=_TOKEN)
    await api.start()
    try:
        yield api
    finally:
        await api.stop()
