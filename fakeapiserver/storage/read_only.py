"""The backend of a server with --read-only and a data directory: it refuses every write, also one of the server's own parts."""

from collections.abc import Iterable

from fakeapiserver.storage.interface import Index, ReadOnly, StoredObject
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import Snapshot


class ReadOnlyMemoryStorage(MemoryStorage):
    """A state in memory that stays as it is: whatever would change it raises ReadOnly."""

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        raise ReadOnly

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        raise ReadOnly

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        raise ReadOnly

    async def compact(self, revision: int) -> None:
        raise ReadOnly

    async def restore(self, snapshot: Snapshot, least: int = 0) -> None:
        raise ReadOnly

    async def adopt(self, objects: Iterable[StoredObject], revision: int) -> None:
        raise ReadOnly

    async def revert(self, snapshot: Snapshot) -> None:
        raise ReadOnly
