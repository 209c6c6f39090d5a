"""The etcd backend: the suite that any backend must pass, and what is its own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.storage.etcd.client import Client, prefix_end
from fakeapiserver.storage.etcd.compactor import Compactor
from fakeapiserver.storage.etcd.errors import EtcdError, Refused, RevisionCompacted, UnknownOutcome
from fakeapiserver.storage.etcd.messages import (
    PutRequest,
    RangeRequest,
    RangeResponse,
    RequestOp,
    TxnRequest,
    WatchResponse,
)
from fakeapiserver.storage.etcd.storage import EtcdStorage
from fakeapiserver.storage.etcd.watch_stream import WatchStream
from fakeapiserver.storage.interface import (
    Compacted,
    Index,
    KeyExists,
    ListQuery,
    RequestTooLarge,
    ResourceVersionConflict,
    ResourceVersionTooLarge,
    StoredObject,
)
from fakeapiserver.testing import storage_suite as suite
from tests.storage.etcd.json_values import JSONValues


@pytest.mark.parametrize("check", suite.checks(), ids=lambda check: check.__name__)
def test_etcd(check: suite.Check, shared_etcd: EtcdProcess, prefix: str) -> None:
    storages: list[EtcdStorage] = []

    async def new() -> EtcdStorage:
        client = Client.of([shared_etcd.url])
        storages.append(await EtcdStorage.opened(client, JSONValues(), prefix, timeout=0.3))
        return storages[-1]

    async def run() -> None:
        try:
            await check(new)
        finally:
            for storage in storages:
                await storage.finish()

    asyncio.run(run())


@pytest.mark.parametrize("check", suite.checks(), ids=lambda check: check.__name__)
def test_etcd_without_trust_in_progress(
    check: suite.Check, shared_etcd: EtcdProcess, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An etcd whose notifications on demand run ahead of its events is never asked for one."""

    async def refuse(stream: WatchStream) -> None:
        pytest.fail("progress was requested")

    monkeypatch.setattr("fakeapiserver.storage.etcd.storage.can_trust_progress", lambda version: False)
    monkeypatch.setattr(WatchStream, "request_progress", refuse)
    test_etcd(check, shared_etcd, prefix)


class Servers:
    """Storages of several API servers on one etcd, which are finished in the end."""

    def __init__(self, url: str, prefix: str) -> None:
        self.url = url
        self.prefix = prefix
        self.values = JSONValues()
        self._storages: list[EtcdStorage] = []

    async def new(self, prefix: str = "", values: JSONValues | None = None) -> EtcdStorage:
        client = Client.of([self.url], timeout=5)
        storage = await EtcdStorage.opened(client, values or self.values, prefix or self.prefix, timeout=1)
        self._storages.append(storage)
        return storage

    async def put(self, key: str, value: bytes) -> int:
        """Writes a key as another program does, and returns the revision."""
        client = Client.of([self.url])
        try:
            put = RequestOp(request_put=PutRequest(key.encode(), value))
            return (await client.txn(TxnRequest(success=(put,)))).header.revision
        finally:
            await client.close()

    async def finish(self) -> None:
        for storage in self._storages:
            await storage.finish()


def run(url: str, prefix: str, scenario: Callable[[Servers], Awaitable[None]]) -> None:
    async def main() -> None:
        servers = Servers(url, prefix)
        try:
            await scenario(servers)
        finally:
            assert [each for storage in servers._storages for each in await differences(storage)] == []
            await servers.finish()

    asyncio.run(main())


async def differences(storage: EtcdStorage) -> Sequence[str]:
    """The keys in which a copy differs from etcd, once etcd responds."""
    async with asyncio.timeout(30):
        while True:
            with suppress(EtcdError, ResourceVersionTooLarge):
                return await storage.differences()
            await asyncio.sleep(0.05)


