"""Bugs of the data directory's storage."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import structs

from conformance.robustness.bug import planted
from fakeapiserver.storage import memory, mvcc
from fakeapiserver.storage.file import database, file_storage
from fakeapiserver.storage.interface import EVERYTHING, StoredObject
from fakeapiserver.storage.mvcc import MVCC, Change

_counter: Final = itertools.count(1)


def _now_and_then(every: int) -> bool:
    return next(_counter) % every == 0


@planted("file", "the server is killed")
def lost_transactions() -> None:
    """A transaction isn't written, but answered."""
    append = database.Database.append

    def forgetful(self: database.Database, changes: Iterable[Change], seconds: float, compacted: int) -> None:
        append(self, () if _now_and_then(40) else changes, seconds, compacted)

    database.Database.append = forgetful  # type: ignore[method-assign]


@planted("file", "the server is killed")
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


@planted("file", "the server is killed")
def revisions_used_twice() -> None:
    """A start forgets the last revisions, and gives them away again."""
    load = database.Database.load

    def forgetful(self: database.Database) -> MVCC:
        newest = self.execute("SELECT max(revision) FROM revisions").fetchone()[0]
        if newest > 250:
            self._connection.execute("DELETE FROM revisions WHERE revision > ?", (newest - 3,))
        return load(self)

    database.Database.load = forgetful  # type: ignore[method-assign]


@planted("file", "the server is killed")
def no_compare() -> None:
    """A write replaces whatever is there."""
    expected = mvcc.expected

    def careless(stored: StoredObject | None, key: str, revision: int | None) -> StoredObject:
        return expected(stored, key, None)

    file_storage.expected = careless  # type: ignore[attr-defined]


@planted("file", "the server is killed")
def refused_but_done() -> None:
    """A write that is too late is refused, and done nevertheless."""
    update = file_storage.FileStorage.update

    async def done(self: file_storage.FileStorage, key: str, value: bytes, offset: int, index: Any, **kw: Any) -> Any:
        current = await self.get_for_update(key)
        if current is not None and _now_and_then(30):
            await update(self, key, value, offset, index, expected_revision=current.mod_revision)
        return await update(self, key, value, offset, index, **kw)

    file_storage.FileStorage.update = done  # type: ignore[method-assign]


@planted("file", "the server is killed")
def done_twice() -> None:
    """An update takes two revisions."""
    update = file_storage.FileStorage.update

    async def twice(self: file_storage.FileStorage, key: str, value: bytes, offset: int, index: Any, **kw: Any) -> Any:
        stored = await update(self, key, value, offset, index, **kw)
        if not _now_and_then(30):
            return stored
        return await update(self, key, value, offset, index, expected_revision=stored.mod_revision)

    file_storage.FileStorage.update = twice  # type: ignore[method-assign]


@planted("file", "the server is killed")
def old_lists() -> None:
    """A list shows a state of the past now and then, by the present revision."""
    listed = memory.MemoryStorage.list
    last: dict[str, Any] = {}

    async def old(self: memory.MemoryStorage, prefix: str, query: Any = EVERYTHING) -> Any:
        found = await listed(self, prefix, query)
        before, last[prefix] = last.get(prefix, found), found
        return structs.replace(before, revision=found.revision) if _now_and_then(20) else found

    memory.MemoryStorage.list = old  # type: ignore[method-assign]


@planted("file", "the server is killed")
def stale_lists() -> None:
    """A list shows a state of the past now and then, by its own revision."""
    listed = memory.MemoryStorage.list
    last: dict[str, Any] = {}

    async def old(self: memory.MemoryStorage, prefix: str, query: Any = EVERYTHING) -> Any:
        found = await listed(self, prefix, query)
        before, last[prefix] = last.get(prefix, found), found
        return before if _now_and_then(20) else found

    memory.MemoryStorage.list = old  # type: ignore[method-assign]


@planted("file", "the server is killed")
def lasting_deletions() -> None:
    """A start brings deleted objects back."""
    changes = database.Database._changes

    def kept(self: database.Database, after: int) -> Iterator[tuple[StoredObject, bool]]:
        return ((state, False) for state, _ in changes(self, after))

    database.Database._changes = kept  # type: ignore[method-assign]
