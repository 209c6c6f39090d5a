"""Simulations in one event loop: a seed decides when each client sends and goes away; each history is checked, and repeats itself."""

import asyncio
import json
import random
from typing import Any, Final

from msgspec import Struct, field

from conformance.robustness.guarantees.guarantee import Report
from conformance.robustness.guarantees.in_process import Exchange, serving
from fakeapiserver.server.apiserver import APIServer

_PATH: Final = "/api/v1/namespaces/default/configmaps"
_NAMES: Final = ("a", "b", "c", "d")
_WRITERS: Final = 6
_READERS: Final = 2
_WATCHERS: Final = 4
_REQUESTS: Final = 12  # of each writer and reader
# Turns of the event loop between two requests of a client, and after which a client may go away.
_PAUSE: Final = 12
_PATIENCE: Final = 8
_GONE: Final = 0.15  # share of requests
_SETTLED: Final = 300
# Seeds that share a server.
_TOGETHER: Final = 50


class _Change(Struct, frozen=True):
    """value: that of the object's data, None for a deletion."""

    revision: int
    name: str
    value: str | None


class _Write(Struct, frozen=True):
    name: str
    value: str | None
    status: int
    revision: int
    known: int


class _List(Struct, frozen=True):
    """known: the highest revision that any client knew when the request began."""

    revision: int
    known: int
    objects: dict[str, str]


class _Watch(Struct, frozen=True):
    """is_whole: the watch has lasted until every write was answered."""

    start: int
    events: list[_Change]
    is_whole: bool


class _Run(Struct):
    """Everything that the clients of one seed saw. Revisions count from the beginning of the run."""

    start: int
    newest: int = 0
    writes: list[_Write] = field(default_factory=list)
    lists: list[_List] = field(default_factory=list)
    watches: list[_Watch] = field(default_factory=list)
    gone: int = 0

    def saw(self, revision: int) -> None:
        self.newest = max(self.newest, revision)


class _Client:
    def __init__(self, api: APIServer, run: _Run, seed: str) -> None:
        self._api = api
        self._run = run
        self._chance = random.Random(seed)
        self._name = seed
        self._known: dict[str, str] = {}

    async def _turns(self, most: int) -> None:
        for _ in range(self._chance.randrange(most)):
            await asyncio.sleep(0)

    async def _send(self, exchange: Exchange) -> tuple[int, Any]:
        """Returns the status 0 if the client has gone away before the answer."""
        if self._chance.random() >= _GONE:
            return await exchange.run()
        asking = asyncio.create_task(exchange.run())
        await self._turns(_PATIENCE)
        if asking.cancel():
            self._run.gone += 1
        await asyncio.gather(asking, return_exceptions=True)
        return (0, None) if asking.cancelled() else asking.result()

    async def write(self) -> None:
        for number in range(_REQUESTS):
            await self._turns(_PAUSE)
            name, value = self._chance.choice(_NAMES), f"{self._name}-{number}"
            known = self._run.newest
            body: dict[str, Any] = {"metadata": {"name": name}, "data": {"v": value}}
            if name not in self._known:
                exchange = Exchange(self._api, "POST", _PATH, body)
            elif self._chance.random() < 0.25:
                body, value = {"preconditions": {"resourceVersion": self._known[name]}}, ""
                exchange = Exchange(self._api, "DELETE", f"{_PATH}/{name}", body)
            else:
                body["metadata"]["resourceVersion"] = self._known[name]
                exchange = Exchange(self._api, "PUT", f"{_PATH}/{name}", body)
            status, answer = await self._send(exchange)
            revision = 0
            if status in (200, 201) and value:
                self._known[name] = answer["metadata"]["resourceVersion"]
                revision = int(self._known[name]) - self._run.start
                self._run.saw(revision)
            else:
                await self._look(name)
            self._run.writes.append(_Write(name, value or None, status, revision, known))

    async def _look(self, name: str) -> None:
        """Reads the object after a write that was refused, has no answer or has deleted it."""
        status, answer = await Exchange(self._api, "GET", f"{_PATH}/{name}").run()
        if status == 200:
            self._known[name] = answer["metadata"]["resourceVersion"]
        else:
            self._known.pop(name, None)

    async def read(self) -> None:
        for _ in range(_REQUESTS):
            await self._turns(_PAUSE)
            known = self._run.newest
            _, answer = await Exchange(self._api, "GET", _PATH).run()
            revision = int(answer["metadata"]["resourceVersion"]) - self._run.start
            objects = {item["metadata"]["name"]: item["data"]["v"] for item in answer["items"] if "data" in item}
            self._run.lists.append(_List(revision, known, objects))
            self._run.saw(revision)

    async def watch(self, finished: asyncio.Event) -> None:
        """Watches from the newest revision on until everything is over; the client goes away and comes back."""
        while not finished.is_set():
            start = int(self._api.storage.revision)
            exchange = Exchange(self._api, "GET", f"{_PATH}?watch=1&resourceVersion={start}&timeoutSeconds=3600")
            watching = asyncio.create_task(exchange.run())
            for _ in range(self._chance.randrange(20, 200)):
                await asyncio.sleep(0)
            is_whole = self._chance.random() < 0.5
            if is_whole:
                await finished.wait()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            events = [_seen(event, self._run.start) for event in exchange.events]
            self._run.watches.append(_Watch(start - self._run.start, events, is_whole))


