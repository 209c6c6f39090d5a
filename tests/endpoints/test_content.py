"""Conditional requests and ranges, as Go's http.ServeContent answers them."""

import asyncio
import gzip
import time
from collections.abc import Iterator

import pytest

from fakeapiserver.endpoints.negotiation.content import Content, compressed, http_date, in_turns, serve_content
from fakeapiserver.endpoints.request import Request, Response

MODIFIED = 1_795_256_809.5
CONTENT = Content(b"0123456789", "application/json", MODIFIED, '"E"', [(b"vary", b"Accept")])
THEN, EARLIER = "Sat, 21 Nov 2026 10:26:49 GMT", "Sat, 21 Nov 2026 10:26:48 GMT"


async def nothing() -> dict[str, object]:
    return {}


def ask(method: str = "GET", **headers: str) -> Request:
    rows = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request(method, "/", {}, rows, nothing, {})


def test_whole() -> None:
    response = serve_content(ask(), CONTENT)
    assert (response.status, response.body) == (200, b"0123456789")
    assert dict(response.headers) == {
        b"vary": b"Accept",
        b"etag": b'"E"',
        b"last-modified": THEN.encode(),
        b"accept-ranges": b"bytes",
    }


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (ask(if_none_match='"E"'), 304),
        (ask(if_none_match='W/"E"'), 304),
        (ask(if_none_match='"a", "E"'), 304),
        (ask(if_none_match="*"), 304),
        (ask(if_none_match='"a"'), 200),
        (ask("POST", if_none_match='"E"'), 412),
        (ask(if_match='"E"'), 200),
        (ask(if_match='"a"'), 412),
        (ask(if_modified_since=THEN), 304),
        (ask(if_modified_since=EARLIER), 200),
        (ask(if_modified_since="yesterday"), 200),
        (ask("POST", if_modified_since=THEN), 200),
        (ask(if_unmodified_since=EARLIER), 412),
        (ask(if_unmodified_since=THEN), 200),
        (ask(if_none_match='"a"', if_modified_since=THEN), 200),
    ],
)
def test_conditions(request_: Request, status: int) -> None:
    assert serve_content(request_, CONTENT).status == status


@pytest.mark.parametrize(
    ("range_", "status", "body"),
    [
        ("bytes=0-3", 206, b"0123"),
        ("bytes=7-", 206, b"789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=5-99", 206, b"56789"),
        ("bytes=10-", 416, b"invalid range: failed to overlap\n"),
        ("lines=1-2", 416, b"invalid range\n"),
    ],
)
def test_ranges(range_: str, status: int, body: bytes) -> None:
    response = serve_content(ask(range=range_), CONTENT)
    assert (response.status, response.body) == (status, body)


def test_several_ranges_are_parts_of_one_answer() -> None:
    response = serve_content(ask(range="bytes=0-1,3-4"), CONTENT)
    kind, _, boundary = response.content_type.partition("; boundary=")
    assert (response.status, kind) == (206, "multipart/byteranges")
    first, second, end = response.body.split(b"--" + boundary.encode())[1:]
    assert b"Content-Range: bytes 0-1/10\r\n" in first
    assert first.endswith(b"\r\n\r\n01\r\n")
    assert second.endswith(b"\r\n\r\n34\r\n")
    assert end == b"--\r\n"


def test_gzip_only_where_it_is_worth_it() -> None:
    large, small = Response(200, b"x" * 2000), Response(200, b"x" * 1000)
    asked = ask(accept_encoding="gzip")
    assert gzip.decompress(asyncio.run(compressed(asked, large)).body) == b"x" * 2000
    assert asyncio.run(compressed(asked, small)).headers == [(b"vary", b"Accept-Encoding")]
    assert http_date(MODIFIED) == THEN


def test_long_work_lets_others_have_their_turn() -> None:
    turns: list[str] = []

    def steps() -> Iterator[None]:
        for number in range(2):
            until = time.monotonic() + 0.02
            while time.monotonic() < until:
                pass
            turns.append(f"step {number}")
            yield

    async def other() -> None:
        turns.append("other")

    async def both() -> None:
        await asyncio.gather(in_turns(steps()), other())

    asyncio.run(both())
    assert turns == ["step 0", "other", "step 1"]
