"""Bugs of the storage in etcd: its copy, its transactions and its client."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from typing import Any, Final

from msgspec import structs

from conformance.robustness.bug import planted
from fakeapiserver.storage.etcd import leases, watch_cache
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.errors import UnknownOutcome
from fakeapiserver.storage.etcd.messages import (
    EQUAL,
    Compare,
    DeleteRangeRequest,
    RangeRequest,
    RequestOp,
    TxnRequest,
    TxnResponse,
    WatchResponse,
)
from fakeapiserver.storage.etcd.storage import EtcdStorage
from fakeapiserver.storage.etcd.watch_cache import WatchCache
from fakeapiserver.storage.interface import EVERYTHING, ListQuery, ResourceVersionConflict
from fakeapiserver.storage.mvcc import Change, removal

_CREATE: Final = 1  # a target of Compare
_counter: Final = itertools.count(1)


def _now_and_then(every: int) -> bool:
    return next(_counter) % every == 0


# ------------------------------------------------------------------ the copy


@planted("etcd", "a network is cut while much is written", disturbances=6)
def header_taken_for_progress() -> None:
    """The revision in the header of events is taken for theirs: while a watch catches up, it is that of etcd."""
    apply = WatchCache._apply

    def ahead(self: WatchCache, response: WatchResponse) -> None:
        apply(self, response)
        self.mvcc.revision = max(self.mvcc.revision, response.header.revision)
        self._advanced()

    WatchCache._apply = ahead  # type: ignore[method-assign]


@planted("etcd", "a network is cut", disturbances=4)
def events_lost_after_a_reconnect() -> None:
    """The watch starts again at etcd's newest revision, rather than where it was."""
    events = WatchCache._events

    async def later(self: WatchCache) -> AsyncGenerator[None]:
        newest = (await self._client.range(RangeRequest(b"\0"))).header.revision
        self.mvcc.revision = max(self.mvcc.revision, newest)
        async for _ in events(self):
            yield

    WatchCache._events = later  # type: ignore[method-assign]


@planted("etcd", "a network is cut", disturbances=4)
def last_events_repeated_after_a_reconnect() -> None:
    """The watch starts again some revisions before the place where it was, and what it brings is published again."""
    events = WatchCache._events

    async def earlier(self: WatchCache) -> AsyncGenerator[None]:
        self.mvcc.revision = max(self.mvcc.revision - 5, 1)
        async for _ in events(self):
            yield

    WatchCache._events = earlier  # type: ignore[method-assign]


@planted("etcd", "a network is cut", compaction=0.1)
def deletions_missed_by_a_new_list() -> None:
    """An object that was deleted while the watch was away stays in the copy when everything is listed again."""
    relist = WatchCache._relist

    async def keeping(self: WatchCache) -> None:
        before = self.mvcc.snapshot().buckets
        await relist(self)
        for bucket in before.values():
            for stored in bucket.values():
                if self.mvcc.get(stored.key) is None:
                    self.mvcc._bucket(stored.key).put(stored)

    WatchCache._relist = keeping  # type: ignore[method-assign]


@planted("etcd", "a network is cut", compaction=0.1)
def watches_that_survive_a_new_list() -> None:
    """Watches go on when everything was listed again, without what happened in between."""
    relist = WatchCache._relist

    async def quiet(self: WatchCache) -> None:
        end_all, self.hub.end_all = self.hub.end_all, lambda: None  # type: ignore[method-assign]
        try:
            await relist(self)
        finally:
            self.hub.end_all = end_all  # type: ignore[method-assign]

    WatchCache._relist = quiet  # type: ignore[method-assign]


@planted("etcd", "a server is killed", disturbances=5)
def pages_of_several_revisions() -> None:
    """The pages of the first list are read as they are now, and the revision of the last one is taken for that of all."""
    watch_cache._PAGE = 3  # type: ignore[misc]
    read, relist = Client.range, WatchCache._relist
    newest = 0

    async def page(self: Client, request: RangeRequest, timeout: float | None = None) -> Any:
        nonlocal newest
        if request.limit != 3:
            return await read(self, request, timeout)
        await asyncio.sleep(0.02)
        response = await read(self, structs.replace(request, revision=0), timeout)
        newest = response.header.revision
        return response

    async def listed(self: WatchCache) -> None:
        await relist(self)
        self.mvcc.revision = self.mvcc.compacted = newest

    Client.range = page  # type: ignore[method-assign]
    WatchCache._relist = listed  # type: ignore[method-assign]


