"""The filter that lets requests run: each within its priority level, or within one of two plain limits.

Upstream: k8s.io/apiserver/pkg/server/filters/{priority-and-fairness,maxinflight}.go, pkg/util/flowcontrol/apf_controller.go.
"""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Final, Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery.instruments import Family, Instruments
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Answered, Request
from fakeapiserver.endpoints.request_info import RequestInfo, is_long_running
from fakeapiserver.server.filters.flowcontrol.dropped import DroppedRequests
from fakeapiserver.server.filters.flowcontrol.queueset import UNLIMITED, QueueSet, Queuing, Ticket, flow_hash
from fakeapiserver.server.filters.flowcontrol.rule import Matches, by_precedence, compile_rules
from fakeapiserver.server.options.config import Config

FLOW_SCHEMAS: Final = "flowschemas.flowcontrol.apiserver.k8s.io"
PRIORITY_LEVELS: Final = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
RESOURCES: Final = (FLOW_SCHEMAS, PRIORITY_LEVELS)
# Upstream: pkg/util/flowcontrol/metrics/metrics.go.
_METRIC: Final = "apiserver_flowcontrol"
_FLOW: Final = ("flow_schema", "priority_level")
DISPATCHED: Final = Family(f"{_METRIC}_dispatched_requests_total", "Requests that ran", _FLOW)
REJECTED: Final = Family(
    f"{_METRIC}_rejected_requests_total", "Requests that found no seat in time", (*_FLOW, "reason")
)
NOMINAL_SEATS: Final = Family(
    f"{_METRIC}_nominal_limit_seats", "Seats that a priority level has", ("priority_level",), gauge=True
)
_CATCH_ALL: Final = "catch-all"
_MAX_CLASSIFIED: Final = 4096
_MASTERS: Final = "system:masters"
_READING: Final = frozenset(("get", "list", "watch"))
_EXEMPT: Final = nullcontext()


class Limiter(Protocol):
    async def seat(self, request: Request) -> AbstractContextManager[object]:
        """Returns the seat of a request as soon as it may run; leaving the context gives it back. Raises Answered with 429."""


def too_many_requests(retry_after: int) -> Answered:
    """429 as text: upstream answers without a Status here."""
    response = respond.text(429, "Too many requests, please try again later.\n")
    response.headers.append((b"retry-after", b"%d" % retry_after))
    return Answered(response)


class MaxInFlight:
    """`reading` and `mutating` are how many requests of each sort may run at once; 0 means any number."""

    def __init__(self, reading: int, mutating: int) -> None:
        self._reading = QueueSet(reading) if reading else None
        self._mutating = QueueSet(mutating) if mutating else None

    async def seat(self, request: Request) -> AbstractContextManager[object]:
        seats = self._reading if request.info.verb in _READING else self._mutating
        if seats is None or is_long_running(request.info):
            return _EXEMPT
        if seats.take():
            return seats
        if _MASTERS in request.user.groups:
            return _EXEMPT
        raise too_many_requests(1)


class _Level(Struct):
    """A priority level, and its seats."""

    name: str
    uid: str
    seats: QueueSet


class _Schema(Struct):
    """A flow schema that points to a level. `method` distinguishes flows: ByUser, ByNamespace or empty."""

    name: str
    uid: str
    method: str
    matches: Matches
    level: _Level


class _Flow(Struct, dict=True):
    """The flow of a user's requests with the same attributes: their schema, their level, and the two headers of their responses."""

    schema: str
    level: _Level
    distinguisher: str
    headers: Sequence[tuple[bytes, bytes]]

    @cached_property
    def entropy(self) -> int:
        return flow_hash(self.schema, self.distinguisher)


class _Config(Struct):
    """The stored flow schemas at one generation, in the order of matching, and what has been matched since."""

    generation: int = -1
    revision: int = -1  # nothing has changed up to here
    schemas: list[_Schema] = field(default_factory=list)
    classified: dict[tuple[Any, ...], _Flow] = field(default_factory=dict)


