"""An API server in this event loop, and requests to its handlers without sockets."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fakeapiserver.clock import AdjustableClock
from fakeapiserver.endpoints.request import Message, Request, Response, parse_query
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.filters.request_info import parsed_request_info
from fakeapiserver.server.options.config import Config


class Answer(NamedTuple):
    status: int
    text: str

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.text)


class Server:
    def __init__(self, api: APIServer) -> None:
        self.api = api

    def request(self, method: str, target: str, body: object = None, *headers: tuple[bytes, bytes]) -> Request:
        """A request as it comes to a handler."""
        url = urlsplit(target)
        data = b"" if body is None else json.dumps(body).encode()

        async def receive() -> Message:
            return {"type": "http.request", "body": data, "more_body": False}

        given = [(b"content-type", b"application/json"), *headers]
        made = Request(method, url.path, parse_query(url.query.encode()), given, receive, {})
        made.info = parsed_request_info(made)
        return made

    async def ask(self, method: str, target: str, body: object = None) -> Answer:
        """Sends a request through the whole server."""
        url = urlsplit(target)
        data = b"" if body is None else json.dumps(body).encode()
        messages: list[Message] = []
        received = False

        async def receive() -> Message:
            nonlocal received
            if received:
                await asyncio.Event().wait()
            received = True
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Message) -> None:
            messages.append(message)

        headers = [(b"authorization", b"Bearer t"), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "method": method,
            "path": url.path,
            "query_string": url.query.encode(),
            "headers": headers,
        }
        await self.api.application(scope, receive, send)
        return Answer(messages[0]["status"], b"".join(message.get("body", b"") for message in messages[1:]).decode())


@asynccontextmanager
async def serving(clock: AdjustableClock | None = None) -> AsyncIterator[Server]:
    api = APIServer(Config(controllers=("none",)), clock=clock, admin_token="t")
    await api.start()
    try:
        yield Server(api)
    finally:
        await api.stop()


async def frames(response: Response, count: int) -> list[dict[str, Any]]:
    """The next events of a watch, at least so many, or all if it ends before."""
    assert response.stream is not None
    events: list[dict[str, Any]] = []
    while len(events) < count:
        try:
            chunk = await anext(response.stream)
        except StopAsyncIteration:
            break
        events += map(json.loads, chunk.splitlines())
    return events