@planted("etcd")
def wrong_previous_values() -> None:
    """A change is published with an older state than the last one before."""
    change = WatchCache._change
    first: dict[str, Any] = {}

    def older(self: WatchCache, event: Any) -> Change | None:
        made = change(self, event)
        if made is None or made.previous is None:
            return made
        previous = first.setdefault(made.key, made.previous)
        if made.current is None:
            first.pop(made.key)
            return removal(previous, made.revision)
        return structs.replace(made, previous=previous)

    WatchCache._change = older  # type: ignore[method-assign]


@planted("etcd")
def own_writes_published_twice() -> None:
    """A write is published when it is answered, and again when the watch brings it."""
    update = EtcdStorage.update

    async def published(self: EtcdStorage, key: str, *values: Any, **kw: Any) -> Any:
        previous = self._mvcc.get(key)
        stored = await update(self, key, *values, **kw)
        if previous is not None and _now_and_then(10):
            self._hub.publish(Change(stored.mod_revision, key, previous, stored))
        return stored

    EtcdStorage.update = published  # type: ignore[method-assign]


@planted("etcd", "a network is slow")
def answers_taken_for_progress() -> None:
    """The revision of an answered write is taken for that of the copy, which lacks the events up to there."""

    async def reached(self: EtcdStorage, revision: int) -> None:
        self._mvcc.revision = max(self._mvcc.revision, revision)
        await asyncio.sleep(0.05)

    EtcdStorage._reached = reached  # type: ignore[method-assign]
    apply = WatchCache._apply

    def late(self: WatchCache, response: WatchResponse) -> None:
        asyncio.get_running_loop().call_later(0.03, apply, self, response)

    WatchCache._apply = late  # type: ignore[method-assign]


# --------------------------------------------------------------------- reads


@planted("etcd", "a network is slow")
def newest_read_without_etcd() -> None:
    """A list of the newest state is taken from the copy as it is."""

    async def newest(self: EtcdStorage) -> int:
        return self.revision

    EtcdStorage._newest = newest  # type: ignore[method-assign]


@planted("etcd", "a network is slow")
def reads_that_do_not_wait() -> None:
    """etcd is asked for its newest revision, but the copy isn't waited for."""

    async def wait_for(self: EtcdStorage, revision: int) -> None:
        pass

    EtcdStorage._wait_for = wait_for  # type: ignore[method-assign]


@planted("etcd", "a network is slow", disturbances=4)
def not_older_than_anything() -> None:
    """A list that isn't to be older than a revision is taken from the copy as it is, and given that revision."""
    listed = EtcdStorage.list

    async def known(self: EtcdStorage, prefix: str, query: ListQuery = EVERYTHING) -> Any:
        if query.minimum_revision is None or query.revision:
            return await listed(self, prefix, query)
        found = self._mvcc.range(prefix, query)
        return structs.replace(found, revision=max(found.revision, query.minimum_revision))

    EtcdStorage.list = known  # type: ignore[method-assign]


@planted("etcd")
def pages_at_the_newest_revision() -> None:
    """A list goes on at the newest revision, rather than at that of its first page."""
    listed = EtcdStorage.list

    async def newest(self: EtcdStorage, prefix: str, query: ListQuery = EVERYTHING) -> Any:
        if query.start and query.revision:
            found = await listed(self, prefix, structs.replace(query, revision=0))
            return structs.replace(found, revision=query.revision)
        return await listed(self, prefix, query)

    EtcdStorage.list = newest  # type: ignore[method-assign]


@planted("etcd")
def old_revisions_at_the_present() -> None:
    """A list at an exact revision shows the present state."""
    listed = EtcdStorage.list

    async def present(self: EtcdStorage, prefix: str, query: ListQuery = EVERYTHING) -> Any:
        if not query.revision or query.start:
            return await listed(self, prefix, query)
        found = await listed(self, prefix, structs.replace(query, revision=0))
        return structs.replace(found, revision=query.revision)

    EtcdStorage.list = present  # type: ignore[method-assign]


@planted("etcd", "a network is slow", disturbances=4)
def objects_read_from_the_copy() -> None:
    """A read of an object's newest state takes it from the copy."""

    async def known(self: EtcdStorage, key: str, *, minimum_revision: int | None = None) -> Any:
        return self._mvcc.get(key)

    EtcdStorage.get = known  # type: ignore[method-assign]


@planted("etcd", "a follower is parted", members=3, disturbances=6)
def serializable_reads() -> None:
    """A read shows the state of one member of etcd, which may be behind the others after a fail-over."""
    read = Client.range

    async def local(self: Client, request: RangeRequest, timeout: float | None = None) -> Any:
        return await read(self, structs.replace(request, serializable=True), timeout)

    Client.range = local  # type: ignore[method-assign]


