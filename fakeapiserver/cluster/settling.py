"""`cluster.settle(with_=…)`: rest includes the operator under test, whose requests and watches are known."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, cast

from fakeapiserver.cluster import operators as operators_module
from fakeapiserver.cluster.operators import AsyncOperator
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.controller_runtime.manager import Manager
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.request_log import RequestLog
from fakeapiserver.server.local import LocalServer
from fakeapiserver.storage.interface import Compacted, StoredObject
from fakeapiserver.storage.keys import resource_of
from fakeapiserver.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from fakeapiserver.endpoints.request import Request

# A client by its user agent, user or connection, or a manager of fakeapiserver.controller_runtime in this process.
Operator = str | Manager
Operators = Operator | Sequence[Operator]

# The method, the path and the status of a request.
_Sent = tuple[str, str, int]

# Leader election renews its lease all the time.
_LEASES: Final = "leases"
# Objects that say nothing about where an operator has arrived.
_OTHERS: Final = frozenset((_LEASES, "events"))
# Times, and the numbers that go up with each write.
_PASSING: Final = re.compile(
    rb"""\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|"resourceVersion":"\d+"|"(observedG|g)eneration":\d+"""
)
# Seconds between two looks at the queues of a manager, which may run in another event loop.
_PAUSE: Final = 0.005


async def settle(
    server: LocalServer, own: Sequence[AsyncOperator], timeout: float, operators: Operators | None, quiet: float
) -> None:
    """Waits until the bundled controllers, the cluster's own operators and these operators are at rest at the same time. Raises NotSettled,
    and ValueError for anything but an operator."""
    api = server.api
    assert api is not None
    clients = _Clients(server, operators) if operators is not None else None
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        await operators_module.settle(server, own, max(0.0, deadline - loop.time()))
        revision = api.storage.revision
        if clients is None:
            return
        await clients.rest(quiet, deadline)
        if not _is_progress(api.storage, revision):
            return


class _Clients:
    """The clients that are waited for."""

    def __init__(self, server: LocalServer, operators: Operators) -> None:
        assert server.api is not None
        self._storage = server.api.storage
        self._log = _log_of(server.api.request_log)
        given: list[Operator] = [operators] if isinstance(operators, str | Manager) else _listed(operators)
        for operator in given:
            if not isinstance(operator, str | Manager) or not operator:
                raise ValueError(
                    f'with_ is the user agent, user or connection of an operator, such as "my-operator*", or a Manager, not {operator!r}'
                )
        self._managers = [operator for operator in given if isinstance(operator, Manager)]
        self._patterns = [each if isinstance(each, str) else each.config.user_agent for each in given]
        entries = self._log.entries
        self._unseen = {
            pattern
            for pattern, operator in zip(self._patterns, given, strict=True)
            if isinstance(operator, str) and not any(_is_from(entry, pattern) for entry in entries)
        }

    async def rest(self, quiet: float, deadline: float) -> None:
        """Returns when these clients have sent no new request for `quiet` seconds, during which nothing was written.

        An operator that polls, or tries the same again and again without changing anything, is at rest. Raises NotSettled."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        seen, revision = self._log.last, self._storage.revision
        known = set[_Sent]()
        while (left := since + quiet - loop.time()) > 0 or (left := _PAUSE * self._is_busy) > 0:
            if loop.time() > deadline:
                raise NotSettled(f"still moving: {'; '.join([*self._moving()][:5]) or 'requests go on'}")
            try:
                async with asyncio.timeout(left):
                    await self._log.wait()
            except TimeoutError:
                pass
            sent = {_sent(entry) for entry in self._log.after(seen) if self._counts(entry)}
            is_progress = _is_progress(self._storage, revision)
            if is_progress or sent - known or self._begins(known):
                since = loop.time()
            known = sent if is_progress else known | sent
            seen, revision = self._log.last, self._storage.revision

    def _begins(self, known: set[_Sent]) -> bool:
        """Reports whether there is something to do for these clients but requests that they have sent before."""
        uris = {uri for _, uri, _ in known}
        return any(request.path not in uris for request in self._in_flight()) or next(self._undone(), "") != ""

    @property
    def _is_busy(self) -> bool:
        return next(self._moving(), "") != ""

    def _moving(self) -> Iterator[str]:
        """Yields what has to be done by these clients, in words."""
        for request in self._in_flight():
            yield f"{request.method} {request.path} is being answered"
        yield from self._undone()

    def _in_flight(self) -> Iterator["Request"]:
        for request in self._log.in_flight:
            if any(_began(request, pattern) for pattern in self._patterns):
                yield request

    def _undone(self) -> Iterator[str]:
        """Yields what has to be done apart from requests in flight."""
        if self._storage.undelivered:
            yield "watches are being sent events"
        for pattern in sorted(self._unseen):
            agents = sorted({entry.user_agent.partition(" ")[0] for entry in self._log.entries})
            yield f"no client {pattern!r} has sent a request yet (others: {', '.join(agents[:5]) or 'none'})"
        for manager in self._managers:
            yield from manager.busy

    def _counts(self, entry: RequestEntry) -> bool:
        """Reports whether the request is one of an operator and no part of leader election."""
        matching = {pattern for pattern in self._patterns if _is_from(entry, pattern)}
        self._unseen -= matching
        return bool(matching) and entry.resource != _LEASES


def _sent(entry: RequestEntry) -> _Sent:
    return entry.method, entry.path, entry.status


def _is_progress(storage: MemoryStorage, revision: int) -> bool:
    """Reports whether anything was written after the revision but leases, events, and objects that differ in times only."""
    if storage.revision == revision:
        return False
    try:
        return any(
            resource_of(change.key) not in _OTHERS and _timeless(change.previous) != _timeless(change.current)
            for change in storage.changes_after(revision)
        )
    except Compacted:
        return True


def _timeless(state: StoredObject | None) -> bytes | None:
    return _PASSING.sub(b"", state.value) if state is not None else None


def _listed(operators: Sequence[Operator]) -> list[Operator]:
    """Returns the operators; anything but a list is treated as one operator."""
    return [*operators] if isinstance(operators, list | tuple) else [cast("Operator", operators)]


def _log_of(log: RequestLog | None) -> RequestLog:
    if log is None:
        raise ValueError("this cluster doesn't keep its requests: start it with kept_requests=1000")
    return log


def _is_from(entry: RequestEntry, pattern: str) -> bool:
    return any(fnmatchcase(text, pattern) for text in (entry.user_agent, entry.user, entry.connection))


def _began(request: "Request", pattern: str) -> bool:
    host, port = request.scope.get("client") or ("", 0)
    texts = (request.header(b"user-agent"), request.user.name, f"{host}:{port}")
    return any(fnmatchcase(text, pattern) for text in texts)
