"""The etcd backend: writes are transactions, reads and watches come from a copy.

    client = Client.of(["http://127.0.0.1:2379"])
    storage = await EtcdStorage.opened(client, values)

A write is a compare-and-swap on the key's mod_revision, and returns when the copy has it, so that a server reads what it has written.
A read without a revision asks etcd for its newest one (a linearizable read of one key) and waits until the copy has that. Any number of
servers may use the same etcd.

Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go, pkg/storage/cacher.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, Self

from msgspec.structs import replace

from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.storage.etcd.client import Client, prefix_end
from fakeapiserver.storage.etcd.errors import EtcdError, FutureRevision, Refused, RevisionCompacted, TooLarge
from fakeapiserver.storage.etcd.leases import Leases
from fakeapiserver.storage.etcd.messages import (
    EQUAL,
    MOD,
    Compare,
    DeleteRangeRequest,
    KeyValue,
    PutRequest,
    RangeRequest,
    RequestOp,
    TxnRequest,
    TxnResponse,
)
from fakeapiserver.storage.etcd.values import Decoded, Values
from fakeapiserver.storage.etcd.versions import can_trust_progress
from fakeapiserver.storage.etcd.watch_cache import TIMEOUT, WatchCache
from fakeapiserver.storage.interface import (
    EVERYTHING,
    Compacted,
    Index,
    KeyExists,
    KeyNotFound,
    ListQuery,
    ListResult,
    RequestTooLarge,
    ResourceVersionConflict,
    ResourceVersionTooLarge,
    StorageError,
    StoredObject,
)
from fakeapiserver.storage.keys import ROOT
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import MVCC, Snapshot, page, removal
from fakeapiserver.storage.versioner import stamp, unstamped

# Seconds within which etcd has to respond at the start.
_OPEN_TIMEOUT: Final = 10.0
# A key that nothing has: a read of it shows etcd's newest revision.
_NO_KEY: Final = b"\0"


class EtcdStorage(MemoryStorage):
    """Implements storage.interface.Storage, for one event loop. `timeout`: the seconds for which a read waits for its revision.

    What needs no waiting is inherited: it is read from the copy. A state of the past comes back by writes, with new revisions.
    """

    def __init__(
        self, client: Client, values: Values, prefix: str = ROOT, chance: Chance = UNSEEDED, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(MVCC(), chance)
        self._client = client
        self._values = values
        self._timeout = timeout
        self._cache = WatchCache(client, values, self._mvcc, self._hub, prefix)
        self._leases = Leases(client, time.monotonic)

    @classmethod
    async def opened(cls, client: Client, values: Values, prefix: str = ROOT, timeout: float = TIMEOUT) -> Self:
        """A storage that has read everything and follows etcd. Raises EtcdError."""
        storage = cls(client, values, prefix, timeout=timeout)
        await storage.open()
        return storage

    async def open(self) -> None:
        """Reads everything, and follows etcd from then on. Raises EtcdError."""
        self._cache.trusts_progress = can_trust_progress((await self._client.status(_OPEN_TIMEOUT)).version)
        await self._cache.open()
        self._client.is_patient = True

    # ------------------------------------------------------------------ writes

    async def create(self, key: str, value: bytes, offset: int, index: Index) -> StoredObject:
        response = await self._put(key, 0, Decoded(value, offset, index))
        if not response.succeeded:
            raise await self._refused(key, response, KeyExists(key))
        revision = response.header.revision
        stored = StoredObject(key, stamp(value, offset, revision), revision, revision, index, offset)
        return self._copied(key, revision) or stored

    async def update(
        self, key: str, value: bytes, offset: int, index: Index, *, expected_revision: int
    ) -> StoredObject:
        previous = self._mvcc.get(key)
        response = await self._put(key, expected_revision, Decoded(value, offset, index))
        if not response.succeeded:
            raise await self._refused(key, response)
        revision = response.header.revision
        created = expected_revision if previous is None else previous.create_revision
        stored = StoredObject(key, stamp(value, offset, revision), revision, created, index, offset)
        return self._copied(key, revision) or stored

    async def delete(self, key: str, *, expected_revision: int | None = None) -> StoredObject:
        name = self._cache.key_in_etcd(key)
        last = self._mvcc.get(key)
        if last is None or last.mod_revision != (expected_revision or last.mod_revision):
            last = await self.get(key)  # the copy is behind
        while True:
            if last is None:
                raise KeyNotFound(key)
            if expected_revision is not None and last.mod_revision != expected_revision:
                raise ResourceVersionConflict(last)
            removing = RequestOp(request_delete_range=DeleteRangeRequest(name))
            with self._cache.expected(key, b"", None):
                response = await self._swap(name, last.mod_revision, removing)
                if response.succeeded:
                    await self._reached(response.header.revision)
            if response.succeeded:
                tombstone = removal(last, response.header.revision).tombstone
                assert tombstone is not None
                return tombstone
            error = await self._refused(key, response)
            if expected_revision is not None or not isinstance(error, ResourceVersionConflict):
                raise error
            last = error.current

    async def _put(self, key: str, expected: int, decoded: Decoded) -> TxnResponse:
        """Writes the key if it is at that revision, and waits until the copy has the write."""
        data = self._values.encode(key, decoded.value, decoded.index)
        seconds = self._values.seconds(key)
        lease = await self._leases.lease(seconds) if seconds else 0
        name = self._cache.key_in_etcd(key)
        with self._cache.expected(key, data, decoded):
            try:
                response = await self._swap(name, expected, RequestOp(request_put=PutRequest(name, data, lease)))
            except TooLarge as error:
                raise RequestTooLarge(error.original) from None
            if response.succeeded:
                await self._reached(response.header.revision)
        return response

    async def _swap(self, name: bytes, expected: int, operation: RequestOp) -> TxnResponse:
        """Does the operation if the key is at that revision, and reads the key otherwise."""
        is_expected = Compare(EQUAL, MOD, name, mod_revision=expected)
        reading = RequestOp(request_range=RangeRequest(name))
        return await self._client.txn(TxnRequest((is_expected,), (operation,), (reading,)))

    async def _refused(self, key: str, response: TxnResponse, exists: KeyExists | None = None) -> StorageError:
        """The error of a write that found the key at another revision, once the copy has that, so that the caller can read it."""
        current = response.responses[0].response_range
        if current is None or not current.kvs:
            await self._reached(response.header.revision)
            return KeyNotFound(key)
        (kv,) = current.kvs
        await self._reached(kv.mod_revision)
        stored = None if exists else self._cache.stored(kv)
        if stored is not None:
            return ResourceVersionConflict(stored)
        place = self._cache.key_in_etcd(key).decode()
        return exists or Refused(f"the object at {place} in etcd can't be read, so it isn't overwritten")

    async def _reached(self, revision: int) -> None:
        """Waits until the copy has the revision, but not forever: what is written is written."""
        with suppress(ResourceVersionTooLarge):
            await self._cache.reached(revision, self._timeout)

    def _copied(self, key: str, revision: int) -> StoredObject | None:
        """The object in the copy, if it is at that revision still."""
        stored = self._mvcc.get(key)
        return stored if stored is not None and stored.mod_revision == revision else None

    # ------------------------------------------------------------------- reads

    async def get(self, key: str, *, minimum_revision: int | None = None) -> StoredObject | None:
        if minimum_revision is not None and await self._has(minimum_revision):
            if (known := self._mvcc.get(key)) is None:
                self._cache.check_readable(key)
            return known
        kv = await self._key_value(key, minimum_revision or 0)
        return None if kv is None else self._cache.read(kv)

    async def get_for_update(self, key: str, *, newest: bool = False) -> StoredObject | None:
        known = self._mvcc.get(key)
        if known is not None and not newest and not self._values.can_be_stale(key):
            return known  # as upstream's GuaranteedUpdate starts from the watch cache's object
        kv = await self._key_value(key)
        stored = None if kv is None else self._cache.read(kv)
        if kv is None or stored is None or not self._values.is_stale(key, kv.value):
            return stored
        return replace(stored, is_stale=True)

    async def is_newest(self, stored: StoredObject) -> bool:
        response = await self._client.range(RangeRequest(self._cache.key_in_etcd(stored.key), keys_only=True))
        return any(kv.mod_revision == stored.mod_revision for kv in response.kvs)

    async def _key_value(self, key: str, minimum_revision: int = 0) -> KeyValue | None:
        """The key as etcd has it, once the copy has it, too. Raises ResourceVersionTooLarge."""
        response = await self._client.range(RangeRequest(self._cache.key_in_etcd(key)))
        if minimum_revision > response.header.revision:
            raise ResourceVersionTooLarge(response.header.revision)
        if not response.kvs:
            return None
        (kv,) = response.kvs
        await self._reached(kv.mod_revision)
        return kv

    async def list(self, prefix: str, query: ListQuery = EVERYTHING) -> ListResult:
        minimum = query.minimum_revision
        if not query.revision and minimum is not None and await self._has(minimum):
            self._cache.check_readable(prefix, query.start)
            return await self._range(prefix, query)
        if not self._cache.trusts_progress and not 0 < query.revision <= self.revision:
            return await self._listed(prefix, query)
        try:
            await self._wait_for(query.revision or await self._newest())
        except ResourceVersionTooLarge:
            if query.revision:
                raise
            return await self._listed(prefix, query)
        self._cache.check_readable(prefix, query.start)
        try:
            return await self._range(prefix, query)
        except Compacted:
            return await self._listed(prefix, query)

    async def _has(self, minimum: int) -> bool:
        """Reports whether the copy is as new as that, once it has been waited for. Raises ResourceVersionTooLarge."""
        if minimum <= self.revision:
            return True
        if self._cache.trusts_progress:
            await self._wait_for(minimum)
        return self._cache.trusts_progress

    async def _newest(self) -> int:
        """etcd's newest revision."""
        return (await self._client.range(RangeRequest(_NO_KEY))).header.revision

    async def _wait_for(self, revision: int) -> None:
        """Waits until the copy has the revision. Raises ResourceVersionTooLarge if it has not in time, or not in sight."""
        if revision > self.revision:
            newest = await self._newest()
            if revision > newest:
                raise ResourceVersionTooLarge(newest)
            await self._cache.reached(revision, self._timeout)

    async def catch_up(self) -> None:
        if self._cache.trusts_progress:
            await self._reached(await self._newest())

    async def _listed(self, prefix: str, query: ListQuery) -> ListResult:
        """The list as etcd has it, for revisions that the copy doesn't have. Raises Compacted, ResourceVersionTooLarge."""
        start, end = self._cache.key_in_etcd(max(prefix, query.start)), prefix_end(self._cache.key_in_etcd(prefix))
        try:
            response = await self._client.range(RangeRequest(start, end, revision=query.revision))
        except RevisionCompacted:
            raise Compacted(self._mvcc.compacted) from None
        except FutureRevision:
            raise ResourceVersionTooLarge(await self._newest()) from None
        if (query.minimum_revision or 0) > response.header.revision:
            raise ResourceVersionTooLarge(response.header.revision)
        objects = {stored.key: stored for stored in map(self._cache.read, response.kvs) if stored is not None}
        return page([*objects], objects, query.revision or response.header.revision, query)

    # ------------------------------------------------------------------- upkeep

    async def compact(self, revision: int) -> None:
        """Forgets the history up to `revision`, here and in etcd. Raises ResourceVersionTooLarge if `revision` doesn't exist yet."""
        if self._cache.trusts_progress:
            await self._wait_for(revision)
        elif revision > (newest := await self._newest()):
            raise ResourceVersionTooLarge(newest)
        with suppress(RevisionCompacted):
            await self._client.compact(revision)
        self.forget(revision)

    def forget(self, revision: int) -> None:
        """Forgets the history of the copy up to `revision`, so that continue tokens and watches expire here as they do in etcd."""
        self._mvcc.compact(min(revision, self.revision))

    async def restore(self, snapshot: Snapshot, least: int = 0) -> None:
        """Brings a state back by writes, and ends open watches, as other backends do. etcd's revision can't be raised to `least`."""
        await self.revert(snapshot)
        self._hub.end_all()

    async def adopt(self, objects: Iterable[StoredObject], revision: int) -> None:
        """Writes objects of another storage; they get revisions of this etcd."""
        for stored in objects:
            await self._bring_back(stored)
        self._hub.end_all()

    async def revert(self, snapshot: Snapshot) -> None:
        """Brings a state back by writes; open watches go on."""
        now, then = self.snapshot().buckets, snapshot.buckets
        for name, objects in now.items():
            for key in objects.keys() - then.get(name, {}).keys():
                with suppress(KeyNotFound):
                    await self.delete(key)
        for objects in then.values():
            for stored in objects.values():
                await self._bring_back(stored)

    async def _bring_back(self, stored: StoredObject) -> None:
        """Writes an object as it was, unless it is like that now."""
        value = unstamped(stored.value, stored.offset)
        while True:
            current = await self.get(stored.key)
            with suppress(ResourceVersionConflict, KeyExists, KeyNotFound):
                if current is None:
                    await self.create(stored.key, value, stored.offset, stored.index)
                elif unstamped(current.value, current.offset) != value:
                    expected = current.mod_revision
                    await self.update(stored.key, value, stored.offset, stored.index, expected_revision=expected)
                return

    async def is_healthy(self, timeout: float) -> bool:
        """Reports whether etcd responds to a read within `timeout` seconds."""
        try:
            await self._client.range(RangeRequest(_NO_KEY), timeout)
        except EtcdError:
            return False
        return True

    async def read_again(self) -> None:
        """Reads everything again if something couldn't be decrypted; watches end then. Raises EtcdError if etcd can't be read."""
        await self._cache.read_again()

    async def differences(self) -> Sequence[str]:
        """The keys below the prefix whose objects in the copy aren't those in etcd, at one revision. For checks."""
        return await self._cache.differences()

    def decode_again(self, prefix: str) -> None:
        """Decodes the objects below a prefix again, for what can be read better now."""
        self._cache.decode_again(prefix)

    async def finish(self) -> None:
        """Ends the watch of etcd and the connections."""
        await self._cache.close()
        await self._client.close()