# -------------------------------------------------------------------- writes


def _compare(key: bytes, target: int, revision: int) -> Compare:
    if target == _CREATE:
        return Compare(EQUAL, _CREATE, key, create_revision=revision)
    return Compare(EQUAL, target, key, version=revision)


@planted("etcd")
def compare_on_creation() -> None:
    """A write compares the revision at which the object was created, so that it replaces later states."""

    async def swap(self: EtcdStorage, name: bytes, expected: int, operation: RequestOp) -> Any:
        stored = self._mvcc.get(self._cache.key_here(name))
        created = stored.create_revision if stored is not None and expected else expected
        reading = RequestOp(request_range=RangeRequest(name))
        compare = _compare(name, _CREATE, created)
        return await self._client.txn(TxnRequest((compare,), (operation,), (reading,)))

    EtcdStorage._swap = swap  # type: ignore[method-assign]


@planted("etcd")
def creations_without_compare() -> None:
    """A creation replaces whatever is there."""
    swap = EtcdStorage._swap

    async def blind(self: EtcdStorage, name: bytes, expected: int, operation: RequestOp) -> Any:
        if expected:
            return await swap(self, name, expected, operation)
        return await self._client.txn(TxnRequest((), (operation,), ()))

    EtcdStorage._swap = blind  # type: ignore[method-assign]


@planted("etcd")
def deletions_without_compare() -> None:
    """A deletion looks at the object, and deletes whatever is there a little later."""
    swap = EtcdStorage._swap

    async def blind(self: EtcdStorage, name: bytes, expected: int, operation: RequestOp) -> Any:
        if operation.request_delete_range is None:
            return await swap(self, name, expected, operation)
        await asyncio.sleep(0.1)
        return await self._client.txn(TxnRequest((), (RequestOp(request_delete_range=DeleteRangeRequest(name)),), ()))

    EtcdStorage._swap = blind  # type: ignore[method-assign]


@planted("etcd", "a network loses answers", disturbances=8)
def unknown_transactions_repeated() -> None:
    """A transaction without an answer is sent again, and finds its own work."""
    txn = Client.txn

    async def again(self: Client, request: TxnRequest, timeout: float | None = None) -> Any:
        try:
            return await txn(self, request, timeout)
        except UnknownOutcome:
            return await txn(self, request, timeout)

    Client.txn = again  # type: ignore[method-assign]


@planted("etcd", "a network loses answers", disturbances=8)
def unknown_transactions_refused() -> None:
    """A transaction without an answer is reported as a conflict."""
    update = EtcdStorage.update

    async def refused(self: EtcdStorage, key: str, *values: Any, **kw: Any) -> Any:
        try:
            return await update(self, key, *values, **kw)
        except UnknownOutcome:
            stored = self._mvcc.get(key)
            if stored is None:
                raise
            raise ResourceVersionConflict(stored) from None

    EtcdStorage.update = refused  # type: ignore[method-assign]


@planted("etcd", "a network is cut", disturbances=8)
def unknown_transactions_taken_for_done() -> None:
    """A transaction without an answer is reported as done."""
    txn = Client.txn

    async def done(self: Client, request: TxnRequest, timeout: float | None = None) -> Any:
        try:
            return await txn(self, request, timeout)
        except UnknownOutcome:
            header = (await self.range(RangeRequest(b"\0"))).header
            return TxnResponse(header, succeeded=True)

    Client.txn = done  # type: ignore[method-assign]


@planted("etcd")
def writes_based_on_the_copy() -> None:
    """A patch, which starts from the copy's state, replaces the newest one."""
    swap = EtcdStorage._swap

    async def newest(self: EtcdStorage, name: bytes, expected: int, operation: RequestOp) -> Any:
        response = await swap(self, name, expected, operation)
        if response.succeeded or not expected or operation.request_put is None:
            return response
        found = response.responses[0].response_range
        current = found.kvs[0].mod_revision if found is not None and found.kvs else 0
        return await swap(self, name, current, operation) if current else response

    EtcdStorage._swap = newest  # type: ignore[method-assign]


@planted("etcd")
def leases_dropped() -> None:
    """Events are written without a lease, and stay for good."""

    async def without(self: leases.Leases, seconds: int) -> int:
        return 0

    leases.Leases.lease = without  # type: ignore[method-assign]


@planted("etcd", "a server is killed", disturbances=12)
def leases_too_short() -> None:
    """Events have leases of a part of their time."""
    lease = leases.Leases.lease

    async def short(self: leases.Leases, seconds: int) -> int:
        return await lease(self, max(seconds // 10, 1))

    leases.Leases.lease = short  # type: ignore[method-assign]
