"""The memory backend over a data directory: a write is in the file before anybody sees it.

A write is decided at once, against what is stored and what is being written; then it waits for the file. While one transaction is being
written, by a thread of its own, further writes gather for the next one. When a transaction is in the file, its changes are committed to
memory and published in one turn of the event loop, in the order of their revisions, and their writers are answered. So reads and watches
never show what could still be lost, and revisions are never used twice.

    decided      [5 create a]  [6 update a]                        b at 4 is what reads show
    in the file  [5 create a, 6 update a]     one transaction
    committed    5, 6: published, answered                         a at 6 is what reads show

Upstream: etcd commits in batches as well (go.etcd.io/etcd/server/v3/storage/backend/batch_tx.go), but applies a write that its log has.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import Context, copy_context
from typing import Final

from msgspec import Struct

from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.storage.file.database import Database, Facts
from fakeapiserver.storage.interface import (
    Index,
    KeyExists,
    KeyNotFound,
    ResourceVersionConflict,
    StoredObject,
    Unwritable,
)
from fakeapiserver.storage.memory import MemoryStorage, check_size
from fakeapiserver.storage.mvcc import MVCC, Change, Snapshot, creation, expected, removal, replacement

log = logging.getLogger(__name__)

# At most so many changes in a transaction.
_BATCH: Final = 1000


def _states(storage: MVCC, since: int) -> set[tuple[str, int, int, bytes]]:
    """Each object and each change after the revision, as key, revision, revision before it (-1 for an object), and value."""
    objects = (stored for bucket in storage.snapshot().buckets.values() for stored in bucket.values())
    states = {(stored.key, stored.mod_revision, -1, stored.value) for stored in objects}
    for change in storage.changes_after(since):
        before = change.previous.mod_revision if change.previous is not None else 0
        value = change.current.value if change.current is not None else b""
        states.add((change.key, change.revision, before, value))
    return states


class _Write(Struct, eq=False):
    """A change that waits for the file, and the context of its request, in which it is published."""

    change: Change
    written: "asyncio.Future[None]"
    context: Context


class FileStorage(MemoryStorage):
    """Implements storage.interface.Storage, for one event loop. `seconds` returns the time of the cluster's clock.

    Until `begin` it is only in memory: what a fresh server stores at its start is written in one transaction then.
    """

    def __init__(
        self, database: Database, seconds: Callable[[], float], mvcc: MVCC | None = None, chance: Chance = UNSEEDED
    ) -> None:
        super().__init__(mvcc, chance)
        self._database = database
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, "fakeapiserver-file")
        self._begun = False
        self._waiting: list[_Write] = []
        # The last change of each key that is decided and not in the file yet.
        self._decided: dict[str, Change] = {}
        self._newest = self._mvcc.revision
        self._writing: asyncio.Task[None] | None = None
        # Set while the whole state is replaced; writes are decided after that.
        self._replacing: asyncio.Future[None] | None = None
        self._broken: Unwritable | None = None

    @property
    def undelivered(self) -> int:
        return super().undelivered + len(self._waiting)

    def resume(self) -> None:
        """From now on a write is in the file before it is answered. The file has the present state."""
        self._newest = self._mvcc.revision
        self._begun = True

    async def begin(self, facts: Facts) -> None:
        """Writes the present state and `facts` to the file, and goes on as `resume` does. Raises Unwritable."""
        state, seconds = self._mvcc.fork(), self._seconds()
        self.resume()
        await self._in_thread(lambda: self._database.replace(state, seconds, facts))

    # ----------------------------------------------------------------- writes

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        if not self._begun:
            return await super().create(key, value, offset, index)
        check_size(key, value)
        await self._ready()
        if self._latest(key) is not None:
            await self._in_file(key)
            raise KeyExists(key)
        return await self._written(creation(key, value, offset, index, self._newest + 1))

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        if not self._begun:
            return await super().update(key, value, offset, index, expected_revision=expected_revision)
        check_size(key, value)
        previous = await self._expected(key, expected_revision)
        return await self._written(replacement(previous, value, offset, index, self._newest + 1))

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        if not self._begun:
            return await super().delete(key, expected_revision=expected_revision)
        last = await self._expected(key, expected_revision)
        return await self._written(removal(last, self._newest + 1))

    async def get_for_update(self, key: str, *, newest: bool = False) -> StoredObject | None:
        """The object as it is in the file. A refusal must not be about a state that is lost in the end."""
        while key in self._decided:
            with suppress(Unwritable):
                await self._in_file(key)
        return self._mvcc.get(key)

    async def _ready(self) -> None:
        """Returns when a write can be decided. Raises Unwritable if none will ever be."""
        while self._replacing is not None:
            await asyncio.shield(self._replacing)
        if self._broken is not None:
            raise Unwritable(str(self._broken), lasting=True)

    def _latest(self, key: str) -> StoredObject | None:
        """The state that the next write of the key meets."""
        decided = self._decided.get(key)
        return self._mvcc.get(key) if decided is None else decided.current

    async def _expected(self, key: str, revision: int | None) -> StoredObject:
        """Raises KeyNotFound and ResourceVersionConflict, once the state that they are about is in the file."""
        await self._ready()
        try:
            return expected(self._latest(key), key, revision)
        except (KeyNotFound, ResourceVersionConflict):
            await self._in_file(key)
            raise

    async def _in_file(self, key: str) -> None:
        """Returns when what was decided about the key is in the file. Raises Unwritable."""
        decided = self._decided.get(key)
        for write in self._waiting:
            if write.change is decided:
                await asyncio.shield(write.written)

    async def _written(self, change: Change) -> StoredObject:
        self._newest = change.revision
        self._decided[change.key] = change
        write = _Write(change, asyncio.get_running_loop().create_future(), copy_context())
        self._waiting.append(write)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        # The write goes on if its client doesn't wait.
        await asyncio.shield(write.written)
        stored = change.current if change.current is not None else change.tombstone
        assert stored is not None
        return stored

    async def _write(self) -> None:
        """Writes what waits, one transaction after the other, until nothing does."""
        try:
            while self._waiting:
                batch = self._waiting[:_BATCH]
                await self._append([write.change for write in batch])
                del self._waiting[: len(batch)]
                self._commit(batch)
        except Unwritable as error:
            log.error("%s", error)
            self._give_up(error)
        except BaseException as error:
            self._give_up(Unwritable(f"{self._database.path} can't be written: {error!r}", lasting=True))
            raise
        finally:
            self._writing = None

    async def _append(self, changes: Sequence[Change]) -> None:
        seconds, compacted = self._seconds(), self._mvcc.compacted
        await self._in_thread(lambda: self._database.append(changes, seconds, compacted))

    def _commit(self, batch: Iterable[_Write]) -> None:
        for write in batch:
            change = self._mvcc.commit(write.change)
            if self._decided.get(change.key) is change:
                del self._decided[change.key]
            write.context.run(self._hub.publish, change)
            if not write.written.done():
                write.written.set_result(None)

    def _give_up(self, error: Unwritable) -> None:
        """Fails everything that isn't in the file: later writes were decided on top of it."""
        failed, self._waiting = self._waiting, []
        self._decided.clear()
        self._newest = self._mvcc.revision
        if error.lasting:
            self._broken = error
        for write in failed:
            if not write.written.done():
                write.written.set_exception(Unwritable(str(error), lasting=error.lasting))
                write.written.exception()  # its client may have gone

    # -------------------------------------------------------- the whole state

    async def compact(self, revision: int) -> None:
        await super().compact(revision)
        if self._begun:
            await self._in_thread(lambda: self._database.compact(revision))

    async def restore(self, snapshot: Snapshot, least: int = 0) -> None:
        async with self._replaced():
            await super().restore(snapshot, least)

    async def adopt(self, objects: Iterable[StoredObject], revision: int) -> None:
        async with self._replaced():
            await super().adopt(objects, revision)

    async def revert(self, snapshot: Snapshot) -> None:
        async with self._replaced():
            await super().revert(snapshot)

    @asynccontextmanager
    async def _replaced(self) -> AsyncIterator[None]:
        """Lets the block change the whole state while no write is on its way, and writes it then."""
        if not self._begun:
            yield
            return
        await self._ready()
        self._replacing = asyncio.get_running_loop().create_future()
        try:
            await self.written()
            yield
            self._newest = self._mvcc.revision
            state, seconds = self._mvcc.fork(), self._seconds()
            await self._in_thread(lambda: self._database.replace(state, seconds))
        finally:
            self._replacing.set_result(None)
            self._replacing = None

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def differences(self) -> Sequence[str]:
        """The keys whose objects or history in memory aren't those in the file. For checks.

        Empty before `begin`, and after an error of the device, since the file's state isn't known then. Raises ValueError if the file is
        damaged.
        """
        await self.written()
        if not self._begun or self._broken is not None:
            return []
        here, there = self._mvcc, self._database.load()
        since = max(here.compacted, there.compacted)
        different = _states(here, since) ^ _states(there, since)
        if here.revision != there.revision:
            return [f"revision {here.revision} in memory, {there.revision} in the file"]
        return sorted({key for key, *_ in different})

    async def written(self) -> None:
        while self._writing is not None:
            await asyncio.wait([self._writing])

    async def finish(self) -> None:
        await self.written()
        if self._begun and self._broken is None:
            with suppress(Unwritable):  # the time is all that is written here
                await self._append(())
        self._thread.shutdown()
