"""The last requests of clients, for reports and assertions of tests, bounded by their number and their bytes.

An answer keeps the bytes that exist anyway; they are decoded when a caller reads them. Nothing secret is kept: neither credentials, nor the
bodies and queries of requests for secrets and tokens, nor the commands that are run in pods. The cluster's own controllers and nodes send
their requests within the process; these are left out, and so is test control.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from types import TracebackType
from typing import Final, Protocol

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.request import TEST_CONTROL, Answered, Request, is_bundled
from fakeapiserver.evidence.entry import Content, Head, History, RequestEntry, head
from fakeapiserver.evidence.table import printed_line

KEPT: Final = 1000
KEPT_BYTES: Final = 32 << 20
# Bytes that an entry takes without its texts and bodies, and the largest body that is kept.
_ENTRY: Final = 1024
_LARGEST_BODY: Final = 256 * 1024
_BEGINNING: Final = 512
_LONGEST_TEXT: Final = 500
# Messages about these may quote what is in them.
_SECRET: Final = "secrets"
_SECRET_RESOURCES: Final = frozenset((_SECRET, "tokenreviews", "tokenrequests", ""))
_SECRET_SUBRESOURCES: Final = frozenset(("token", "exec", "attach", "proxy", "portforward"))
_WRITES: Final = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_DELETES: Final = frozenset(("delete", "deletecollection"))
_CHANGING_SUBRESOURCES: Final = frozenset(("binding", "eviction"))
log = logging.getLogger("fakeapiserver.requests")
_NOTHING: Final = nullcontext()
_NO_HEAD: Final = Head()


class Revisions(History, Protocol):
    """The part of a storage that the log needs."""

    @property
    def revision(self) -> int:
        """The newest revision."""


class RequestLogging(Protocol):
    def entry(self, request: Request) -> AbstractContextManager[None]:
        """Keeps an entry for the request that is answered within it."""


class NoRequestLog:
    def entry(self, request: Request) -> AbstractContextManager[None]:
        return _NOTHING


class Keeper(Protocol):
    """Keeps the records of requests."""

    @property
    def clock(self) -> Clock:
        """The clock whose time the records have."""

    @property
    def storage(self) -> Revisions:
        """The storage with the states that requests have written."""

    def begin(self, request: Request) -> None:
        """A request begins."""

    def keep(self, record: "Record", request: Request) -> None:
        """Takes over the record of an answered request."""


class RequestLog:
    """Keeps the last requests: at most `most` of them, which take at most about `most_bytes`. `on_entry` is called
    with each."""

    def __init__(
        self,
        clock: Clock,
        storage: Revisions,
        most: int = KEPT,
        most_bytes: int = KEPT_BYTES,
        on_entry: "Callable[[RequestEntry], None] | None" = None,
    ) -> None:
        self.clock = clock
        self.storage = storage
        self._records: deque[Record] = deque()
        self._most = most
        self._most_bytes = most_bytes
        self._on_entry = on_entry
        self._bytes = 0
        self._seq = 0
        self._changed: asyncio.Future[None] | None = None
        self._in_flight: dict[int, Request] = {}

    @property
    def in_flight(self) -> list[Request]:
        """The requests that have no answer yet."""
        return list(self._in_flight.values())

    @property
    def entries(self) -> list[RequestEntry]:
        """The requests in the order of their answers. It may be asked in any thread."""
        return [record.entry() for record in list(self._records)]

    def after(self, seq: int) -> list[RequestEntry]:
        """The requests that were answered after the entry with this `seq`."""
        return [record.entry() for record in list(self._records) if record.seq > seq]

    @property
    def last(self) -> int:
        """The `seq` of the last entry; 0 before the first."""
        return self._seq

    @property
    def bytes(self) -> int:
        """About how many bytes the entries take."""
        return self._bytes

    async def wait(self) -> None:
        """Returns at the next entry. Call it in the server's event loop."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def forget(self) -> None:
        """Forgets all requests so far."""
        self._records.clear()
        self._bytes = 0

    def entry(self, request: Request) -> AbstractContextManager[None]:
        """Keeps an entry for the request that is answered within it."""
        return _NOTHING if is_bundled(request) or request.path.startswith(TEST_CONTROL) else Record(self, request)

    def begin(self, request: Request) -> None:
        self._in_flight[id(request)] = request

    def keep(self, record: "Record", request: Request) -> None:
        """Adds the record of an answered request, and forgets the oldest ones beyond the bounds."""
        del self._in_flight[id(request)]
        self._seq += 1
        record.seq = self._seq
        records = self._records
        records.append(record)
        self._bytes += record.size
        while len(records) > self._most or (self._bytes > self._most_bytes and records):
            self._bytes -= records.popleft().size
        if self._on_entry is not None:
            self._on_entry(record.entry())
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None


def print_entry(entry: RequestEntry) -> None:
    """Prints a request as a line of the log."""
    log.info("%s", printed_line(entry))


