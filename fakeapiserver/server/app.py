"""The ASGI application, and the only place where an exception becomes a response.

`Application` is what the server runs: it knows no framework, because importing FastAPI takes longer than the whole start may
(ARCHITECTURE.md gives the figures). The FastAPI application is the test control (`control.py`), imported when first asked for.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Final

from fakeapiserver.apimachinery.depth import TooDeep
from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_bad_request,
    new_forbidden,
    new_internal_error,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.auth.interfaces import EvaluationError
from fakeapiserver.effort import computed
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import (
    HIJACK,
    PUSH,
    Answered,
    Message,
    Receive,
    Request,
    Response,
    ResponseBroken,
    Scope,
    Send,
    parse_query,
)
from fakeapiserver.server.control import docs_page
from fakeapiserver.server.pages.fixed_paths import CONTROL
from fakeapiserver.storage.etcd.errors import EtcdError
from fakeapiserver.storage.interface import ReadOnly, Unreadable, Unwritable

log = logging.getLogger(__name__)

Handle = Callable[[Request], Awaitable[Response]]
_PIECE: Final = 1 << 20
# As how many bytes a warning counts when it is decided where its header is made.
_WARNING_SIZE: Final = 16
# The page of the test control is open to everyone, since it is where browsers log in (docs_page.py).
_DOCS: Final = f"/{CONTROL}/docs"
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_NO_UPGRADE: Final = (
    "this ASGI server can't hand a connection over to another protocol than WebSocket: use a client that speaks WebSockets, "
    "or run `fakeapiserver serve`"
)
_INTERNAL_ERROR: Final = "Internal error occurred: the server could not process the request; its log tells more"


def new_id() -> bytes:
    """A random UUID, version 4. Not secret: it only distinguishes requests."""
    bits = b"%032x" % random.getrandbits(128)
    return b"%b-%b-4%b-%c%b-%b" % (bits[:8], bits[8:12], bits[13:16], b"89ab"[bits[16] & 3], bits[17:20], bits[20:])


class Application:
    """`handle` is the handler chain."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        if root := scope.get("root_path"):
            path = path.removeprefix(root.rstrip("/")) or "/"
        request = Request(scope["method"], path, parse_query(scope["query_string"]), scope["headers"], receive, scope)
        response = await self._answer(request)
        if response.takeover is not None:
            if HIJACK in scope.get("extensions", ()):
                await send({"type": HIJACK, "status": response.status, "headers": response.headers})
                await response.takeover(receive, send)
                return
            response = respond.refusal(request, status_error(501, "NotImplemented", _NO_UPGRADE))
        headers = [(b"audit-id", request.header(b"audit-id").encode("latin-1") or new_id()), *request.response_headers]
        if response.content_type:
            headers.append((b"content-type", response.content_type.encode()))
        headers += response.headers
        if response.cache_control:
            headers.append((b"cache-control", response.cache_control))
        if request.warnings:
            step = partial(respond.warning_headers, request.warnings)
            headers += await computed(step, _WARNING_SIZE * len(request.warnings))
        if response.pieces is not None:
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await _send_pieces(response.pieces, send)
        elif response.stream is None:
            headers.append((b"content-length", b"%d" % len(response.body)))
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await _send_whole(response.body, send)
        else:
            start = {"type": "http.response.start", "status": response.status, "headers": headers}
            if PUSH in scope.get("extensions", ()):
                await _stream_alone(start, response, send)
            else:
                await _stream(start, response, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            if request.path == _DOCS and request.method in ("GET", "HEAD"):
                return _docs()
            return await self._handle(request)
        except StatusError as error:
            return await computed(partial(respond.refusal, request, error), len(error.message))
        except Answered as answered:
            return answered.response
        except EvaluationError as error:
            return _internal_error(request, str(error))
        except Unwritable as error:
            return respond.status_response(
                request, status_error(500, "InternalError", f"Internal error occurred: {error}").status
            )
        except ReadOnly as error:
            info = request.info
            return respond.refusal(
                request, new_forbidden(GroupResource(info.group, info.resource), info.name, str(error))
            )
        except Unreadable as error:
            return respond.refusal(request, new_internal_error(str(error)))
        except EtcdError as error:
            return respond.status_response(request, status_error(500, "", error.original or str(error)).status)
        except (ConnectionError, ResponseBroken):
            raise  # the client is gone, or the answer has already begun
        except (RecursionError, TooDeep):
            return respond.status_response(request, new_bad_request("exceeded max depth").status)
        except Exception:
            log.exception("%s %r failed", request.method, request.path)
            return respond.status_response(request, status_error(500, "InternalError", _INTERNAL_ERROR).status)


def _docs() -> Response:
    headers = [(name.lower().encode(), value.encode()) for name, value in docs_page.PAGE.headers.items()]
    return Response(200, docs_page.PAGE.body, "text/html; charset=utf-8", headers, cache_control=b"")


def _internal_error(request: Request, text: str) -> Response:
    """500 as text, if no authorizer could decide (upstream: responsewriters.InternalError)."""
    query: bytes = request.scope.get("query_string", b"")
    uri = request.scope.get("raw_path", request.path.encode()).decode("latin-1") + (
        f"?{query.decode('latin-1')}" if query else ""
    )
    message = f"Internal Server Error: {go_quote(uri)}: {text}".translate(_ESCAPES)
    return Response(
        500, f"{message}\n".encode(), "text/plain; charset=utf-8", [(b"x-content-type-options", b"nosniff")]
    )


async def _send_whole(body: bytes, send: Send) -> None:
    """Sends a large body in pieces, so that other requests run in between."""
    start = 0
    while len(body) - start > _PIECE:
        await send({"type": "http.response.body", "body": body[start : start + _PIECE], "more_body": True})
        start += _PIECE
    await send({"type": "http.response.body", "body": body[start:]})


async def _send_pieces(pieces: Iterator[bytes], send: Send) -> None:
    """Sends a body as it is made, so that other requests run in between."""
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _stream_alone(start: Message, response: Response, send: Send) -> None:
    """Sends chunks as `_stream` does, without a task that waits for the end of the client."""
    task = asyncio.current_task()
    assert task is not None
    is_gone = False
    # taken from the response, so that no cycle of request, response and watch is left for the collection of garbage
    attach, response.attach = response.attach, None

    def leave() -> None:
        nonlocal is_gone
        is_gone = True
        task.cancel()

    try:
        await _begin(response, send, start, {"type": PUSH, "attach": attach, "gone": leave})
        await _send_chunks(response, send)
    except asyncio.CancelledError:
        if not is_gone:
            raise
        task.uncancel()


async def _stream(start: Message, response: Response, receive: Receive, send: Send) -> None:
    """Sends chunks as they come, until they end or the client is gone."""
    await _begin(response, send, start)
    sending = asyncio.ensure_future(_send_chunks(response, send))
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, gone):
            task.cancel()
        await asyncio.wait((sending, gone))
    failure = None if sending.cancelled() else sending.exception()
    if isinstance(failure, Exception) and not isinstance(failure, ConnectionError):
        raise failure


async def _begin(response: Response, send: Send, *messages: Message) -> None:
    """Sends the messages in front of a stream. Without a client the stream begins all the same, since it cleans up at its end."""
    assert response.stream is not None
    try:
        for message in messages:
            await send(message)
    except ConnectionError:
        async with aclosing(response.stream) as stream:
            async for _ in stream:
                break
        raise


async def _send_chunks(response: Response, send: Send) -> None:
    assert response.stream is not None
    async with aclosing(response.stream) as stream:
        async for chunk in stream:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
