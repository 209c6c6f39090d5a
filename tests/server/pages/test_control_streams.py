"""Streams of the test control: they end with their reader, and leave nothing behind."""

import asyncio

from fakeapiserver.endpoints.request import Receive, Request, Scope, Send
from fakeapiserver.server.pages import control


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends one chunk, and waits until the reader has gone."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


async def unread() -> dict[str, object]:
    raise AssertionError("a GET has no body to read")


def test_a_reader_that_goes_leaves_no_task_behind() -> None:
    async def read() -> None:
        request = Request("GET", "/fakeapiserver/timeline", {}, [], unread, {"type": "http"})
        response = await control.answer(request, endless)
        assert response.stream is not None
        assert await anext(response.stream) == b"first"
        waiting = asyncio.ensure_future(anext(response.stream))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(read())