def _seen(event: Any, start: int) -> _Change:
    obj = event["object"]
    value = None if event["type"] == "DELETED" else obj["data"]["v"]
    return _Change(int(obj["metadata"]["resourceVersion"]) - start, obj["metadata"]["name"], value)


def simulation(full: bool) -> Report:
    """2,000 seeds in full, 20 for CI, each twice."""
    return asyncio.run(_simulation(2_000 if full else 20))


async def _simulation(seeds: int) -> Report:
    problems, requests, gone, changes = list[str](), 0, 0, 0
    for first in range(0, seeds, _TOGETHER):
        async with serving() as api:
            for seed in range(first, min(first + _TOGETHER, seeds)):
                run, log = await _one(api, seed)
                wrong = _wrong(run, log)
                again, log_again = await _one(api, seed)
                if (run.writes, run.lists, log) != (again.writes, again.lists, log_again):
                    wrong.append("the second run differs from the first")
                problems += [f"seed {seed}: {text}" for text in wrong]
                requests += len(run.writes) + len(run.lists)
                gone += run.gone
                changes += len(log)
    figures = {
        "seeds": f"{seeds:,}",
        "requests": f"{requests:,}",
        "... whose client has gone away": f"{gone:,}",
        "changes": f"{changes:,}",
    }
    return Report(figures, problems)


async def _one(api: APIServer, seed: int) -> tuple[_Run, list[_Change]]:
    await Exchange(api, "DELETE", _PATH).run()
    run, finished = _Run(int(api.storage.revision)), asyncio.Event()
    clients = [_Client(api, run, f"{seed}-{number}") for number in range(_WRITERS + _READERS + _WATCHERS)]
    watching = [asyncio.create_task(client.watch(finished)) for client in clients[_WRITERS + _READERS :]]
    await asyncio.gather(
        *(client.write() for client in clients[:_WRITERS]),
        *(client.read() for client in clients[_WRITERS : _WRITERS + _READERS]),
    )
    for _ in range(_SETTLED):
        await asyncio.sleep(0)
    finished.set()
    await asyncio.gather(*watching)
    return run, [
        _Change(
            change.revision - run.start,
            change.key.rpartition("/")[2],
            None if change.current is None else json.loads(change.current.value)["data"]["v"],
        )
        for change in api.storage.changes_after(run.start)
        if change.key.startswith("/registry/configmaps/default/")
    ]


def _wrong(run: _Run, log: list[_Change]) -> list[str]:
    """Checks everything that the clients saw against the log."""
    wrong, made = list[str](), {change.value: change for change in log if change.value}
    if [change.revision for change in log] != sorted({change.revision for change in log}):
        wrong.append("revisions of the log repeat, or fall")
    for write in run.writes:
        if write.value is None:
            continue
        change = made.get(write.value)
        if write.revision and (change is None or change.revision != write.revision or change.name != write.name):
            wrong.append(f"{write} was answered, and the log has {change}")
        if write.status >= 400 and change is not None:
            wrong.append(f"{write} was refused, and the log has {change}")
        if change is not None and change.revision <= write.known:
            wrong.append(f"{write} began after revision {write.known}, and the log has {change}")
    for listed in run.lists:
        state: dict[str, str] = {}
        for change in log:
            if change.revision > listed.revision:
                break
            if change.value is None:
                del state[change.name]
            else:
                state[change.name] = change.value
        if listed.objects != state or listed.revision < listed.known:
            wrong.append(f"{listed} differs from the state {state}")
    for watch in run.watches:
        expected = [change for change in log if change.revision > watch.start]
        if watch.events != (expected if watch.is_whole else expected[: len(watch.events)]):
            wrong.append(f"{watch} differs from the log: {expected}")
    return wrong
