"""Lists of very many objects are gathered in several turns of the event loop, and show the state of the first one."""

import asyncio
import random

import pytest

from fakeapiserver.storage import memory, mvcc
from fakeapiserver.storage.interface import Index, ListQuery, Predicate, StoredObject, WithLabels
from fakeapiserver.storage.memory import MemoryStorage
from fakeapiserver.storage.mvcc import MVCC

PODS = "/registry/pods/"
VALUE, OFFSET = b'{"metadata":{"name":"x"}}', 13
PREDICATES = [None, WithLabels({"app": "a"}), lambda stored: stored.key.endswith("3")]


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mvcc, "_GATHERED_AT_ONCE", 5)


def write(core: MVCC, chance: random.Random) -> None:
    key = f"{PODS}{chance.choice(['default', 'other'])}/{chance.randrange(60):02}"
    index = Index(labels={"app": chance.choice("abcdefgh")})
    stored = core.get(key)
    if stored is None:
        core.create(key, VALUE, OFFSET, index)
    elif chance.random() < 0.5:
        core.delete(key, None)
    else:
        core.update(key, VALUE, OFFSET, index, stored.mod_revision)


@pytest.mark.parametrize("predicate", PREDICATES, ids=["all", "labels", "other"])
@pytest.mark.parametrize("prefix", [PODS, f"{PODS}default/"])
def test_writes_in_between_are_not_seen(prefix: str, predicate: Predicate | None) -> None:
    core, chance = MVCC(), random.Random(1)
    query, turns = ListQuery(predicate=predicate), 0
    for _ in range(150):
        write(core, chance)
    assert list(core.index_labels(PODS, {"app": "a"})) == []
    for _ in range(100):
        expected = core.range(prefix, query).items
        gathered: list[StoredObject] = []
        for _ in core.gather(query, prefix, gathered):
            write(core, chance)
            turns += 1
        assert list(filter(predicate or bool, gathered)) == expected
    assert turns > 300


@pytest.mark.parametrize("predicate", PREDICATES[1:], ids=["labels", "other"])
@pytest.mark.parametrize("prefix", [PODS, f"{PODS}default/"])
def test_a_page_that_a_selector_selects_shows_the_state_of_its_first_turn(
    monkeypatch: pytest.MonkeyPatch, prefix: str, predicate: Predicate
) -> None:
    monkeypatch.setattr(memory, "_TURN", -1)
    core, chance, writes = MVCC(), random.Random(2), 0
    storage = MemoryStorage(core)
    for _ in range(150):
        write(core, chance)

    async def scenario() -> None:
        nonlocal writes
        for number in range(100):
            start = f"{prefix}{chance.randrange(60):02}" if number % 2 else ""
            query = ListQuery(predicate=predicate, limit=chance.randrange(1, 12), start=start)
            expected = core.range(prefix, query)
            listing = asyncio.ensure_future(storage.list(prefix, query))
            await asyncio.sleep(0)
            while not listing.done():
                write(core, chance)
                writes += 1
                await asyncio.sleep(0)
            assert listing.result() == expected

    asyncio.run(scenario())
    assert writes > 300


def test_a_list_whose_history_is_forgotten_meanwhile_shows_the_newest_state() -> None:
    core = MVCC(max_events=3)
    storage = MemoryStorage(core)
    for number in range(20):
        core.create(f"{PODS}default/{number:02}", VALUE, OFFSET, Index())

    async def scenario() -> None:
        listing = asyncio.ensure_future(storage.list(PODS))
        await asyncio.sleep(0)
        for number in range(5):
            core.delete(f"{PODS}default/{number:02}", None)
        result = await listing
        assert (len(result.items), result.revision) == (15, core.revision)

    asyncio.run(scenario())


def test_a_list_while_objects_are_written_has_its_revision() -> None:
    core = MVCC()
    storage = MemoryStorage(core)
    for number in range(20):
        core.create(f"{PODS}default/{number:02}", VALUE, OFFSET, Index())

    async def scenario() -> None:
        revision = core.revision
        listing = asyncio.ensure_future(storage.list(PODS))
        await asyncio.sleep(0)
        core.delete(f"{PODS}default/19", None)
        core.create(f"{PODS}default/00x", VALUE, OFFSET, Index())
        result = await listing
        assert (len(result.items), result.revision) == (20, revision)
        assert [item.mod_revision for item in result.items] == list(range(2, 22))

    asyncio.run(scenario())
