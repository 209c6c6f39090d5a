"""A request and its answer, as plain data around ASGI's scope (no framework).

Bodies are read with the limit of kube-apiserver (3 MiB), counted while they come in.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote_plus

from msgspec import Struct, field

from fakeapiserver.apimachinery.errors import new_request_entity_too_large
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.negotiation.media_types import SUPPORTED
from fakeapiserver.endpoints.request_info import RequestInfo

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.meta import Object
    from fakeapiserver.apimachinery.schema.decoders import Empties
    from fakeapiserver.storage.interface import Storage, Watcher

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

# Upstream: MaxRequestBodyBytes in k8s.io/apiserver/pkg/server/config.go.
MAX_BODY_BYTES: Final = 3 * 1024 * 1024
_LENGTH_DIGITS: Final = 18  # a Content-Length with more is too large, and may have more than int() reads
_MAX_PARAMETERS: Final = 10_000
_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_UNREAD: Final = RequestInfo("", "")
_NOBODY: Final = UserInfo("system:anonymous", groups=("system:unauthenticated",))

Headers = Sequence[tuple[bytes, bytes]]
# Our ASGI extension: a message of this type instead of `http.response.start` hands the connection over to the application.
HIJACK: Final = "fakeapiserver.hijack"
# Our ASGI extension: a message of this type, behind `http.response.start`, gives `attach` (or None) the function by which a stream's source
# writes to the connection, in between its chunks and without waiting. `gone` is called when the client is gone.
PUSH: Final = "fakeapiserver.push"
# Bytes of a response that many connections may send.
Piece = bytes | memoryview
# Sends pieces as one chunk of the body, and returns true, or returns false if the client takes nothing at the moment.
Push = Callable[[Sequence[Piece]], bool]

# A key of the scope: the UserInfo of a caller in this process. Requests from a socket can't set it.
IN_PROCESS_USER: Final = "fakeapiserver.user"
# A key of the scope of such a caller that is a client of users and no part of the cluster: the request log keeps its requests, and faults
# strike them.
AS_CLIENT: Final = "fakeapiserver.client"
# Below it are the paths of test control, which are no part of a Kubernetes API.
TEST_CONTROL: Final = "/fakeapiserver/"

Query = dict[str, list[str]]


class Audit(Protocol):
    """Records what audit logs about a request (upstream: k8s.io/apiserver/pkg/audit/context.go)."""

    def annotate(self, key: str, value: str, *, with_request: bool = False, at_end: bool = False) -> None:
        """Adds an annotation; the first value for a key stays. `with_request`: only if the request's body is logged as well; `at_end`:
        when the answer is complete."""

    def log_request_object(self, obj: "Object", empties: "Empties") -> None:
        """Records the decoded body in its present state."""

    def log_request_patch(self, data: bytes) -> None: ...

    def log_response_object(self, encoded: Callable[[], bytes]) -> None:
        """Records the answer's object. `encoded` returns it as JSON and is called only if it is logged."""

    def log_impersonated_user(self, user: UserInfo, constraint: str) -> None:
        """Records an impersonation. `constraint` is the verb that allowed it, empty for `impersonate`, which allows everything."""


class Injection(Protocol):
    """The faults of a request while it is handled (faults/injector.py)."""

    @property
    def expires_pages(self) -> bool:
        """Reports whether a list's continue token is refused as too old."""

    @property
    def expires_watch(self) -> bool:
        """Reports whether a watch is refused as too old before its first event."""

    @property
    def refuses_watch_list(self) -> bool:
        """Reports whether a watch can't begin with initial events, as on servers without that feature."""

    def storage(self, storage: "Storage") -> "Storage":
        """Returns the storage for a read."""

    def initial(self, count: int) -> int:
        """Returns how many of so many initial events a watch sends before it ends."""

    def watcher(self, watcher: "Watcher", sent: int) -> "Watcher":
        """Returns the watcher with what faults do to its events, of which so many were sent already."""


class OpenWatch(Protocol):
    """A watch that is being sent."""

    @property
    def request(self) -> "Request": ...

    def change_watcher(self, change: Callable[["Watcher"], "Watcher"]) -> None:
        """Takes the next events from the watcher that `change` returns for the present one."""

    def end(self) -> None:
        """Ends the watch after what it has buffered."""


class WatchProgress(Struct):
    """The progress of a watch: the number of events that were sent, bookmarks included, and how it ended (evidence/entry.py).
    `on_delivery` is called with the revisions of events that are about to be sent; None: their delivery isn't recorded."""

    events: int = 0
    ended: str = ""
    on_delivery: Callable[[Sequence[int]], None] | None = None