def test_servers_see_what_the_others_write(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(servers: Servers) -> None:
        first, second = await servers.new(), await servers.new()
        watcher = second.watch(suite.PODS)
        obj = await suite.create(first, "a", "1")
        assert await second.get(obj.key) == obj
        changed = await suite.update(second, obj, "2")
        assert suite.names(await first.list(suite.PODS)) == ["a"]
        assert await first.get(obj.key, minimum_revision=changed.mod_revision) == changed
        with pytest.raises(ResourceVersionConflict) as conflict:
            await suite.update(first, obj, "3")
        assert conflict.value.current == changed
        gone = await first.delete(obj.key)
        assert gone.value == changed.value.replace(b"%d" % changed.mod_revision, b"%d" % gone.mod_revision)
        assert await second.get(obj.key) is None
        assert [event.type for event in await suite.drain(watcher)] == ["ADDED", "MODIFIED", "DELETED"]

    run(shared_etcd.url, prefix, scenario)


def test_what_a_server_writes_it_needs_not_decode(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(servers: Servers) -> None:
        storage = await servers.new()
        obj = await suite.create(storage, "a", "1")
        await suite.update(storage, obj, "2")
        assert servers.values.decoded == 0
        await servers.new()
        assert servers.values.decoded == 1

    run(shared_etcd.url, prefix, scenario)


def test_racing_writes_of_two_servers_lose_nothing(shared_etcd: EtcdProcess, prefix: str) -> None:
    """Each of 8 clients raises a number 10 times, by compare-and-swap."""

    async def scenario(servers: Servers) -> None:
        storages = [await servers.new(), await servers.new()]
        key = (await suite.create(storages[0], "a", "0")).key

        async def count(storage: EtcdStorage) -> None:
            for _ in range(10):
                while True:
                    current = await storage.get_for_update(key)
                    assert current is not None
                    with suppress(ResourceVersionConflict):
                        await suite.update(storage, current, str(int(current.index.labels["note"]) + 1))
                        break

        await asyncio.gather(*(count(storages[i % 2]) for i in range(8)))
        stored = await storages[0].get(key)
        assert stored is not None
        assert stored.index.labels["note"] == "80"

    run(shared_etcd.url, prefix, scenario)


def test_a_list_waits_for_progress_if_others_write_other_keys(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(servers: Servers) -> None:
        storage = await servers.new()
        await suite.create(storage, "a")
        elsewhere = await servers.put(f"/elsewhere{prefix}", b"")
        listed = await storage.list(suite.PODS)
        assert (suite.names(listed), listed.revision >= elsewhere) == (["a"], True)

    run(shared_etcd.url, prefix, scenario)


def test_lists_of_revisions_before_the_start_of_a_server(etcd: EtcdProcess) -> None:
    async def scenario(servers: Servers) -> None:
        first = await servers.new()
        old = await suite.create(first, "a", "old")
        then = first.revision
        await suite.update(first, old, "new")
        for name in "bcd":
            await suite.create(first, name)
        second = await servers.new()
        listed = await second.list(suite.PODS, ListQuery(revision=then))
        assert (listed.items, listed.revision) == ([old], then)
        paged = await second.list(suite.PODS, ListQuery(revision=then + 2, limit=1))
        assert (suite.names(paged), paged.remaining, paged.more) == (["a"], 1, True)
        with pytest.raises(Compacted):
            second.watch(suite.PODS, revision=then)
        await first.compact(first.revision)
        with pytest.raises(Compacted):
            await second.list(suite.PODS, ListQuery(revision=then))

    run(etcd.url, "/registry", scenario)


def test_objects_that_cannot_be_read_are_left_out_and_kept(
    shared_etcd: EtcdProcess, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(servers: Servers) -> None:
        storage = await servers.new()
        key = f"{prefix}pods/default/broken"
        await servers.put(key, b"\xff")
        await suite.create(storage, "a")
        assert suite.names(await storage.list(suite.PODS)) == ["a"]
        with pytest.raises(KeyExists):
            await suite.create(storage, "broken")
        ghost = StoredObject(f"{suite.PODS}default/broken", b"", 1, 1, Index(), 0)
        with pytest.raises(Refused, match=f"{key} in etcd can't be read, so it isn't overwritten"):
            await suite.update(storage, ghost, "x")
        assert f"the object at {key} in etcd is left out: it " in caplog.text

    run(shared_etcd.url, prefix, scenario)


def test_a_restarted_etcd_ends_no_watch(etcd: EtcdProcess) -> None:
    async def scenario(servers: Servers) -> None:
        storage = await servers.new()
        watcher = storage.watch(suite.PODS)
        await suite.create(storage, "a")
        await asyncio.to_thread(etcd.kill)
        with pytest.raises(EtcdError):
            await suite.create(storage, "b")
        await asyncio.to_thread(etcd.start)
        assert await differences(storage) == []
        await suite.create(storage, "c")
        events = await suite.drain(watcher)
        assert [event.object.key.rpartition("/")[2] for event in events] == ["a", "c"]

    run(etcd.url, "/registry", scenario)


def test_a_watch_that_etcd_has_compacted_is_followed_by_a_list(etcd: EtcdProcess) -> None:
    """The server is cut off while others write, and etcd forgets the changes: watches of clients end, as on a real server."""

    async def scenario(servers: Servers) -> None:
        storage = await servers.new()
        obj = await suite.create(storage, "a", "1")
        watcher = storage.watch(suite.PODS)
        cache = storage._cache
        assert cache._task is not None
        cache._task.cancel()
        with suppress(asyncio.CancelledError):
            await cache._task
        other = await servers.new()
        await suite.update(other, obj, "2")
        await suite.create(other, "b")
        await other.compact(other.revision)
        cache._task = asyncio.ensure_future(cache._follow())
        assert suite.names(await storage.list(suite.PODS)) == ["a", "b"]
        assert await watcher.next_batch(5) is None
        with pytest.raises(Compacted):
            storage.watch(suite.PODS, revision=obj.mod_revision)

    run(etcd.url, "/registry", scenario)


def test_a_server_starts_while_etcd_forgets_the_revision_that_it_lists(
    etcd: EtcdProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages can't be read to their end then: everything is read at once."""
    monkeypatch.setattr("fakeapiserver.storage.etcd.watch_cache._PAGE", 2)
    read = Client.range

    async def later(client: Client, request: RangeRequest, timeout: float | None = None) -> RangeResponse:
        if request.limit == 2 and request.revision:
            put = TxnRequest(success=(RequestOp(request_put=PutRequest(b"/other", b"")),))
            await client.compact((await client.txn(put)).header.revision)
        return await read(client, request, timeout)

    async def scenario(servers: Servers) -> None:
        first = await servers.new()
        for name in "abc":
            await suite.create(first, name)
        monkeypatch.setattr(Client, "range", later)
        second = await servers.new()
        assert suite.names(await second.list(suite.PODS)) == ["a", "b", "c"]
        assert await second.differences() == []

    run(etcd.url, "/registry", scenario)


def test_without_trust_in_progress_lists_are_read_from_etcd(
    shared_etcd: EtcdProcess, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakeapiserver.storage.etcd.storage.can_trust_progress", lambda version: False)

    async def scenario(servers: Servers) -> None:
        first, second = await servers.new(), await servers.new()
        for name in "abc":
            obj = await suite.create(first, name)
        listed = await second.list(suite.PODS, ListQuery(limit=2))
        assert (suite.names(listed), listed.remaining, listed.more) == (["a", "b"], 1, True)
        assert await second.get(obj.key, minimum_revision=obj.mod_revision) == obj
        with pytest.raises(ResourceVersionTooLarge):
            await second.get(obj.key, minimum_revision=obj.mod_revision + 1000)

    run(shared_etcd.url, prefix, scenario)


def test_objects_that_expire_share_a_lease(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(servers: Servers) -> None:
        storage = await servers.new(values=JSONValues(ttl=3600))
        for name in "ab":
            await suite.create(storage, name)
        client = Client.of([servers.url])
        kvs = (await client.range(RangeRequest(prefix.encode(), prefix_end(prefix.encode())))).kvs
        assert len(kvs) == 2
        (lease,) = {kv.lease for kv in kvs}
        watcher = storage.watch(suite.PODS)
        await client.revoke(lease)
        await client.close()
        events = await watcher.next_batch(5)
        assert [event.type for event in events or ()] == ["DELETED"] * 2

    run(shared_etcd.url, prefix, scenario)


def test_too_large_objects_are_refused_with_the_real_servers_words(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(servers: Servers) -> None:
        storage = await servers.new()
        with pytest.raises(RequestTooLarge, match=r"^etcdserver: request is too large$"):
            await suite.create(storage, "a", "x" * 1_600_000)
        with pytest.raises(RequestTooLarge, match=r"trying to send message larger than max \(25\d+ vs. 2097152\)$"):
            await suite.create(storage, "a", "x" * 2_500_000)

    run(shared_etcd.url, prefix, scenario)


def test_one_of_the_servers_compacts_and_all_of_them_forget(etcd: EtcdProcess) -> None:
    async def scenario(servers: Servers) -> None:
        storages = await servers.new(), await servers.new()
        client = Client.of([servers.url])
        first, second = (Compactor(client, storage.forget) for storage in storages)
        revision = (await suite.create(storages[0], "a")).mod_revision
        assert [await each.step() for each in (first, second)] == [True, False]
        for name in "bc":
            await suite.create(storages[0], name)
        for storage in storages:
            assert suite.names(await storage.list(suite.PODS, ListQuery(revision=revision))) == ["a"]
        assert [await each.step() for each in (second, first, first, second)] == [True, False, True, False]
        with pytest.raises(RevisionCompacted):
            await client.range(RangeRequest(b"/registry/", revision=revision))
        for storage in storages:
            with pytest.raises(Compacted):
                await storage.list(suite.PODS, ListQuery(revision=revision))
        await client.close()

    run(etcd.url, "/registry", scenario)


def test_the_end_of_a_storage_is_not_taken_for_a_lost_watch(
    shared_etcd: EtcdProcess, prefix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """gRPC may report that the stream has ended, in place of the reader's cancellation."""
    original = WatchStream.next

    async def next_batch(stream: WatchStream) -> WatchResponse:
        try:
            return await original(stream)
        except asyncio.CancelledError:
            raise UnknownOutcome("the stream has ended") from None

    monkeypatch.setattr(WatchStream, "next", next_batch)

    async def main() -> None:
        storage = await EtcdStorage.opened(Client.of([shared_etcd.url]), JSONValues(), prefix)
        await suite.create(storage, "a")
        async with asyncio.timeout(10):
            await storage.finish()

    asyncio.run(main())
    assert [record.message for record in caplog.records if record.name.startswith("fakeapiserver")] == []
