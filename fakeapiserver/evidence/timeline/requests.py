"""The requests in a recording: those of clients, and those of controllers, the scheduler and nodes in this process."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.admission import steps as admission_steps
from fakeapiserver.admission.steps import PluginStep
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.client import causes
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.request import TEST_CONTROL, Audit, Receive, Request, Send, WatchProgress, is_bundled
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.request_log import Record, RequestLogging, Revisions
from fakeapiserver.evidence.timeline import current, records
from fakeapiserver.evidence.timeline.recording import Recording
from fakeapiserver.evidence.timeline.states import named
from fakeapiserver.storage.mvcc import Change

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.meta import Object
    from fakeapiserver.apimachinery.schema.decoders import Empties

Takeover = Callable[[Receive, Send], Awaitable[None]]
# The requests of the page itself.
_OWN: Final = (TEST_CONTROL, "/ui")
_READS: Final = frozenset(("get", "list", "watch"))
_REASON: Final = "authorization.k8s.io/reason"
_PATCH: Final = "patch.webhook.admission.k8s.io/"
# Bytes that the facts of a request take beside its bodies.
_FACTS: Final = 1500
_REFUSED: Final = 400
_NODE: Final = "system:node:"
# Users of the test's own requests, e.g. those of `cluster.apply`, and the user of the page.
_TEST: Final = "fakeapiserver:"
_PAGE: Final = "fakeapiserver:ui"


class Auditing(Protocol):
    """The part of auditing that knows a request from its user on (server/filters/audit/interface.py)."""

    def failure(self, request: Request) -> AbstractAsyncContextManager[None]: ...

    def events(self, request: Request) -> AbstractAsyncContextManager[None]: ...


class Details(Struct, frozen=True):
    """The parts of a request that are kept beside its record. `written`: the first state that it wrote, and the state before that."""

    entry: RequestEntry
    steps: Sequence[PluginStep]
    written: Change | None


class Requests:
    """Records requests: a RequestLogging and an Auditing in front of the server's own, and the Keeper of their records."""

    def __init__(
        self, logging: RequestLogging, auditing: Auditing, storage: Revisions, is_running: Callable[[int], bool]
    ) -> None:
        """`is_running` reports whether the reconcile with a number is in progress."""
        self.storage = storage
        self._logging = logging
        self._auditing = auditing
        self._is_running = is_running
        self._details: dict[int, Details] = {}
        # The bodies of requests to an earlier server, as views.request returns them, in JSON.
        self._earlier: dict[int, bytes] = {}
        self._count = 0
        self.recording: Recording
        # Called with each request, before it is recorded.
        self.before: Callable[[], None] = lambda: None

    @property
    def clock(self) -> Clock:
        return self.recording.clock

    def details(self, number: int) -> Details | None:
        """Returns the parts of a request that are kept; None if it is forgotten."""
        return self._details.get(number)

    def earlier(self, number: int) -> bytes:
        """Returns the bodies of a request to an earlier server; nothing if it is unknown or has no bodies."""
        return self._earlier.get(number, b"")

    def replay(self, record: records.Request, bodies: bytes) -> None:
        """Adds a request to an earlier server, with its bodies if any are known."""
        self._count = max(self._count, record.seq)
        if bodies:
            self._earlier[record.seq] = bodies
        self.recording.add(record, len(bodies))

    def forget(self, request: records.Request) -> None:
        """Forgets what is kept of a request."""
        self._details.pop(request.seq, None)
        self._earlier.pop(request.seq, None)

    # ------------------------------------------------------------ RequestLogging, Auditing

    def entry(self, request: Request) -> AbstractContextManager[None]:
        """See RequestLogging."""
        logged = self._logging.entry(request)
        if request.path.startswith(_OWN):
            return logged
        self._count += 1
        return _HandledRequest(self, request, self._count, logged)

    def failure(self, request: Request) -> AbstractAsyncContextManager[None]:
        """See Auditing."""
        return self._auditing.failure(request)

    def events(self, request: Request) -> AbstractAsyncContextManager[None]:
        """See Auditing."""
        return _Annotated(self._auditing.events(request), request)

    # ------------------------------------------------------------ Keeper

    def begin(self, request: Request) -> None:
        """See Keeper."""

    def keep(self, record: Record, request: Request) -> None:
        """See Keeper."""
        assert isinstance(record, _HandledRequest)
        self.before()
        entry, number, recording = record.entry(), record.number, self.recording
        bundled = is_bundled(request) and not entry.user.startswith(_TEST)
        if bundled and entry.verb in _READS:
            entry = replace(entry, content=None)
        steps = record.steps if entry.content is not None else []
        content = entry.content
        size = _FACTS + (len(content.request) + len(content.response) if content is not None else 0)
        self._details[number] = Details(entry, steps, record.written)
        recording.add(self._record(entry, record, bundled=bundled), size)
        response, watch = request.response, request.watch
        if watch is None or response is None:
            return
        if response.stream is not None:
            response.stream = self._followed(response.stream, number, watch)
        elif response.takeover is not None:
            response.takeover = self._followed_socket(response.takeover, number, watch)
        else:
            return
        watch.on_delivery = partial(self._delivered, number)

    def _record(self, entry: RequestEntry, handled: "_HandledRequest", *, bundled: bool) -> records.Request:
        number = handled.reconcile
        return records.Request(
            seq=handled.number,
            at=round(self.recording.at() - entry.duration, 6),
            time=entry.time,
            ms=round(1000 * entry.duration, 3),
            verb=entry.verb,
            path=entry.path,
            r=named(entry.group, entry.resource) if entry.resource else "",
            sub=entry.subresource,
            ns=entry.namespace,
            name=entry.name,
            query=entry.query,
            user=entry.user,
            agent=entry.user_agent,
            client=short_name(entry.user, entry.user_agent, bundled=bundled),
            bundled=bundled,
            status=entry.status,
            reason=entry.reason,
            message=entry.message,
            fault=entry.fault,
            dry=entry.dry_run,
            rev=entry.revision or handled.revision,
            began=handled.began_at,
            changed=entry.changed,
            why=handled.why,
            admission=[*dict.fromkeys(step.plugin for step in handled.steps if step.changed)],
            reconcile=number if number and self._is_running(number) else 0,
            bytes_in=entry.request_bytes,
            bytes_out=entry.response_bytes,
        )

    def _delivered(self, number: int, revisions: Sequence[int]) -> None:
        self.recording.add(records.Delivery(seq=number, at=self.recording.at(), rev=revisions))

    async def _followed(
        self, stream: AsyncGenerator[bytes, None], number: int, watch: WatchProgress
    ) -> AsyncGenerator[bytes, None]:
        """Passes on a watch's chunks, and records its end."""
        try:
            async with aclosing(stream):
                async for chunk in stream:
                    yield chunk
        finally:
            self._ended(number, watch)

    def _followed_socket(self, takeover: Takeover, number: int, watch: WatchProgress) -> Takeover:
        """The conversation of a watch over a WebSocket, whose end is recorded."""

        async def followed(receive: Receive, send: Send) -> None:
            try:
                await takeover(receive, send)
            finally:
                self._ended(number, watch)

        return followed

    def _ended(self, number: int, watch: WatchProgress) -> None:
        recording = self.recording
        recording.add(records.Watch(seq=number, at=recording.at(), events=watch.events, ended=watch.ended))


