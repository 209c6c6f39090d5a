"""The memory backend: the suite that any backend must pass, what is its own, and a random machine beside a simple model."""

import asyncio

import pytest
from hypothesis import settings

from conformance.robustness.guarantees.storage.machine import MemoryMachine
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.storage import continue_token, memory
from fakeapiserver.storage.interface import Compacted, Index, ListQuery
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import MVCC
from fakeapiserver.testing import storage_suite as suite


@pytest.mark.parametrize("check", suite.checks(), ids=lambda check: check.__name__)
def test_memory(check: suite.Check) -> None:
    async def run() -> None:
        await check(MemoryStorage)

    asyncio.run(run())


def test_lists_and_watches_of_a_compacted_revision_are_refused() -> None:
    async def scenario() -> None:
        storage = MemoryStorage()
        for name in "abc":
            await suite.create(storage, name)
        await storage.compact(3)
        assert suite.names(await storage.list(suite.PODS, ListQuery(revision=3))) == ["a", "b"]
        assert [event.revision for event in await suite.drain(storage.watch(suite.PODS, revision=3))] == [4]
        with pytest.raises(Compacted):
            await storage.list(suite.PODS, ListQuery(revision=2))
        with pytest.raises(Compacted):
            storage.watch(suite.PODS, revision=2)

    asyncio.run(scenario())


def test_a_selection_of_many_shows_one_state_and_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_SELECTED_AT_FIRST", 2)
    monkeypatch.setattr(memory, "_TURN", -1.0)

    async def scenario() -> None:
        storage = MemoryStorage()
        for name in "abcde":
            await suite.create(storage, name)
        revision = storage.revision
        query = ListQuery(predicate=lambda stored: not stored.key.endswith("/b"))
        selecting = asyncio.ensure_future(storage.list(suite.PODS, query))
        await asyncio.sleep(0)
        await suite.create(storage, "f")
        assert not selecting.done()
        result = await selecting
        assert (suite.names(result), result.revision) == (["a", "c", "d", "e"], revision)

    asyncio.run(scenario())


def test_a_watcher_that_the_history_has_lost_ends() -> None:
    async def scenario() -> None:
        storage = MemoryStorage(MVCC(max_events=50))
        watcher = storage.watch(suite.PODS)
        for i in range(1100):
            await suite.create(storage, f"p{i}")
        first = await watcher.next_batch(1)
        assert first is not None
        assert len(first) == 1000
        assert await watcher.next_batch(1) is None
        assert storage.watchers == 0

    asyncio.run(scenario())


def test_the_history_is_bounded_in_bytes() -> None:
    core = MVCC(max_bytes=2000)
    for i in range(50):
        core.create(f"/registry/pods/default/p{i}", b'{"metadata":{"name":"x"},"p":"' + b"x" * 100 + b'"}', 13, Index())
        core.delete(f"/registry/pods/default/p{i}", None)
    assert sum(change.size for change in core.changes_after(core.compacted)) <= 2000


def test_a_snapshot_comes_back_and_revisions_go_on() -> None:
    async def scenario() -> None:
        storage = MemoryStorage()
        created = await suite.create(storage, "a")
        snapshot = storage.snapshot()
        await storage.delete(created.key)
        await storage.create("/registry/secrets/default/x", suite.value("x"), suite.OFFSET, Index())
        before, generation = storage.revision, storage.generation("/registry/secrets/")
        watcher = storage.watch(suite.PODS)
        await storage.restore(snapshot)
        assert suite.names(await storage.list(suite.PODS)) == ["a"]
        assert storage.revision > before
        assert storage.generation("/registry/secrets/") > generation
        await suite.create(storage, "b")
        assert await watcher.next_batch(1) is None

    asyncio.run(scenario())


TestMachine = MemoryMachine.TestCase
TestMachine.settings = settings(max_examples=30, stateful_step_count=25)


class TestContinueToken:
    def test_goes_on_where_it_was_made(self) -> None:
        token = continue_token.encode("/registry/pods/default/a\0", "/registry/pods/", 7)
        assert continue_token.decode(token, "/registry/pods/") == continue_token.Position(
            7, "/registry/pods/default/a\0"
        )

    def test_an_inconsistent_one_goes_on_now(self) -> None:
        token = continue_token.encode("/registry/pods/a", "/registry/pods/", continue_token.INCONSISTENT)
        assert continue_token.decode(token, "/registry/pods/").revision == 0

    @pytest.mark.parametrize(
        ("document", "complaint"),
        [
            ('{"v":"x","rv":1,"start":"a"}', "server does not recognize this encoded version x"),
            (
                '{"v":"meta.k8s.io/v1","rv":0,"start":"a"}',
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            ('{"v":"meta.k8s.io/v1","rv":1,"start":""}', "encoded start key empty (version meta.k8s.io/v1)"),
            ('{"v":"meta.k8s.io/v1","rv":5,"start":"../a"}', "../a"),
            ('{"v":"meta.k8s.io/v1","rv":5,"start":"a/../b"}', "a/../b"),
            ('{"v":"meta.k8s.io/v1","rv":5,"start":"a//b"}', "a//b"),
            (
                '{"v":"meta.k8s.io/v1","rv":"x","start":"a"}',
                "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            ),
            ("[]", "json: cannot unmarshal array into Go value of type storage.continueToken"),
        ],
    )
    def test_refuses_what_no_server_made(self, document: str, complaint: str) -> None:
        from base64 import urlsafe_b64encode

        token = urlsafe_b64encode(document.encode()).rstrip(b"=").decode()
        with pytest.raises(StatusError) as refused:
            continue_token.decode(token, "/registry/pods/")
        assert refused.value.message == f"invalid continue token: continue key is not valid: {complaint}"

    def test_refuses_what_is_not_base64(self) -> None:
        with pytest.raises(StatusError, match="illegal base64 data at input byte 0"):
            continue_token.decode("!!!", "/registry/pods/")
