"""The faults of a server, in the order in which they were added, and what they do to a request."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import cbor, json, protobuf, yaml
from fakeapiserver.apis import protobuf as protobuf_messages
from fakeapiserver.clock import Timers
from fakeapiserver.endpoints.request import Answered, ConnectionReset, Message, Receive, Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.faults import answers, contention, outgoing, rule
from fakeapiserver.faults.bodies import cut, held
from fakeapiserver.faults.lagging import Lag, LaggingStorage
from fakeapiserver.faults.matching import Matcher, Subject
from fakeapiserver.faults.readers import WRITES
from fakeapiserver.faults.rule import Fault
from fakeapiserver.faults.schedule import Turns
from fakeapiserver.faults.unobserved import StateCounter, UnobservingWatcher
from fakeapiserver.faults.watching import FaultyWatcher
from fakeapiserver.storage.interface import Storage, Watcher
from fakeapiserver.transport import webhook as webhook_client
from fakeapiserver.transport.round_trip import Target
from fakeapiserver.transport.webhook import Endpoint

# The request that is handled, for calls of other servers.
_HANDLED: ContextVar[Request | None] = ContextVar("handled", default=None)
HEADER: Final = b"fakeapiserver-fault"
# Upstream: requestTimeoutUpperBound in k8s.io/apiserver/pkg/endpoints/handlers/rest.go.
_LONGEST_WRITE: Final = 34.0


class ActiveFault:
    """A fault that was added, with its counts. `id` is unique for the server."""

    def __init__(self, number: int, fields: Mapping[str, Any], begun: float, dice: random.Random) -> None:
        self.id = number
        self.fields = {name: value for name, value in fields.items() if value is not None}
        self.fault = fault = rule.fault(fields)
        self.matcher = Matcher(fault)
        self.turns = Turns(fault.schedule, begun, dice)
        self.removed = asyncio.Event()
        self.lag: Lag | None = None
        self.revision = 0
        self.watchers: set[Watcher] = set()
        self._states = StateCounter(fault.unobserved)
        self._struck = asyncio.Condition()

    @property
    def hits(self) -> int:
        """The number of requests that were struck."""
        return self.turns.hits

    def __str__(self) -> str:
        return f"fault {self.id} ({self.fault.text})"

    def watcher(self, source: Watcher, clock: Timers, sent: int) -> Watcher:
        """Returns a watcher with what the fault does to the events of `source`, of which so many were sent already."""
        if self.fault.unobserved:
            return UnobservingWatcher(source, self._states, self.fault.states, self.removed, self.watchers)
        return FaultyWatcher(source, self.fault, clock, self.removed, self.watchers, sent)

    async def strike(self) -> None:
        async with self._struck:
            self._struck.notify_all()

    async def wait(self, hits: int, timeout: float) -> None:
        """Returns when so many requests were struck. Raises TimeoutError after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout), self._struck:
                await self._struck.wait_for(lambda: self.hits >= hits)
        except TimeoutError:
            matched = f"{self.turns.seen} requests matched it" if self.turns.seen != 1 else "one request matched it"
            raise TimeoutError(
                f"{self} struck {self.hits} of {hits} requests within {timeout:g} s; {matched}"
            ) from None


