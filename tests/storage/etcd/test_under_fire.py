"""Writers, watchers and compaction while etcd is killed, stopped and started: what was acknowledged is there, once and in order."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

import pytest

from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.errors import EtcdError
from fakeapiserver.storage.etcd.storage import EtcdStorage
from fakeapiserver.storage.interface import (
    Event,
    KeyExists,
    KeyNotFound,
    ResourceVersionConflict,
    ResourceVersionTooLarge,
    StoredObject,
)
from fakeapiserver.testing import storage_suite as suite
from tests.storage.etcd.json_values import JSONValues

WRITERS: Final = 8
KEYS: Final = 3
Result = TypeVar("Result")


async def eventually(attempt: Callable[[], Awaitable[Result]]) -> Result:
    """The result of a read, once etcd responds again."""
    async with asyncio.timeout(60):
        while True:
            with suppress(EtcdError, ResourceVersionTooLarge):
                return await attempt()
            await asyncio.sleep(0.02)


class Traffic:
    """Writers that raise numbers by compare-and-swap. `acknowledged` has the note of each write with its revision."""

    def __init__(self, storages: list[EtcdStorage]) -> None:
        self.storages = storages
        self.acknowledged: dict[str, int] = {}
        self.unknown = 0
        self.over = False

    async def write(self, writer: int) -> None:
        """Writes until it is over: each note names the writer and its number, so that it is written once at most."""
        storage = self.storages[writer % len(self.storages)]
        for number in itertools.count():
            if self.over:
                return
            note = f"{writer}-{number}"
            try:
                stored = await self._one(storage, f"k{(writer + number) % KEYS}", note, deletes=number % 10 == 9)
            except (ResourceVersionConflict, KeyExists, KeyNotFound):
                continue  # another writer was faster, and nothing was written
            except EtcdError:
                self.unknown += 1
                continue
            if stored is not None:
                self.acknowledged[note] = stored.mod_revision

    async def _one(self, storage: EtcdStorage, name: str, note: str, *, deletes: bool) -> StoredObject | None:
        current = await eventually(lambda: storage.get_for_update(f"{suite.PODS}default/{name}"))
        if current is None:
            return await suite.create(storage, name, note)
        if deletes:
            await storage.delete(current.key, expected_revision=current.mod_revision)
            return None
        return await suite.update(storage, current, note)


async def watched(storage: EtcdStorage, traffic: Traffic) -> list[Event]:
    """All events until everything is over and handed out."""
    watcher, events = storage.watch(suite.PODS, revision=storage.revision), list[Event]()
    while True:
        batch = await watcher.next_batch(0.2)
        assert batch is not None, "the watch has ended"
        events += batch
        if traffic.over and not batch:
            return events


async def compacted(client: Client, traffic: Traffic) -> None:
    """Forgets, ten times a second, all that both copies have: else a copy that is behind would be listed again, and its watches end."""
    while not traffic.over:
        await asyncio.sleep(0.1)
        with suppress(EtcdError):
            await client.compact(min(storage.revision for storage in traffic.storages), 1.0)


async def faults(etcd: EtcdProcess, rounds: int) -> None:
    for round_ in range(rounds):
        await asyncio.sleep(0.4)
        if round_ % 3 == 2:
            await asyncio.to_thread(etcd.pause)
            await asyncio.sleep(0.3)
            etcd.resume()
        else:
            await asyncio.to_thread(etcd.kill)
            await asyncio.to_thread(etcd.start)
    await asyncio.sleep(0.4)


@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_or_repeated(etcd: EtcdProcess, rounds: int) -> None:
    async def main() -> None:
        client = Client.of([etcd.url])
        storages = [await EtcdStorage.opened(Client.of([etcd.url], timeout=5), JSONValues()) for _ in range(2)]
        traffic = Traffic(storages)
        watching = [asyncio.ensure_future(watched(storage, traffic)) for storage in storages]
        writing = [asyncio.ensure_future(traffic.write(writer)) for writer in range(WRITERS)]
        compacting = asyncio.ensure_future(compacted(client, traffic))
        await faults(etcd, rounds)
        traffic.over = True
        await asyncio.gather(*writing, compacting)
        first, second = await asyncio.gather(*watching)
        for storage in storages:
            assert await eventually(storage.differences) == []
        judge(traffic, first)
        judge(traffic, second)
        for storage in storages:
            await storage.finish()
        await client.close()

    asyncio.run(main())


def judge(traffic: Traffic, events: list[Event]) -> None:
    """The events are in order and without gaps in what they say of the state before, and each acknowledged write is there once."""
    assert len(traffic.acknowledged) > 20
    revisions = [event.revision for event in events]
    assert revisions == sorted(set(revisions))
    state: dict[str, StoredObject] = {}
    seen: dict[str, int] = {}
    for event in events:
        key, before = event.object.key, state.get(event.object.key)
        assert event.previous == before
        assert event.type == ("DELETED" if event.type == "DELETED" else "MODIFIED" if before else "ADDED")
        if event.type == "DELETED":
            del state[key]
            continue
        note = event.object.index.labels["note"]
        assert note not in seen, f"{note} was written twice"
        seen[note] = event.revision
        state[key] = event.object
    missing = {note: revision for note, revision in traffic.acknowledged.items() if seen.get(note) != revision}
    assert missing == {}
    assert len(seen) <= len(traffic.acknowledged) + traffic.unknown
