"""Bytes with a modification time, as Go's file server hands them out: conditional requests and one range of bytes.

Upstream: net/http/fs.go (ServeContent).
"""

import asyncio
import random
import re
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import partial
from typing import Final

from msgspec import Struct, field

from fakeapiserver.effort import computed
from fakeapiserver.endpoints.request import Request, Response

Headers = list[tuple[bytes, bytes]]

_ETAG: Final = re.compile(r'\s*,?\s*(?:W/)?("[^"]*")')
_RANGE: Final = re.compile(r"\s*(\d*)\s*-\s*(\d*)\s*", re.ASCII)
# Upstream: gziphandler.DefaultMinSize.
_GZIP_THRESHOLD: Final = 1400
_GZIP_FRAME: Final = 31
_PIECE: Final = 1 << 18
# How long (seconds) work that can be interrupted keeps others waiting.
_TURN: Final = 0.01


class Content(Struct, frozen=True):
    """`etag` has its quotes, or is empty; `modified` is in seconds since the epoch; `headers` are those of its own."""

    body: bytes
    content_type: str
    modified: float
    etag: str = ""
    headers: Headers = field(default_factory=list)


async def served(request: Request, content: Content) -> Response:
    """Does what serve_content does; long headers keep no other request waiting."""
    conditions = request.header(b"range") + request.header(b"if-match") + request.header(b"if-none-match")
    return await computed(partial(serve_content, request, content), len(conditions))


def serve_content(request: Request, content: Content) -> Response:
    """200, 206, 304, 412 or 416."""
    headers = list(content.headers)
    if content.etag:
        headers.append((b"etag", content.etag.encode()))
    modified = (b"last-modified", http_date(content.modified).encode())
    status = _precondition(request, content)
    if status == 304:
        return Response(304, b"", "", headers if content.etag else [*headers, modified])
    if status == 412:
        return Response(412, b"", content.content_type if content.etag else "", [*headers, modified])
    served = [*headers, modified, (b"accept-ranges", b"bytes")]
    size = len(content.body)
    try:
        wanted = _ranges(request.header(b"range"), size)
    except ValueError as error:
        # Upstream drops what describes the content that isn't sent.
        kept = [*content.headers, (b"x-content-type-options", b"nosniff")]
        if isinstance(error, NoOverlap):
            kept.append((b"content-range", b"bytes */%d" % size))
        return Response(416, f"{error}\n".encode(), "text/plain; charset=utf-8", kept)
    if not wanted or sum(end - start for start, end in wanted) > size:
        return Response(200, content.body, content.content_type, served)
    if len(wanted) > 1:
        return _several(content, wanted, served)
    ((start, end),) = wanted
    return Response(206, content.body[start:end], content.content_type, [*served, _content_range(start, end, size)])


def _several(content: Content, wanted: list[tuple[int, int]], headers: Headers) -> Response:
    """Each range as a part of its own."""
    boundary = b"%060x" % random.getrandbits(240)
    kind, size = content.content_type.encode(), len(content.body)
    pieces = []
    for start, end in wanted:
        head = b"--%b\r\n%b: %b\r\nContent-Type: %b\r\n\r\n"
        pieces.append(
            head % (boundary, b"Content-Range", _content_range(start, end, size)[1], kind) + content.body[start:end]
        )
    body = b"\r\n".join([*pieces, b"--%b--\r\n" % boundary])
    return Response(206, body, f"multipart/byteranges; boundary={boundary.decode()}", headers)


def _content_range(start: int, end: int, size: int) -> tuple[bytes, bytes]:
    return b"content-range", b"bytes %d-%d/%d" % (start, end - 1, size)


class NoOverlap(ValueError):
    """No range has anything of the content."""


def _ranges(header: str, size: int) -> list[tuple[int, int]]:
    """(start, end) of each range, the end exclusive; none where none is asked for. ValueError for what can't be read."""
    if not header:
        return []
    unit, _, text = header.partition("=")
    ranges, asked = [], 0
    for part in text.split(","):
        if not part.strip():
            continue
        match = _RANGE.fullmatch(part)
        if (
            unit != "bytes"
            or match is None
            or not any(match.groups())
            or (match[1] and match[2] and int(match[1]) > int(match[2]))
        ):
            raise ValueError("invalid range")
        asked += 1
        start, end = _bounds(match[1], match[2], size)
        if not match[1] or start < size:
            ranges.append((start, min(end, size)))
    if unit != "bytes":
        raise ValueError("invalid range")
    if asked and not ranges and size:
        raise NoOverlap("invalid range: failed to overlap")
    return ranges


async def compressed(request: Request, response: Response) -> Response:
    """Compresses the answer with gzip if the client accepts it and it is large; caches are informed either way."""
    response.headers.insert(0, (b"vary", b"Accept-Encoding"))
    if "gzip" in request.header(b"accept-encoding") and len(response.body) >= _GZIP_THRESHOLD:
        pieces: list[bytes] = []
        await in_turns(_gzip(response.body, pieces))
        response.body = b"".join(pieces)
        response.headers.append((b"content-encoding", b"gzip"))
    return response


def _gzip(body: bytes, pieces: list[bytes]) -> Iterator[None]:
    compressor = zlib.compressobj(1, wbits=_GZIP_FRAME)
    for start in range(0, len(body), _PIECE):
        pieces.append(compressor.compress(body[start : start + _PIECE]))
        yield
    pieces.append(compressor.flush())


async def in_turns(steps: Iterator[Callable[[], object] | None]) -> None:
    """Takes the steps of long work; others have their turn after those that took a while. A step that would take a while itself
    is given as a function, which another thread runs."""
    now = asyncio.get_running_loop().time
    until = now() + _TURN
    for step in steps:
        if step is not None:
            await asyncio.to_thread(step)
        elif now() > until:
            await asyncio.sleep(0)
            until = now() + _TURN


def http_date(seconds: float) -> str:
    """`Sat, 21 Nov 2026 10:26:49 GMT`"""
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC), usegmt=True)


def _precondition(request: Request, content: Content) -> int:
    """304 or 412 where a condition of the client's isn't met, else 200."""
    reading = request.method in ("GET", "HEAD")
    if match := request.header(b"if-match"):
        if not _matches(match, content.etag, weak=False):
            return 412
    elif (since := _seconds(request.header(b"if-unmodified-since"))) is not None and int(content.modified) > since:
        return 412
    if none_match := request.header(b"if-none-match"):
        if _matches(none_match, content.etag, weak=True):
            return 304 if reading else 412
    elif reading and (since := _seconds(request.header(b"if-modified-since"))) is not None:
        return 304 if int(content.modified) <= since else 200
    return 200


def _matches(header: str, etag: str, *, weak: bool) -> bool:
    if header.strip() == "*":
        return True
    tags = [match[0].strip(" ,") for match in _ETAG.finditer(header)]
    return etag in ([tag.removeprefix("W/") for tag in tags] if weak else tags)


def _seconds(header: str) -> float | None:
    try:
        return parsedate_to_datetime(header).timestamp() if header else None
    except ValueError:
        return None


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    """A range's start and end (exclusive): `-5` are the last five bytes."""
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(int(last) + 1, size) if last else size
