"""Answers whose body comes late or slowly, or breaks off."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from fakeapiserver.clock import Timers, sleep
from fakeapiserver.endpoints.request import ConnectionReset, Response, ResponseBroken
from fakeapiserver.faults.rule import Fault

# So many pieces a second make a slow body.
_PIECES: Final = 10

_Body = AsyncGenerator[bytes, None]


def held(response: Response, removed: asyncio.Event, clock: Timers, limit: float) -> Response:
    """Returns the response with a body that comes when the fault is removed, and is broken off after `limit` seconds."""
    return _with_body(response, lambda body: _late(body, removed, clock, limit))


def cut(response: Response, fault: Fault, clock: Timers) -> Response:
    """Returns the response with the body that the fault leaves of it."""
    return _with_body(response, lambda body: _sent(body, fault, clock))


def _with_body(response: Response, change: Callable[[_Body], _Body]) -> Response:
    """The response with another body. A body whose length is known is announced whole."""
    if response.takeover is not None:
        return response
    body = response.stream if response.stream is not None else _whole(response.body)
    headers = response.headers
    if response.stream is None:
        headers = [*headers, (b"content-length", b"%d" % len(response.body))]
    return Response(
        response.status,
        b"",
        response.content_type,
        headers,
        response.cache_control,
        change(body),
    )


async def _whole(body: bytes) -> _Body:
    yield body


async def _late(body: _Body, removed: asyncio.Event, clock: Timers, limit: float) -> _Body:
    over = asyncio.Event()
    timer = clock.call_later(limit, over.set)
    waits = [asyncio.ensure_future(event.wait()) for event in (removed, over)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not removed.is_set():
            raise ResponseBroken
        async for chunk in body:
            yield chunk
    finally:
        timer.cancel()
        for wait in waits:
            wait.cancel()
        await body.aclose()


async def _sent(body: _Body, fault: Fault, clock: Timers) -> _Body:
    left = fault.truncate
    try:
        async for chunk in body:
            if left is None and fault.reset == "body":
                left = len(chunk) // 2
            piece = chunk if left is None else chunk[:left]
            if left is not None:
                left -= len(piece)
            if piece:
                async for part in _slowly(piece, fault.rate, clock):
                    yield part
            if left == 0:
                raise ConnectionReset if fault.reset == "body" else ResponseBroken
    finally:
        await body.aclose()


async def _slowly(data: bytes, rate: int, clock: Timers) -> _Body:
    if not rate:
        yield data
        return
    size = max(1, rate // _PIECES)
    for start in range(0, len(data), size):
        part = data[start : start + size]
        await sleep(clock, len(part) / rate)
        yield part