class PriorityAndFairness:
    """`concurrency` seats are shared out among the levels in proportion to their shares; a request waits for `max_wait`
    seconds at most."""

    def __init__(
        self, objects: ObjectReader, clock: Clock, concurrency: int, max_wait: float, instruments: Instruments
    ) -> None:
        self._objects = objects
        self._instruments = instruments
        self._concurrency = concurrency
        self._max_wait = max_wait
        self._config = _Config()
        self._seats: dict[str, QueueSet] = {}
        self._clock = clock
        self._dropped = DroppedRequests(clock)

    async def seat(self, request: Request) -> AbstractContextManager[object]:
        info = request.info
        if info.verb != "watch" and is_long_running(info):
            return _EXEMPT
        flow = self._classify(info, request.user)
        request.response_headers += flow.headers
        seats, now = flow.level.seats, self._clock.now()
        ticket = Ticket(seats, request, flow.schema, flow.distinguisher, now, now)
        seats.tickets[ticket] = None
        if not seats.take():
            await self._wait(ticket, flow)
        seats.dispatched += 1
        self._instruments.count(DISPATCHED, flow.schema, flow.level.name)
        return ticket

    async def _wait(self, ticket: Ticket, flow: _Flow) -> None:
        """Waits until the ticket has a seat. Raises Answered with 429."""
        seats, start = ticket.seats, time.monotonic()
        ticket.started = None
        has_seat = False
        try:
            has_seat = await seats.wait(flow.entropy, self._max_wait, ticket)
        except asyncio.CancelledError:
            seats.cancelled += 1
            raise
        finally:
            if not has_seat:
                del seats.tickets[ticket]
        if has_seat:
            ticket.started = self._clock.now()
            return
        if seats.queuing is not None and time.monotonic() - start >= self._max_wait:
            seats.timed_out += 1
            reason = "time-out"
        else:
            seats.rejected += 1
            reason = "concurrency-limit" if seats.queuing is None else "queue-full"
        self._instruments.count(REJECTED, flow.schema, flow.level.name, reason)
        raise too_many_requests(self._dropped.record(flow.level.name))

    @property
    def levels(self) -> Mapping[str, QueueSet]:
        """The seats of the configured priority levels, by the level's name."""
        self._current()
        return self._seats

    def _current(self) -> _Config:
        """The configuration, read again if it has changed."""
        config = self._config
        revision = self._objects.revision
        if config.revision != revision:
            generation = self._objects.generation(RESOURCES)
            if config.generation != generation:
                config = self._config = self._read(generation)
            config.revision = revision
        return config

    def _classify(self, info: RequestInfo, user: UserInfo) -> _Flow:
        config = self._current()
        where = info.namespace if info.resource_request else info.path
        key = (user.name, user.groups, info.verb, info.group, info.resource, info.subresource, where)
        flow = config.classified.get(key)
        if flow is None:
            if len(config.classified) >= _MAX_CLASSIFIED:
                config.classified.clear()
            flow = config.classified[key] = _flow_of(config, info, user)
        return flow

    def _read(self, generation: int) -> _Config:
        stored = {obj["metadata"]["name"]: obj["spec"] for obj in self._objects.list(PRIORITY_LEVELS)}
        shares = {name: _shares(spec) for name, spec in stored.items()}
        total = max(sum(shares.values()), 1)
        levels: dict[str, _Level] = {}
        for obj in self._objects.list(PRIORITY_LEVELS):
            name, spec = obj["metadata"]["name"], obj["spec"]
            limit = math.ceil(self._concurrency * shares[name] / total)
            self._instruments.set(NOMINAL_SEATS, limit, name)
            seats = self._seats_of(name, UNLIMITED if spec.get("type") == "Exempt" else limit, spec)
            levels[name] = _Level(name, obj["metadata"].get("uid", ""), seats)
        self._seats = {name: level.seats for name, level in levels.items()}
        config = _Config(generation)
        for obj in by_precedence(self._objects.list(FLOW_SCHEMAS)):
            meta, spec = obj["metadata"], obj["spec"]
            level = levels.get((spec.get("priorityLevelConfiguration") or {}).get("name", ""))
            if level is not None:  # else it points nowhere, and counts for nothing
                method = (spec.get("distinguisherMethod") or {}).get("type", "")
                matches = compile_rules(spec.get("rules") or ())
                config.schemas.append(_Schema(meta["name"], meta.get("uid", ""), method, matches, level))
        if not any(schema.name == _CATCH_ALL for schema in config.schemas):
            # upstream uses this schema even if it isn't stored
            level = levels.get(_CATCH_ALL) or _Level(_CATCH_ALL, "", QueueSet(UNLIMITED))
            config.schemas.append(_Schema(_CATCH_ALL, "", "ByUser", lambda *_: True, level))
        return config

    def _seats_of(self, name: str, limit: int, spec: Mapping[str, Any]) -> QueueSet:
        """The level's seats; those that are taken stay so when its configuration changes."""
        response = (spec.get("limited") or {}).get("limitResponse") or {}
        queuing = None
        if response.get("type") == "Queue":
            given = response.get("queuing") or {}
            queuing = Queuing(given.get("queues", 64), given.get("handSize", 8), given.get("queueLengthLimit", 50))
        seats = self._seats.get(name)
        if seats is None:
            return QueueSet(limit, queuing)
        seats.resize(limit, queuing)
        return seats


def _shares(spec: Mapping[str, Any]) -> int:
    level = spec.get("exempt") if spec.get("type") == "Exempt" else spec.get("limited")
    return int((level or {}).get("nominalConcurrencyShares") or 0)


def _flow_of(config: _Config, info: RequestInfo, user: UserInfo) -> _Flow:
    schema = next((schema for schema in config.schemas if schema.matches(info, user)), None)
    if schema is None:
        schema = next(schema for schema in config.schemas if schema.name == _CATCH_ALL)
    headers = (
        (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
        (b"x-kubernetes-pf-prioritylevel-uid", schema.level.uid.encode()),
    )
    distinguisher = {"ByUser": user.name, "ByNamespace": info.namespace}.get(schema.method, "")
    return _Flow(schema.name, schema.level, distinguisher, headers)


def new_limiter(config: Config, objects: ObjectReader, clock: Clock, instruments: Instruments) -> Limiter:
    """Returns the limiter that a configuration asks for."""
    reading, mutating = config.max_requests_inflight, config.max_mutating_requests_inflight
    if not config.enable_priority_and_fairness:
        return MaxInFlight(reading, mutating)
    max_wait = min(config.request_timeout / 4, 60.0)
    return PriorityAndFairness(objects, clock, reading + mutating, max_wait, instruments)
