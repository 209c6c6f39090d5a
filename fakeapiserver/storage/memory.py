"""The default backend: everything in this process, gone with it.

Every write finishes within one turn of the event loop: there is no await between a check and its commit, nor between a
commit and its publication, so no lock is needed and no watcher can miss, repeat or reorder an event.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.storage.interface import (
    EVERYTHING,
    Compacted,
    Index,
    ListQuery,
    ListResult,
    Predicate,
    RequestTooLarge,
    ResourceVersionTooLarge,
    StoredObject,
)
from fakeapiserver.storage.mvcc import MVCC, Change, Snapshot
from fakeapiserver.storage.watch import BufferedWatcher, ChangeObserver, Hub

# etcd's own limits, and the approximate size of a transaction without its value.
_MAX_REQUEST_BYTES: Final = 3 << 19
_MAX_MESSAGE_BYTES: Final = 2 << 20
_TRANSACTION_BYTES: Final = 32
# Objects that a selector looks at in one turn of the event loop: some milliseconds.
_SELECTED_AT_FIRST: Final = 8
# Objects that are read at once for a page with a selector.
_READ_AT_MOST: Final = 2_000
# Seconds after which others have their turn.
_TURN: Final = 0.005


def check_size(key: str, value: bytes) -> None:
    """Raises RequestTooLarge for an object that a real server can't store: clients have to cope with it."""
    size = len(value) + 2 * len(key) + _TRANSACTION_BYTES
    if size > _MAX_MESSAGE_BYTES:
        sent = f"trying to send message larger than max ({size} vs. {_MAX_MESSAGE_BYTES})"
        raise RequestTooLarge(f"rpc error: code = ResourceExhausted desc = {sent}")
    if size > _MAX_REQUEST_BYTES:
        raise RequestTooLarge("etcdserver: request is too large")