class Request(Struct):
    """A request on its way through the handler chain.

    `response_headers` are set by the filters and sent with every response. `supported` are the media types of the handler, `general` those
    of documents and of errors before a handler is found; `empties` are the empty lists and maps of the object that is written.
    `audit` records the request for the audit log; None: it is not audited.
    `compresses`: a large response may be compressed. `response` is the handler's response, for the filters that it passes on its way back;
    None before that, and after an error. `fault` names the faults that struck it, for logs; `injection` is what they do while it is
    handled, None for nearly all requests. `content` is the body once it was read, `watch` the progress of a watch.
    """

    method: str
    path: str
    query: Query
    headers: list[tuple[bytes, bytes]]
    receive: Receive
    scope: Scope
    info: RequestInfo = _UNREAD
    user: UserInfo = _NOBODY
    warnings: list[str] = field(default_factory=list)
    empties: "Empties" = field(default_factory=dict)
    response_headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    supported: tuple[str, ...] = SUPPORTED
    general: tuple[str, ...] = SUPPORTED
    audit: Audit | None = None
    compresses: bool = True
    response: "Response | None" = None
    fault: str = ""
    injection: Injection | None = None
    content: bytes = b""
    watch: "WatchProgress | None" = None
    _first: dict[bytes, bytes] | None = None

    def header(self, name: bytes) -> str:
        """Returns the first value of the header with this lower-case name, or "" if the request doesn't have the header."""
        value = self.first_headers.get(name)
        return value.decode("latin-1") if value is not None else ""

    @property
    def first_headers(self) -> dict[bytes, bytes]:
        """The first value of each header, by name in lower case."""
        if self._first is None:
            self._first = dict(reversed(self.headers))
        return self._first

    def param(self, name: str) -> str:
        """Returns the first value of a query parameter, or "" if the query doesn't have the parameter."""
        values = self.query.get(name)
        return values[0] if values else ""

    @property
    def query_size(self) -> int:
        """The bytes of the query."""
        return len(self.scope.get("query_string", b""))

    async def body(self) -> bytes:
        """The whole body. StatusError 413 beyond the limit, ConnectionError if the client disconnects first."""
        length = self.header(b"content-length")
        if length.isdigit() and (len(length) > _LENGTH_DIGITS or int(length) > MAX_BODY_BYTES):
            raise _too_large()
        message = await self._piece()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            whole = bytearray(body)
            while message.get("more_body"):
                message = await self._piece()
                whole += message.get("body", b"")
                if len(whole) > MAX_BODY_BYTES:
                    raise _too_large()
            body = bytes(whole)
        if len(body) > MAX_BODY_BYTES:
            raise _too_large()
        self.content = body
        return body

    async def _piece(self) -> Message:
        """ConnectionError if the client has disconnected: half a body must not be taken for a whole one."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the client left before its body was whole")
        return message


def _too_large() -> Exception:
    return new_request_entity_too_large(f"limit is {MAX_BODY_BYTES}")


class Response(Struct):
    """An answer: either `body`, or `pieces` (of a large body, each made when it is sent; `size` is about how many bytes they have), or
    `stream` (chunks that are flushed one by one), or `takeover`: then exactly these status and headers are sent, and bytes go to and fro
    unframed until it returns (only where HIJACK is among the extensions). `attach`, of a stream whose chunks are sent as they are, is
    called where PUSH is among the extensions.
    An empty `cache_control` leaves that header out."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    cache_control: bytes = b"no-cache, private"
    stream: AsyncGenerator[bytes, None] | None = None
    pieces: Iterator[bytes] | None = None
    size: int = 0
    takeover: Callable[[Receive, Send], Awaitable[None]] | None = None
    attach: Callable[[Push], None] | None = None


class Answered(Exception):
    """Raised by a filter, or in place of a handler, to end a request with a response that isn't a Status."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class ResponseBroken(Exception):
    """Raised by a stream that can't be completed: the client must see that it is broken off."""


class ConnectionReset(ResponseBroken):
    """Raised in place of an answer, or within one: the client gets a TCP reset instead of an orderly end."""


def is_bundled(request: Request) -> bool:
    """Reports whether the request comes from a controller, the scheduler or a node of this process, or from the test itself."""
    return IN_PROCESS_USER in request.scope and AS_CLIENT not in request.scope


def parse_query(raw: bytes) -> Query:
    """Each query parameter with its values in order, including empty ones."""
    query: Query = {}
    for key, value in query_pairs(raw):
        query.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return query


def query_pairs(raw: bytes) -> Iterator[tuple[str, str]]:
    """Names and values as they stand (latin-1 for bytes). Pairs that can't be decoded are left out, and
    of more than 10,000 none is read, as in Go (net/url, parseQuery)."""
    if not raw or raw.count(b"&") >= _MAX_PARAMETERS:
        return
    for pair in raw.decode("latin-1").split("&"):
        if not pair or ";" in pair or ("%" in pair and _BAD_ESCAPE.search(pair)):
            continue
        key, _, value = pair.partition("=")
        yield key, value
