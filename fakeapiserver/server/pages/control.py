"""Answers of the test control, which is an ASGI application within the handler chain."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from fakeapiserver.endpoints.request import ASGIApplication, Message, Request, Response

_BODILESS: Final = frozenset(("GET", "HEAD"))


async def answer(request: Request, application: ASGIApplication) -> Response:
    """Returns the application's answer: as a whole if it comes in one message, otherwise as a stream."""
    exchange = _Exchange(request)
    task = asyncio.ensure_future(application(request.scope, exchange.receive, exchange.send))
    begun = asyncio.ensure_future(exchange.begun.wait())
    try:
        await asyncio.wait((task, begun), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        begun.cancel()
    if not exchange.begun.is_set():
        task.result()
    elif exchange.is_streaming:
        exchange.response.stream = exchange.stream(task)
    else:
        await task
    return exchange.response


class _Exchange:
    """A request to the application, and its answer."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._is_read = request.method in _BODILESS
        self._is_first = True
        self._gone = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self.response = Response(content_type="")
        self.begun = asyncio.Event()
        self.is_streaming = False

    async def receive(self) -> Message:
        """Returns the parts of the body, and at last that the client has left a stream."""
        if not self._is_read:
            message = await self._request.receive()
            self._is_read = not message.get("more_body")
            return message
        if self._is_first:
            self._is_first = False
            if self._request.method in _BODILESS:
                return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Takes a message of the answer."""
        if message["type"] == "http.response.start":
            self.response.status = message["status"]
            self.response.headers = [pair for pair in message["headers"] if pair[0] != b"content-length"]
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if not self.begun.is_set():
            self.is_streaming = more
            self.begun.set()
        if not self.is_streaming:
            self.response.body = body
            return
        if body:
            await self._chunks.put(body)
        if not more:
            await self._chunks.put(None)

    async def stream(self, task: "asyncio.Future[None]") -> AsyncGenerator[bytes, None]:
        """Yields the answer's chunks, and ends the application's task with the stream."""
        try:
            while (chunk := await self._next(task)) is not None:
                yield chunk
        finally:
            self._gone.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _next(self, task: "asyncio.Future[None]") -> bytes | None:
        """Returns the next chunk; None at the end, also if the application has failed."""
        chunk = asyncio.ensure_future(self._chunks.get())
        try:
            await asyncio.wait((chunk, task), return_when=asyncio.FIRST_COMPLETED)
            if chunk.done():
                return chunk.result()
            task.result()
            return None
        finally:
            chunk.cancel()  # the reader may have gone meanwhile
