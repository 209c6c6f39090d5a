"""The last requests of clients, for reports and assertions of tests. Neither bodies, nor queries, nor credentials are kept.

The cluster's own controllers and nodes send their requests within the process; these are left out.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.request import IN_PROCESS_USER, Answered, Request

_KEPT: Final = 1000
_LONGEST_MESSAGE: Final = 500
# Messages about these may quote what is in them.
_SECRET: Final = "secrets"
_NOTHING: Final = nullcontext()


class RequestEntry(Struct, frozen=True):
    """A request and what became of it.

    - `time`: when it began, in seconds since the Unix epoch by the cluster's clock. `duration`: seconds until the answer began.
    - `verb`: the API verb (get, list, watch, create, update, patch, delete, deletecollection), or the method in lower case if the
      path names no resource.
    - `patch_type`: the media type of a patch, e.g. application/apply-patch+yaml; else empty.
    - `user`: the authenticated user, after impersonation; system:anonymous if authentication failed.
    - `status`: the HTTP status; 0 if the connection ended before there was an answer.
    - `fault`: the faults that struck the request (`cluster.faults`); else empty.
    - `seq`: the number of the entry in its log; later answers have higher ones.
    - `reason`, `message`: those of the refusal, e.g. Conflict; empty for successful requests and, the message, for secrets.
    """

    time: float
    duration: float
    method: str
    path: str
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    patch_type: str
    user: str
    user_agent: str
    status: int
    reason: str = ""
    message: str = ""
    fault: str = ""
    seq: int = 0

    @property
    def refused(self) -> bool:
        """Reports whether the status is 400 or more."""
        return self.status >= 400


class RequestLogging(Protocol):
    def entry(self, request: Request) -> AbstractContextManager[None]:
        """Keeps an entry for the request that is answered within it."""


class NoRequestLog:
    def entry(self, request: Request) -> AbstractContextManager[None]:
        return _NOTHING


class RequestLog:
    """Keeps the last 1,000 requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: deque[RequestEntry] = deque(maxlen=_KEPT)
        self._seq = 0
        self._changed: asyncio.Future[None] | None = None
        self._in_flight: dict[int, Request] = {}

    @property
    def in_flight(self) -> list[Request]:
        """The requests that have no answer yet."""
        return list(self._in_flight.values())

    @property
    def entries(self) -> list[RequestEntry]:
        """The requests in the order of their answers."""
        return list(self._entries)

    def after(self, seq: int) -> list[RequestEntry]:
        """The requests that were answered after the entry with this `seq`."""
        new = self._seq - seq
        return list(self._entries)[-new:] if new else []

    @property
    def last(self) -> int:
        """The `seq` of the last entry; 0 before the first."""
        return self._seq

    async def wait(self) -> None:
        """Returns at the next entry. Call it in the server's event loop."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def forget(self) -> None:
        """Forgets all requests so far."""
        self._entries.clear()

    def entry(self, request: Request) -> AbstractContextManager[None]:
        """Keeps an entry for the request that is answered within it."""
        return _NOTHING if IN_PROCESS_USER in request.scope else self._entry(request)

    @contextmanager
    def _entry(self, request: Request) -> Iterator[None]:
        now, start = self._clock.now(), perf_counter()
        self._in_flight[id(request)] = request
        try:
            yield
        except StatusError as error:
            status = error.status
            self._keep(request, now, start, status["code"], status.get("reason", ""), status.get("message", ""))
            raise
        except Answered as answered:
            self._keep(request, now, start, answered.response.status)
            raise
        except BaseException:
            self._keep(request, now, start, 0)
            raise
        self._keep(request, now, start, request.response.status if request.response is not None else 0)

    def _keep(
        self, request: Request, now: float, start: float, status: int, reason: str = "", message: str = ""
    ) -> None:
        info = request.info
        del self._in_flight[id(request)]
        self._seq += 1
        self._entries.append(
            RequestEntry(
                now,
                perf_counter() - start,
                request.method,
                request.path,
                info.verb,
                info.group,
                info.version,
                info.resource,
                info.subresource,
                info.namespace,
                info.name,
                request.header(b"content-type") if request.method == "PATCH" else "",
                request.user.name,
                request.header(b"user-agent"),
                status,
                reason,
                "" if info.resource == _SECRET else message[:_LONGEST_MESSAGE],
                request.fault,
                self._seq,
            )
        )
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None
