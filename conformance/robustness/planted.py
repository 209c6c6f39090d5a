"""Bugs that are planted in a server, to show that the checks find them: `python -m conformance.robustness.planted BUG serve …`."""

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from fakeapiserver import cli
from fakeapiserver.storage import memory, mvcc, watch
from fakeapiserver.storage.file import database, file_storage
from fakeapiserver.storage.interface import EVERYTHING, Event, StoredObject
from fakeapiserver.storage.mvcc import MVCC, Change

_counter: Final = itertools.count(1)


def _now_and_then(every: int) -> bool:
    return next(_counter) % every == 0


def lost_transactions() -> None:
    """A transaction isn't written, but answered."""
    append = database.Database.append

    def forgetful(self: database.Database, changes: Iterable[Change], seconds: float, compacted: int) -> None:
        append(self, () if _now_and_then(40) else changes, seconds, compacted)

    database.Database.append = forgetful  # type: ignore[method-assign]


def answered_too_early() -> None:
    """Writes are answered, and written a little later."""
    append = file_storage.FileStorage._append
    waiting: list[Change] = []

    async def early(self: file_storage.FileStorage, changes: Any) -> None:
        waiting.extend(changes)
        if len(waiting) > 20:
            late = [*waiting]
            waiting.clear()
            await append(self, late)

    file_storage.FileStorage._append = early  # type: ignore[method-assign]


def revisions_used_twice() -> None:
    """A start forgets the last revisions, and gives them away again."""
    load = database.Database.load

    def forgetful(self: database.Database) -> MVCC:
        newest = self.execute("SELECT max(revision) FROM revisions").fetchone()[0]
        if newest > 400:
            self._connection.execute("DELETE FROM revisions WHERE revision > ?", (newest - 3,))
        return load(self)

    database.Database.load = forgetful  # type: ignore[method-assign]


def no_compare() -> None:
    """A write replaces whatever is there."""
    expected = mvcc.expected

    def careless(stored: StoredObject | None, key: str, revision: int | None) -> StoredObject:
        return expected(stored, key, None)

    file_storage.expected = careless  # type: ignore[attr-defined]


def refused_but_done() -> None:
    """A write that is too late is refused, and done nevertheless."""
    update = file_storage.FileStorage.update

    async def done(self: file_storage.FileStorage, key: str, value: bytes, offset: int, index: Any, **kw: Any) -> Any:
        current = await self.get_for_update(key)
        if current is not None and _now_and_then(30):
            await update(self, key, value, offset, index, expected_revision=current.mod_revision)
        return await update(self, key, value, offset, index, **kw)

    file_storage.FileStorage.update = done  # type: ignore[method-assign]


def done_twice() -> None:
    """An update takes two revisions."""
    update = file_storage.FileStorage.update

    async def twice(self: file_storage.FileStorage, key: str, value: bytes, offset: int, index: Any, **kw: Any) -> Any:
        stored = await update(self, key, value, offset, index, **kw)
        if not _now_and_then(30):
            return stored
        return await update(self, key, value, offset, index, expected_revision=stored.mod_revision)

    file_storage.FileStorage.update = twice  # type: ignore[method-assign]


def _publishing(change: Callable[[Callable[[Change], None], Change], None]) -> None:
    publish = watch.Hub.publish

    def changed(self: watch.Hub, made: Change) -> None:
        change(lambda each: publish(self, each), made)

    watch.Hub.publish = changed  # type: ignore[method-assign, assignment]


def skipped_events() -> None:
    """A watch doesn't show every event."""
    _publishing(lambda publish, change: None if _now_and_then(30) else publish(change))


def swapped_events() -> None:
    """Two events come in the other order."""
    held: list[Change] = []

    def swapped(publish: Callable[[Change], None], change: Change) -> None:
        if held:
            publish(structs.replace(change))
            publish(held.pop())
        elif _now_and_then(30):
            held.append(change)
        else:
            publish(change)

    _publishing(swapped)
    offer = watch.BufferedWatcher.offer

    def offered(self: watch.BufferedWatcher, event: Event) -> None:
        self._revision = min(self._revision, event.revision - 1)
        offer(self, event)

    watch.BufferedWatcher.offer = offered  # type: ignore[method-assign]


def repeated_events() -> None:
    """A resumed watch shows its last event again."""
    opened = watch.Hub.watch

    def earlier(self: watch.Hub, prefix: str, revision: int | None, predicate: Any) -> watch.BufferedWatcher:
        return opened(self, prefix, revision - 3 if revision else revision, predicate)

    watch.Hub.watch = earlier  # type: ignore[method-assign]


def gaps_after_resuming() -> None:
    """A resumed watch misses its first events."""
    after = watch.Hub.events_after

    def later(self: watch.Hub, prefix: str, revision: int) -> Iterator[Event]:
        return itertools.islice(after(self, prefix, revision), 2, None)

    watch.Hub.events_after = later  # type: ignore[method-assign]


def wrong_types() -> None:
    """Some changes of an object are shown as new objects."""
    unselected = watch.unselected_event

    def mistaken(change: Change) -> Event:
        event = unselected(change)
        return structs.replace(event, type="ADDED") if event.type == "MODIFIED" and _now_and_then(30) else event

    watch.unselected_event = mistaken


def old_lists() -> None:
    """A list shows a state of the past now and then, by the present revision."""
    listed = memory.MemoryStorage.list
    last: dict[str, Any] = {}

    async def old(self: memory.MemoryStorage, prefix: str, query: Any = EVERYTHING) -> Any:
        found = await listed(self, prefix, query)
        before, last[prefix] = last.get(prefix, found), found
        return structs.replace(before, revision=found.revision) if _now_and_then(20) else found

    memory.MemoryStorage.list = old  # type: ignore[method-assign]


def stale_lists() -> None:
    """A list shows a state of the past now and then, by its own revision."""
    listed = memory.MemoryStorage.list
    last: dict[str, Any] = {}

    async def old(self: memory.MemoryStorage, prefix: str, query: Any = EVERYTHING) -> Any:
        found = await listed(self, prefix, query)
        before, last[prefix] = last.get(prefix, found), found
        return before if _now_and_then(20) else found

    memory.MemoryStorage.list = old  # type: ignore[method-assign]


def early_bookmarks() -> None:
    """A bookmark names a revision whose events weren't shown yet."""
    progress = watch.BufferedWatcher.progress.fget  # type: ignore[attr-defined]
    watch.BufferedWatcher.progress = property(lambda self: progress(self) + 40)  # type: ignore[assignment, method-assign]


def lasting_deletions() -> None:
    """A start brings deleted objects back."""
    changes = database.Database._changes

    def kept(self: database.Database, after: int) -> Iterator[tuple[StoredObject, bool]]:
        return ((state, False) for state, _ in changes(self, after))

    database.Database._changes = kept  # type: ignore[method-assign]


BUGS: Final[Mapping[str, Callable[[], None]]] = {
    bug.__name__: bug
    for bug in (
        lost_transactions,
        answered_too_early,
        revisions_used_twice,
        no_compare,
        refused_but_done,
        done_twice,
        skipped_events,
        swapped_events,
        repeated_events,
        gaps_after_resuming,
        wrong_types,
        old_lists,
        stale_lists,
        early_bookmarks,
        lasting_deletions,
    )
}

if __name__ == "__main__":
    BUGS[sys.argv[1]]()
    sys.exit(cli.main(sys.argv[2:]))