class Faults:
    """The faults of a server. A request looks at `active` alone while it is empty."""

    def __init__(
        self,
        clock: Timers,
        storage: Storage,
        scopes: RequestScopes,
        request_timeout: float,
        dice: random.Random,
        changed: Callable[[tuple[ActiveFault, ...]], None],
    ) -> None:
        """`dice` decide for faults without a seed of their own. `changed` is called with the faults whenever one was added or removed."""
        self.active: tuple[ActiveFault, ...] = ()
        self._changed = changed
        self._clock = clock
        self._storage = storage
        self._scopes = scopes
        self._request_timeout = request_timeout
        self._numbers = itertools.count(1)
        self._dice = dice

    def add_all(self, several: Sequence[Mapping[str, Any]]) -> list[ActiveFault]:
        """Adds faults, or none of them if one can't be read. Raises ValueError with one sentence, which names the fault by its number."""
        added: list[ActiveFault] = []
        for number, fields in enumerate(several, 1):
            try:
                added.append(ActiveFault(next(self._numbers), fields, self._clock.monotonic(), self._dice))
            except ValueError as error:
                raise ValueError(f"fault {number}: {error}" if len(several) > 1 else str(error)) from None
        for active in added:
            fault = active.fault
            if fault.stale is not None or fault.lag:
                active.lag = Lag(self._storage, fault.stale or fault.lag)
        self._set((*self.active, *added))
        return added

    async def strike_open_watches(self, added: Sequence[ActiveFault]) -> None:
        """Lets faults of watches strike those that are open already, as if each began now at its last event."""
        for active in added:
            if not active.fault.changes_open_watches:
                continue
            for watch in self._scopes.open_watches:
                if await active.matcher.matches(watch.request, self._nothing) and active.turns.take(
                    self._clock.monotonic()
                ):
                    watch.change_watcher(partial(self._faulty, active))
                    await active.strike()

    @staticmethod
    async def _nothing() -> Subject:
        return Subject(None, None)

    def _faulty(self, active: ActiveFault, watcher: Watcher) -> Watcher:
        if active.lag is not None:
            watcher = active.lag.watcher(watcher)
        return active.watcher(watcher, self._clock, 0)

    def remove(self, added: ActiveFault) -> None:
        """Removes a fault: what hangs goes on, and watches get what was held back. A second call does nothing."""
        self._set(tuple(fault for fault in self.active if fault is not added))
        added.removed.set()
        if added.lag is not None:
            added.lag.release()
        for watcher in added.watchers:
            watcher.wake()

    def _set(self, active: tuple[ActiveFault, ...]) -> None:
        self.active = active
        self._changed(active)

    def clear(self) -> None:
        """Removes all faults."""
        for fault in self.active:
            self.remove(fault)

    def find(self, number: int) -> ActiveFault | None:
        return next((fault for fault in self.active if fault.id == number), None)

    # ------------------------------------------------------------------ requests

    async def before(self, request: Request) -> None:
        """Applies the faults that come before the request is handled. Raises the refusal, or ConnectionReset."""
        _HANDLED.set(request)
        subject: Subject | None = None

        async def read() -> Subject:
            nonlocal subject
            if subject is None:
                subject = await self._subject(request)
            return subject

        for active in self.active:
            if not await active.matcher.matches(request, read) or not active.turns.take(self._clock.monotonic()):
                continue
            self._mark(request, active)
            active.revision = self._storage.revision
            await self._strike(request, active)
            fault = active.fault
            if fault.reset == "before":
                raise ConnectionReset
            scope = self._scope_of(request)
            if fault.holder and scope is not None:
                await contention.take_lease(scope, request, fault.holder)
            if fault.quota and scope is not None:
                raise contention.quota_exceeded(scope, request, fault.quota, await self._name(request, read))
            if fault.status:
                assert isinstance(request.injection, Injection)
                request.injection.name = await self._name(request, read)  # before the handler reads the body
            if fault.status and fault.when == "before":
                raise _marked(request, answers.refusal(request, fault, await self._name(request, read)))

    async def call_webhook(self, endpoint: Endpoint) -> webhook_client.Response | None:
        """Applies the faults of a webhook to a call. Returns the answer in place of the webhook's, or None; raises OSError."""
        chosen = (active for active in self.active if active.matcher.matches_webhook(endpoint.webhook))
        return await self._call(chosen, endpoint.server_name or endpoint.host)

    async def call_api_service(self, target: Target) -> webhook_client.Response | None:
        """Applies the faults of an aggregated API server to a call, as `call_webhook` does."""
        chosen = (active for active in self.active if active.matcher.matches_api_service(target.api_service))
        return await self._call(chosen, target.server_name)

    async def _call(self, chosen: Iterable[ActiveFault], server_name: str) -> webhook_client.Response | None:
        for active in chosen:
            if not active.turns.take(self._clock.monotonic()):
                continue
            if (request := _HANDLED.get()) is not None:
                self._mark(request, active)
            await active.strike()
            seconds = self._dice.uniform(*active.fault.latency) if active.fault.latency is not None else 0.0
            given = await outgoing.answer(active.fault, server_name, self._clock, seconds, active.removed)
            if given is not None:
                return given
        return None

    def _mark(self, request: Request, active: ActiveFault) -> None:
        request.fault = f"{request.fault}, {active}" if request.fault else str(active)
        number = b"%d" % active.id
        for i, (name, value) in enumerate(request.response_headers):
            if name == HEADER:
                request.response_headers[i] = (name, value + b", " + number)
                break
        else:
            request.response_headers.append((HEADER, number))
        if request.injection is None:
            request.injection = Injection(request, self._clock)
        assert isinstance(request.injection, Injection)
        request.injection.faults.append(active)

    async def _strike(self, request: Request, active: ActiveFault) -> None:
        """Lets the request wait, if the fault says so. Those who wait for hits know of it when its time runs."""
        fault = active.fault
        if fault.latency is not None:
            least, most = fault.latency
            over = asyncio.Event()
            timer = self._clock.call_later(least if least == most else self._dice.uniform(least, most), over.set)
            await active.strike()
            try:
                await over.wait()
            finally:
                timer.cancel()
        elif fault.hang and fault.when == "before":
            limit = _LONGEST_WRITE if request.info.verb in WRITES else self._request_timeout
            await _hang(request, active, self._clock, min(limit, self._request_timeout))
        else:
            await active.strike()

    @staticmethod
    async def _name(request: Request, read: Callable[[], Awaitable[Subject]]) -> str:
        """Returns the name of the object; that of a new one stands in its body."""
        if request.info.name or request.info.verb != "create":
            return request.info.name
        new = (await read()).new
        return str(metadata(new).get("name") or "") if new is not None else ""

    def _scope_of(self, request: Request) -> RequestScope | None:
        """Returns what serves the resource; None for a path without one, and for resources of other servers."""
        info = request.info
        scope = self._scopes.lookup(info.group, info.version, info.resource)
        return scope if scope is not None and scope.store is not None else None

    async def _subject(self, request: Request) -> Subject:
        """Reads the objects of a request. A body that can't be decoded is left to its handler."""
        info, scope = request.info, self._scope_of(request)
        old: Object | None = None
        if scope is not None and scope.store is not None and info.name:
            stored = self._storage.get_now(scope.store.key(info.namespace, info.name))
            old = scope.internal(stored.value) if stored is not None else None
        new = None
        if info.verb in ("create", "update", "patch"):
            data = await request.body()
            request.receive = _again(data, request.receive)
            new = _decoded(data, request.header(b"content-type"))
        return Subject(new, old)

    def after(self, request: Request, response: Response) -> Response:
        """Does to the answer of a struck request what comes after it was handled. Raises the refusal, or ConnectionReset."""
        assert isinstance(request.injection, Injection)
        for active in request.injection.faults:
            fault = active.fault
            if fault.reset == "after" and request.info.verb in WRITES:
                raise ConnectionReset
            if fault.status and fault.when == "after":
                raise _marked(request, answers.refusal(request, fault, request.injection.name))
            if fault.hang and fault.when == "after" and request.info.verb in WRITES:
                response = held(response, active.removed, self._clock, min(_LONGEST_WRITE, self._request_timeout))
            if fault.reset == "body" or fault.truncate is not None or fault.rate:
                response = cut(response, fault, self._clock)
        return response