class Record:
    """The kept parts of a request, from its beginning on; `entry` makes an entry of them. As little as possible is done while
    the client waits."""

    __slots__ = (
        "_log", "_request", "agent", "began_at", "body", "body_type", "connection", "done", "duration", "fault", "info", "message",
        "method", "path", "query", "reason", "request_bytes", "response", "response_bytes", "response_type", "seq", "size", "start",
        "status", "time", "user", "warnings", "watch",
    )  # fmt: skip

    def __init__(self, log: Keeper, request: Request) -> None:
        self._log = log
        self._request: Request | None = request
        self.seq = 0
        self.done: Head | None = None

    def __enter__(self) -> None:
        log = self._log
        assert self._request is not None
        self.time, self.began_at = log.clock.now(), log.storage.revision
        log.begin(self._request)
        self.start = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.duration = perf_counter() - self.start
        request, self._request = self._request, None
        assert request is not None
        response = request.response
        self.reason = self.message = ""
        if error is not None:
            response = error.response if isinstance(error, Answered) else None
        if response is not None:
            self.status, self.response, self.response_type = response.status, response.body, response.content_type
        elif isinstance(error, StatusError):
            status = error.status
            self.status, self.response, self.response_type = status["code"], json.encode(status), "application/json"
            self.reason, self.message = status.get("reason", ""), status.get("message", "")[:_LONGEST_TEXT]
        else:
            self.status, self.response, self.response_type = 0, b"", ""
        self._take(request)
        self._log.keep(self, request)

    def _take(self, request: Request) -> None:
        """Takes over what is kept of the request."""
        info, headers, scope = request.info, request.first_headers, request.scope
        self.info, self.method, self.path, self.fault = info, request.method, request.path, request.fault
        self.user, self.watch, self.warnings = request.user, request.watch, request.warnings
        self.agent, self.body_type = headers.get(b"user-agent", b""), headers.get(b"content-type", b"")
        self.connection, self.query, self.body = scope.get("client"), scope.get("query_string", b""), request.content
        self.request_bytes, self.response_bytes = len(self.body), len(self.response)
        if info.resource in _SECRET_RESOURCES or info.subresource in _SECRET_SUBRESOURCES:
            # The head of a created secret's answer has its name, which isn't secret.
            self.done = head(self.response) if self.response and info.resource else _NO_HEAD
            self.query = self.body = self.response = b""
            if info.resource == _SECRET:
                self.message = ""
        if self.request_bytes > _LARGEST_BODY:
            self.body = b""
        if self.response_bytes > _LARGEST_BODY:
            self.response = self.response[:_BEGINNING]
        self.size = _ENTRY + len(self.path) + len(self.agent) + len(self.query) + len(self.body) + len(self.response)

    def entry(self) -> RequestEntry:
        """Returns the entry as it is now: watches go on."""
        info, found = self.info, self.done
        if found is None:
            found = self.done = head(self.response) if self.response else _NO_HEAD
        dry_run = b"dryRun=" in self.query
        refused = self.status >= 400
        watch = self.watch
        return RequestEntry(
            self.time,
            self.duration,
            self.method,
            self.path,
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.subresource,
            info.namespace,
            info.name or (self._created(found) if info.verb == "create" else ""),
            self.body_type.decode("latin-1") if self.method == "PATCH" else "",
            self.user.name,
            self.agent.decode("latin-1"),
            self.status,
            self.reason or found.reason * refused,
            self.message or ("" if info.resource == _SECRET else found.message * refused),
            self.fault,
            self.seq,
            self.query.decode("latin-1"),
            dry_run,
            0 if refused else found.revision,
            not refused and not dry_run and self.status != 0 and self._has_changed(found),
            f"{self.connection[0]}:{self.connection[1]}" if self.connection else "",
            self.request_bytes,
            self.response_bytes,
            watch.events if watch is not None else 0,
            watch.ended if watch is not None else "",
            found.generate_name * (not refused),
            self.user.groups,
            tuple(dict.fromkeys(filter(None, self.warnings))),
            self._content(found),
        )

    def _created(self, found: Head) -> str:
        """Returns the name of the object that a create has made, or was refused."""
        return found.name if self.status < 400 else head(self.body).name

    def _has_changed(self, found: Head) -> bool:
        info = self.info
        if info.verb not in _WRITES:
            return False
        if found.revision:
            return found.revision > self.began_at or found.gone
        return info.verb in _DELETES or info.subresource in _CHANGING_SUBRESOURCES

    def _content(self, found: Head) -> Content | None:
        if self.info.resource in _SECRET_RESOURCES or self.info.subresource in _SECRET_SUBRESOURCES:
            return None
        body_type = self.body_type.decode("latin-1")
        return Content(
            self.body, body_type, self.response, self.response_type, self._log.storage, self.began_at, found.uid
        )