class MemoryStorage:
    """Implements storage.interface.Storage, for one event loop."""

    def __init__(self, mvcc: MVCC | None = None, chance: Chance = UNSEEDED) -> None:
        self._mvcc = mvcc or MVCC()
        self._hub = Hub(self._mvcc, chance)

    @property
    def revision(self) -> int:
        return self._mvcc.revision

    @property
    def watchers(self) -> int:
        """The number of open watches."""
        return len(self._hub)

    @property
    def undelivered(self) -> int:
        """The number of watches that have events and will get them within some milliseconds."""
        return len(self._hub.woken) + len(self._hub.ready)

    def observe(self, observer: ChangeObserver) -> None:
        """Lets `observer` record every change from now on."""
        self._hub.observer = observer

    def count_clients(self, has_clients: Callable[[], bool]) -> None:
        """`has_clients` reports whether clients outside of this process watch; without it they are taken to."""
        self._hub.has_clients = has_clients

    def generation(self, prefix: str) -> int:
        return self._mvcc.generation(prefix)

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        check_size(key, value)
        return self._published(self._mvcc.create(key, value, offset, index))

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        check_size(key, value)
        return self._published(self._mvcc.update(key, value, offset, index, expected_revision))

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        return self._published(self._mvcc.delete(key, expected_revision))

    def _published(self, change: Change) -> StoredObject:
        self._hub.publish(change)
        stored = change.current if change.current is not None else change.tombstone
        assert stored is not None
        return stored

    async def get(self, key: str, *, minimum_revision: int | None = None) -> StoredObject | None:
        if (minimum_revision or 0) > self._mvcc.revision:
            raise ResourceVersionTooLarge(self._mvcc.revision)
        return self._mvcc.get(key)

    async def get_for_update(self, key: str, *, newest: bool = False) -> StoredObject | None:
        return self._mvcc.get(key)

    async def is_newest(self, stored: StoredObject) -> bool:
        return True

    async def list(self, prefix: str, query: ListQuery = EVERYTHING) -> ListResult:
        if (query.minimum_revision or 0) > self._mvcc.revision:
            raise ResourceVersionTooLarge(self._mvcc.revision)
        return await self._range(prefix, query)

    async def _range(self, prefix: str, query: ListQuery) -> ListResult:
        """The list as it is now. Of very many objects, those that are selected are found in several turns of the event loop."""
        predicate = query.predicate
        if query.limit and predicate is not None:
            with suppress(Compacted):
                return await self._page(prefix, query, predicate)
        if query.limit:
            return self._mvcc.range(prefix, query)
        found = None
        if query.labels and not query.revision and not query.start:
            found = await self._labelled(prefix, query.labels)
        if found is None:
            found = await self._everything(prefix, query)
        return found if predicate is None else ListResult(await _selected(found.items, predicate), found.revision)

    async def _page(self, prefix: str, query: ListQuery, predicate: Predicate) -> ListResult:
        """The list of a query with a limit and a predicate, found in several turns of the event loop: the objects as they are in the
        first one. Raises Compacted if the history has forgotten what was written meanwhile."""
        selected, limit, count = list[StoredObject](), query.limit, query.limit
        query = replace(query, revision=query.revision or self._mvcc.revision, predicate=None)
        number: int | None = None
        while True:
            part = self._mvcc.range(prefix, replace(query, limit=count))
            if number is None:
                number = len(part.items) + part.remaining
            selected += await _selected(part.items, predicate)
            if len(selected) >= limit:
                # Whether what follows is selected is not looked at: the next page may be empty, as upstream's.
                more = part.more or part.items[-1] is not selected[limit - 1]
                return ListResult(selected[:limit], part.revision, number - limit, more)
            if not part.more:
                return ListResult(selected, part.revision)
            query = replace(query, start=f"{part.items[-1].key}\0")
            count = min(2 * count, _READ_AT_MOST)

    async def _labelled(self, prefix: str, labels: Mapping[str, str]) -> ListResult | None:
        """Objects among which are all with these labels, if an index helps to find them."""
        for _ in self._mvcc.index_labels(prefix, labels):
            await asyncio.sleep(0)
        labelled = self._mvcc.with_labels(prefix, labels)
        return None if labelled is None else ListResult(labelled, self._mvcc.revision)

    async def _everything(self, prefix: str, query: ListQuery) -> ListResult:
        """The list without a predicate, or what an index has of it. Very many objects are gathered in several turns of the event loop, as
        they are in the first one."""
        items, revision = list[StoredObject](), self._mvcc.revision
        if not query.revision or query.revision == revision:
            with suppress(Compacted):
                for _ in self._mvcc.gather(query, prefix, items):
                    await asyncio.sleep(0)
                return ListResult(items, revision)
        return self._mvcc.range(prefix, replace(query, predicate=None))

    def watch(self, prefix: str, *, revision: int | None = None, predicate: Predicate | None = None) -> BufferedWatcher:
        return self._hub.watch(prefix, revision, predicate)

    async def delivered(self, key: str) -> None:
        await self._hub.delivered(key)

    async def catch_up(self) -> None:
        pass

    def get_now(self, key: str) -> StoredObject | None:
        return self._mvcc.get(key)

    def list_now(self, prefix: str) -> ListResult:
        return self._mvcc.range(prefix)

    def changes_now(self, revision: int) -> Iterator[tuple[StoredObject | None, StoredObject | None]]:
        return ((change.previous, change.current) for change in self._mvcc.changes_after(revision))

    def changes_after(self, revision: int) -> Iterator[Change]:
        """The history after `revision`, in order. Raises Compacted if its beginning is forgotten."""
        return self._mvcc.changes_after(revision)

    @property
    def compacted(self) -> int:
        """The oldest revision that a list can show and a watch can start behind."""
        return self._mvcc.compacted

    async def compact(self, revision: int) -> None:
        """Forgets the history up to `revision`. Raises ResourceVersionTooLarge if `revision` doesn't exist yet."""
        self._mvcc.compact(revision)

    def fork(self) -> MVCC:
        """A copy of the state and its history, for the storage of another server."""
        return self._mvcc.fork()

    def snapshot(self) -> Snapshot:
        return self._mvcc.snapshot()

    async def restore(self, snapshot: Snapshot, least: int = 0) -> None:
        """Brings a state back, at a revision above `least`; open watches end, since no sequence of events leads there."""
        self._mvcc.restore(snapshot, least)
        self._hub.end_all()

    async def adopt(self, objects: Iterable[StoredObject], revision: int) -> None:
        """Stores objects of another storage as they are, `revision` being the newest one there; open watches end."""
        self._mvcc.adopt(objects, revision)
        self._hub.end_all()

    async def revert(self, snapshot: Snapshot) -> None:
        """Brings a state back by writes; open watches go on."""
        for change in self._mvcc.revert(snapshot):
            self._hub.publish(change)

    def lose_watches(self) -> int:
        """Ends every open watch, and returns the number of watches."""
        lost = len(self._hub)
        self._hub.end_all()
        return lost

    def close(self) -> None:
        self._hub.end_all()

    async def written(self) -> None:
        """Returns when no write is on its way. Here none ever is."""

    async def finish(self) -> None:
        """Called after the last write. Here there is nothing to finish."""


async def _selected(items: list[StoredObject], predicate: Predicate) -> list[StoredObject]:
    """Returns the objects that the predicate selects. Others have their turns in between."""
    selected: list[StoredObject] = []
    start, count, clock = 0, _SELECTED_AT_FIRST, asyncio.get_running_loop().time
    began = clock()
    while start < len(items):
        selected += filter(predicate, items[start : start + count])
        start, passed = start + count, clock() - began
        if passed > _TURN:
            await asyncio.sleep(0)
            began = clock()
            count = max(count // 2, 1)
        else:
            count *= 2
    return selected