class Injection:
    """The faults of a request while it is handled."""

    def __init__(self, request: Request, clock: Timers) -> None:
        self.faults: list[ActiveFault] = []
        self.name = request.info.name
        self._request = request
        self._clock = clock

    def _active(self) -> Iterator[Fault]:
        return (active.fault for active in self.faults)

    def storage(self, storage: Storage) -> Storage:
        """Returns the storage for a read: the one of a server that lags behind, if the read allows that."""
        for active in self.faults:
            reads = active.fault.stale is not None and _allows_stale(self._request)
            if active.lag is not None and (reads or self._request.info.verb == "watch"):
                return LaggingStorage(storage, active.lag)
        return storage

    @property
    def expires_pages(self) -> bool:
        """Reports whether a list's continue token is refused as too old."""
        return any(fault.expire_continue for fault in self._active())

    @property
    def expires_watch(self) -> bool:
        """Reports whether a watch is refused as too old before its first event."""
        return any(fault.expire == "resume" for fault in self._active())

    @property
    def refuses_watch_list(self) -> bool:
        """Reports whether a watch can't begin with initial events, as on servers without that feature."""
        return any(not fault.watch_list for fault in self._active())

    def initial(self, count: int) -> int:
        """Returns how many of so many initial events a watch sends before it ends."""
        ends = [fault.stop_after for fault in self._active() if fault.stop_after is not None]
        return min([count, *ends])

    def watcher(self, watcher: Watcher, sent: int) -> Watcher:
        """Returns the watcher with what faults do to its events, of which so many were sent already."""
        for active in self.faults:
            if active.fault.watches:
                watcher = active.watcher(watcher, self._clock, sent)
        return watcher