class _HandledRequest(Record):
    """A request from its beginning to its answer."""

    __slots__ = ("_logged", "_requests", "_tokens", "is_answered", "number", "reconcile", "steps", "why", "written")

    def __init__(self, requests: Requests, request: Request, number: int, logged: AbstractContextManager[None]) -> None:
        super().__init__(requests, request)
        self.number = number
        self.reconcile = causes.reconcile.get()
        self.is_answered = False
        self.why = ""
        self.steps: list[PluginStep] = []
        self.written: Change | None = None
        self._logged = logged

    @property
    def revision(self) -> int:
        """The revision of the first write of a request that isn't refused; 0 without one."""
        return self.written.revision if self.written is not None and self.status < _REFUSED else 0

    def __enter__(self) -> None:
        self._logged.__enter__()
        self._tokens = current.request.set(self), admission_steps.collected.set(self.steps)
        super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.is_answered = True
        current.request.reset(self._tokens[0])
        admission_steps.collected.reset(self._tokens[1])
        super().__exit__(kind, error, traceback)
        self._logged.__exit__(kind, error, traceback)


class _Annotated:
    """Lets a request's audit annotations be noted while it is handled."""

    def __init__(self, audited: AbstractAsyncContextManager[None], request: Request) -> None:
        self._audited = audited
        self._request = request

    async def __aenter__(self) -> None:
        await self._audited.__aenter__()
        handled = current.request.get()
        if isinstance(handled, _HandledRequest):
            self._request.audit = _Notes(self._request.audit, handled)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._audited.__aexit__(kind, error, traceback)


class _Notes:
    """An Audit that notes the authorizer's reason and the patches of webhooks, and passes everything on to the server's own, if any."""

    def __init__(self, audit: Audit | None, handled: _HandledRequest) -> None:
        self._audit = audit
        self._handled = handled

    def annotate(self, key: str, value: str, *, with_request: bool = False, at_end: bool = False) -> None:
        if key == _REASON:
            self._handled.why = value
        elif key.startswith(_PATCH):
            self._handled.steps.append(_webhook_step(value))
        if self._audit is not None:
            self._audit.annotate(key, value, with_request=with_request, at_end=at_end)

    def log_request_object(self, obj: "Object", empties: "Empties") -> None:
        if self._audit is not None:
            self._audit.log_request_object(obj, empties)

    def log_request_patch(self, data: bytes) -> None:
        if self._audit is not None:
            self._audit.log_request_patch(data)

    def log_response_object(self, encoded: Callable[[], bytes]) -> None:
        if self._audit is not None:
            self._audit.log_response_object(encoded)

    def log_impersonated_user(self, user: UserInfo, constraint: str) -> None:
        if self._audit is not None:
            self._audit.log_impersonated_user(user, constraint)


class _Patch(Struct):
    webhook: str
    patch: msgspec.Raw


def _webhook_step(annotation: str) -> PluginStep:
    """Reads the annotation of a webhook's patch."""
    told = msgspec.json.decode(annotation, type=_Patch)
    return PluginStep(told.webhook, "webhook", patch=bytes(told.patch))


def short_name(user: str, agent: str, *, bundled: bool) -> str:
    """The name under which a client's requests are shown: of a bundled one its account, of others the product that its user agent names."""
    if bundled:
        return "kubelet" if user.startswith(_NODE) else user.rpartition(":")[2]
    if user.startswith(_TEST):
        return "the page" if user == _PAGE else "the test"
    return agent.partition("/")[0].strip() or user.rpartition(":")[2] or "unknown"
