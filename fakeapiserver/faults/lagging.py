"""The storage as an API server sees it whose watch cache lags behind (upstream: storage/cacher/cacher.go)."""

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from fakeapiserver.storage.interface import (
    EVERYTHING,
    Event,
    Index,
    ListQuery,
    ListResult,
    Predicate,
    ResourceVersionTooLarge,
    Storage,
    StoredObject,
    Watcher,
)

_EVERYWHERE: Final = "/registry/"


class Lag:
    """The delay of an API server behind `storage`: by so many revisions or, for 0, at the revision of now until it is released."""

    def __init__(self, storage: Storage, behind: int) -> None:
        self._storage = storage
        self._behind = behind
        self._start = storage.revision
        self.released = False
        self.watchers: set[Watcher] = set()

    @property
    def revision(self) -> int:
        """The newest revision that the server knows."""
        if self.released:
            return self._storage.revision
        return self._start if not self._behind else max(1, self._storage.revision - self._behind)

    def stay_at(self, revision: int) -> None:
        """Lets a server that stays where it is stay at an earlier revision, before it has served anything."""
        self._start = revision

    def watcher(self, source: Watcher) -> Watcher:
        """Returns a watcher with the events of `source` that the server knows."""
        # Woken by every write, since each lets older events through.
        pulse = self._storage.watch(_EVERYWHERE, revision=None, predicate=None)
        watcher = _LaggingWatcher(self, source, pulse)
        self.watchers.add(watcher)
        return watcher

    def release(self) -> None:
        """Lets the server catch up."""
        self.released = True
        for watcher in self.watchers:
            watcher.wake()


class LaggingStorage:
    """`storage` as a server sees it that is behind. Writes aren't behind."""

    def __init__(self, storage: Storage, lag: Lag) -> None:
        self._storage = storage
        self._lag = lag

    @property
    def revision(self) -> int:
        """The newest revision that the server knows."""
        return self._lag.revision

    def generation(self, prefix: str) -> int:
        return self._storage.generation(prefix)

    async def get(self, key: str, *, minimum_revision: int | None = None) -> StoredObject | None:
        if (minimum_revision or 0) > self.revision:
            raise ResourceVersionTooLarge(self.revision)
        if self._lag.released:
            return await self._storage.get(key)
        folder = key[: key.rindex("/") + 1]
        found = await self._storage.list(folder, ListQuery(revision=self.revision, start=key, limit=1))
        return next((item for item in found.items if item.key == key), None)

    async def get_for_update(self, key: str, *, newest: bool = False) -> StoredObject | None:
        return await self._storage.get_for_update(key, newest=newest)

    async def is_newest(self, stored: StoredObject) -> bool:
        return await self._storage.is_newest(stored)

    async def list(self, prefix: str, query: ListQuery = EVERYTHING) -> ListResult:
        if query.revision or self._lag.released:
            return await self._storage.list(prefix, query)
        return await self._storage.list(prefix, structs.replace(query, revision=self.revision))

    def watch(self, prefix: str, *, revision: int | None = None, predicate: Predicate | None = None) -> Watcher:
        start = self.revision if revision is None else revision
        source = self._storage.watch(prefix, revision=start, predicate=predicate)
        return source if self._lag.released else self._lag.watcher(source)

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        return await self._storage.create(key, value, offset, index)

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        return await self._storage.update(key, value, offset, index, expected_revision=expected_revision)

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        return await self._storage.delete(key, expected_revision=expected_revision)

    async def delivered(self, key: str) -> None:
        await self._storage.delivered(key)

    async def catch_up(self) -> None:
        await self._storage.catch_up()

    def get_now(self, key: str) -> StoredObject | None:
        return self._storage.get_now(key)

    def list_now(self, prefix: str) -> ListResult:
        return self._storage.list_now(prefix)

    def changes_now(self, revision: int) -> Iterable[tuple[StoredObject | None, StoredObject | None]]:
        return self._storage.changes_now(revision)

    def close(self) -> None:
        self._storage.close()


class _LaggingWatcher:
    """Hands out the events of `source` that the server knows. `pulse` is a watch of everything: it wakes this one."""

    def __init__(self, lag: Lag, source: Watcher, pulse: Watcher) -> None:
        self._lag = lag
        self._source = source
        self._pulse = pulse
        self._held: list[Event] = []

    @property
    def progress(self) -> int:
        return min(self._lag.revision, self._source.progress)

    async def next_batch(self, timeout: float) -> list[Event] | None:
        fresh = await self._source.next_batch(0.0)
        if fresh is None:
            return None
        self._held += fresh
        if (due := self._due()) or timeout <= 0:
            return due
        if await self._pulse.next_batch(timeout) is None:
            return None
        fresh = await self._source.next_batch(0.0)
        if fresh is None:
            return None
        self._held += fresh
        return self._due()

    def _due(self) -> list[Event]:
        known = self._lag.revision
        ready = sum(event.revision <= known for event in self._held)
        due, self._held = self._held[:ready], self._held[ready:]
        return due

    def wake(self) -> None:
        self._pulse.wake()

    def end(self) -> None:
        self._source.end()
        self._pulse.end()

    def close(self) -> None:
        self._lag.watchers.discard(self)
        self._source.close()
        self._pulse.close()