def _marked(request: Request, refusal: StatusError | Answered) -> StatusError | Answered:
    """Names the faults in an answer that has dropped the headers of the filters."""
    assert isinstance(request.injection, Injection)
    if isinstance(refusal, Answered) and not any(name == HEADER for name, _ in request.response_headers):
        numbers = ", ".join(str(active.id) for active in request.injection.faults)
        refusal.response.headers.append((HEADER, numbers.encode()))
    return refusal


def _allows_stale(request: Request) -> bool:
    """Reports whether a server's cache may serve a read: never if the client asks for the newest state."""
    version, verb = request.param("resourceVersion"), request.info.verb
    if verb == "watch":
        return bool(version) or request.param("sendInitialEvents") != "true"
    return bool(version) and request.param("resourceVersionMatch") != "Exact" and not request.param("continue")


async def _hang(request: Request, active: ActiveFault, clock: Timers, limit: float) -> None:
    """Waits until the fault is removed. Raises ConnectionResetError if the client leaves, and 504 after `limit` seconds."""
    data = await request.body()
    receive = request.receive
    request.receive = _again(data, receive)
    over = asyncio.Event()
    timer = clock.call_later(limit, over.set)
    await active.strike()
    waits = [asyncio.ensure_future(wait) for wait in (active.removed.wait(), over.wait(), _left(receive))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        for wait in waits:
            wait.cancel()
    if over.is_set() and not active.removed.is_set():
        raise answers.timed_out(request)
    if waits[2].done() and not waits[2].cancelled():
        raise ConnectionResetError("the client left while a fault let it wait")


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _again(data: bytes, receive: Receive) -> Receive:
    """Returns a `receive` that gives a body that was read already, then what follows."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": data, "more_body": False}

    return replay


def _decoded(data: bytes, content_type: str) -> Object | None:
    """Returns a body as JSON data if it is an object in one of the server's formats; else None."""
    try:
        if "protobuf" in content_type:
            return protobuf.decode(data, protobuf_messages.message_finder(), protobuf_messages.decoder())
        if "cbor" in content_type:
            return cbor.decode_map(data)
        document = yaml.decode(data) if "yaml" in content_type else json.decode(data)
    except (ValueError, msgspec.DecodeError, StatusError):
        return None
    return document if isinstance(document, dict) else None
