"""Answers whose body comes slowly, or breaks off."""

from collections.abc import AsyncGenerator
from typing import Final

from fakeapiserver.clock import Timers, sleep
from fakeapiserver.endpoints.request import ConnectionReset, Response, ResponseBroken
from fakeapiserver.faults.rule import Fault

# So many pieces a second make a slow body.
_PIECES: Final = 10


def cut(response: Response, fault: Fault, clock: Timers) -> Response:
    """Returns the response with the body that the fault leaves of it. A body whose length is known is announced whole."""
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
        _sent(body, fault, clock),
    )


async def _whole(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


async def _sent(body: AsyncGenerator[bytes, None], fault: Fault, clock: Timers) -> AsyncGenerator[bytes, None]:
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


async def _slowly(data: bytes, rate: int, clock: Timers) -> AsyncGenerator[bytes, None]:
    if not rate:
        yield data
        return
    size = max(1, rate // _PIECES)
    for start in range(0, len(data), size):
        part = data[start : start + size]
        await sleep(clock, len(part) / rate)
        yield part
