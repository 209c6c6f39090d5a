"""The contract of a storage backend: coroutines that take a factory of empty storages, and assert what it must do.

The factory may be a coroutine, for a backend that has to connect first.

    @pytest.mark.parametrize("check", storage_suite.checks(), ids=lambda check: check.__name__)
    def test_memory(check): asyncio.run(check(MemoryStorage))

Upstream: k8s.io/apiserver/pkg/storage/testing; the watch promises are etcd's (tests/robustness/validate/watch.go).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

from fakeapiserver.storage.interface import (
    Event,
    Index,
    KeyExists,
    KeyNotFound,
    ListQuery,
    ListResult,
    ResourceVersionConflict,
    ResourceVersionTooLarge,
    Storage,
    StoredObject,
    Watcher,
)

MakeStorage = Callable[[], Storage | Awaitable[Storage]]
Check = Callable[[MakeStorage], Awaitable[None]]

PODS: Final = "/registry/pods/"
OFFSET: Final = len('{"metadata":{')
_REVISION: Final = re.compile(rb'"resourceVersion":"(\d+)"')
# How long a check waits for events that are there already.
_SOON: Final = 0.05


def checks() -> list[Check]:
    """Every run_test_* function of this module."""
    return [value for name, value in sorted(globals().items()) if name.startswith("run_test_")]


async def made(make: MakeStorage) -> Storage:
    """A new, empty storage."""
    storage = make()
    return await storage if isinstance(storage, Awaitable) else storage


def value(name: str, note: str = "") -> bytes:
    return f'{{"metadata":{{"name":"{name}"}},"note":"{note}"}}'.encode()


async def create(storage: Storage, name: str, note: str = "", namespace: str = "default") -> StoredObject:
    return await storage.create(f"{PODS}{namespace}/{name}", value(name, note), OFFSET, Index({"note": note}))


async def update(storage: Storage, obj: StoredObject, note: str) -> StoredObject:
    name = obj.key.rpartition("/")[2]
    new = value(name, note)
    return await storage.update(obj.key, new, OFFSET, Index({"note": note}), expected_revision=obj.mod_revision)


def revision_in(obj: StoredObject) -> int:
    match = _REVISION.search(obj.value)
    assert match is not None, obj.value
    return int(match[1])


def names(result: ListResult) -> list[str]:
    return [item.key.rpartition("/")[2] for item in result.items]


async def drain(watcher: Watcher) -> list[Event]:
    """Returns the events so far."""
    events: list[Event] = []
    while batch := await watcher.next_batch(_SOON):
        events += batch
    return events


async def run_test_create_stamps_the_next_revision(make: MakeStorage) -> None:
    storage = await made(make)
    before = storage.revision
    obj = await create(storage, "a")
    assert obj.mod_revision == obj.create_revision == revision_in(obj) == storage.revision > before


async def run_test_create_refuses_a_second_one_and_writes_nothing(make: MakeStorage) -> None:
    storage = await made(make)
    first = await create(storage, "a", "first")
    try:
        await create(storage, "a", "second")
    except KeyExists:
        assert storage.revision == first.mod_revision
        assert await storage.get(first.key) == first
    else:
        raise AssertionError("a second create of the same key went through")


async def run_test_update_swaps_only_from_the_expected_revision(make: MakeStorage) -> None:
    storage = await made(make)
    first = await create(storage, "a", "1")
    second = await update(storage, first, "2")
    assert second.create_revision == first.mod_revision < second.mod_revision
    try:
        await update(storage, first, "3")
    except ResourceVersionConflict as conflict:
        assert conflict.current == second
        assert storage.revision == second.mod_revision
    else:
        raise AssertionError("an update from a stale revision went through")


async def run_test_update_and_delete_of_nothing(make: MakeStorage) -> None:
    storage = await made(make)
    ghost = StoredObject(f"{PODS}default/ghost", b"", 1, 1, Index(), 0)
    for attempt in (update(storage, ghost, "x"), storage.delete(ghost.key)):
        try:
            await attempt
        except KeyNotFound:
            continue
        raise AssertionError("a write to an absent key went through")


async def run_test_delete_answers_the_last_state_with_its_own_revision(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a", "last")
    gone = await storage.delete(obj.key)
    assert b'"note":"last"' in gone.value
    assert revision_in(gone) == gone.mod_revision == storage.revision > obj.mod_revision
    assert await storage.get(obj.key) is None


async def run_test_delete_from_a_stale_revision_is_refused(make: MakeStorage) -> None:
    storage = await made(make)
    first = await create(storage, "a", "1")
    second = await update(storage, first, "2")
    try:
        await storage.delete(first.key, expected_revision=first.mod_revision)
    except ResourceVersionConflict:
        assert await storage.get(first.key) == second
    else:
        raise AssertionError("a delete from a stale revision went through")


async def run_test_get_of_a_future_revision(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a")
    assert await storage.get(obj.key, minimum_revision=obj.mod_revision) == obj
    try:
        await storage.get(obj.key, minimum_revision=obj.mod_revision + 1)
    except ResourceVersionTooLarge as error:
        assert error.current == obj.mod_revision
    else:
        raise AssertionError("a revision that isn't there was waited for or ignored")


async def run_test_list_is_ordered_by_key_and_kept_to_its_prefix(make: MakeStorage) -> None:
    storage = await made(make)
    for name, namespace in (("b", "default"), ("a", "other"), ("a", "default"), ("c", "default-2")):
        await create(storage, name, namespace=namespace)
    assert names(await storage.list(PODS)) == ["c", "a", "b", "a"]
    assert names(await storage.list(PODS + "default/")) == ["a", "b"]
    assert (await storage.list("/registry/secrets/")).items == []


async def run_test_list_in_pages_shows_one_state(make: MakeStorage) -> None:
    """Writes between two pages are not seen by the later one."""
    storage = await made(make)
    for name in "abcde":
        await create(storage, name)
    first = await storage.list(PODS, ListQuery(limit=2))
    assert (names(first), first.remaining, first.more) == (["a", "b"], 3, True)
    await create(storage, "bb")
    await storage.delete(f"{PODS}default/d")
    start = first.items[-1].key + "\0"
    second = await storage.list(PODS, ListQuery(revision=first.revision, start=start, limit=2))
    third = await storage.list(PODS, ListQuery(revision=first.revision, start=second.items[-1].key + "\0", limit=2))
    assert names(second) + names(third) == ["c", "d", "e"]
    assert (third.remaining, third.more) == (0, False)


async def run_test_list_at_an_older_revision(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a", "old")
    then = storage.revision
    await update(storage, obj, "new")
    await create(storage, "b")
    old = await storage.list(PODS, ListQuery(revision=then))
    assert (names(old), old.revision) == (["a"], then)
    assert old.items[0] == obj


async def run_test_list_selects_before_it_counts(make: MakeStorage) -> None:
    storage = await made(make)
    for i in range(6):
        await create(storage, f"p{i}", "odd" if i % 2 else "even")
    result = await storage.list(PODS, ListQuery(limit=2, predicate=lambda item: item.index.labels["note"] == "odd"))
    assert (names(result), result.more, result.remaining) == (["p1", "p3"], True, 4)


async def run_test_watch_from_a_revision_misses_and_repeats_nothing(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a", "1")
    watcher = storage.watch(PODS, revision=obj.mod_revision)
    obj = await update(storage, obj, "2")
    await create(storage, "b")
    await storage.delete(obj.key)
    events = await drain(watcher)
    assert [event.type for event in events] == ["MODIFIED", "ADDED", "DELETED"]
    revisions = [event.revision for event in events]
    assert revisions == sorted(set(revisions))
    assert all(revision_in(event.object) == event.revision for event in events)
    late = storage.watch(PODS, revision=events[0].revision)
    assert [event.revision for event in await drain(late)] == revisions[1:]


async def run_test_watch_from_now_sees_only_what_follows(make: MakeStorage) -> None:
    storage = await made(make)
    await create(storage, "a")
    watcher = storage.watch(PODS)
    await create(storage, "b")
    assert [event.object.key for event in await drain(watcher)] == [f"{PODS}default/b"]


async def run_test_watch_of_a_namespace_sees_only_it(make: MakeStorage) -> None:
    storage = await made(make)
    watcher = storage.watch(PODS + "default/")
    await create(storage, "a", namespace="default-2")
    await create(storage, "b")
    assert [event.object.key for event in await drain(watcher)] == [f"{PODS}default/b"]


async def run_test_watch_from_the_future_is_silent_until_then(make: MakeStorage) -> None:
    storage = await made(make)
    watcher = storage.watch(PODS, revision=storage.revision + 1)
    await create(storage, "a")
    await create(storage, "b")
    assert [event.object.key for event in await drain(watcher)] == [f"{PODS}default/b"]


async def run_test_watch_turns_selector_changes_into_added_and_deleted(make: MakeStorage) -> None:
    """An object that leaves the selection is DELETED with its last selected state and the new revision."""
    storage = await made(make)
    watcher = storage.watch(PODS, predicate=lambda item: item.index.labels["note"] == "in")
    obj = await create(storage, "a", "out")
    for note in ("in", "in", "out", "out"):
        obj = await update(storage, obj, note)
    events = await drain(watcher)
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert b'"note":"in"' in events[-1].object.value
    assert revision_in(events[-1].object) == events[-1].revision


async def run_test_watch_progress_never_runs_ahead_of_what_was_handed_out(make: MakeStorage) -> None:
    storage = await made(make)
    watcher = storage.watch(PODS)
    obj = await create(storage, "a")
    assert watcher.progress < obj.mod_revision
    await drain(watcher)
    assert watcher.progress == obj.mod_revision
    await storage.create("/registry/secrets/default/x", value("x"), OFFSET, Index())
    assert watcher.progress == storage.revision


async def run_test_a_slow_watcher_catches_up_in_bounded_batches(make: MakeStorage) -> None:
    storage = await made(make)
    watcher = storage.watch(PODS)
    for i in range(3000):
        await create(storage, f"p{i}")
    sizes, revisions = [], []
    while batch := await watcher.next_batch(_SOON):
        sizes.append(len(batch))
        revisions += [event.revision for event in batch]
    assert len(revisions) == 3000
    assert revisions == sorted(set(revisions))
    assert max(sizes) <= 1000


async def run_test_closing_ends_watches_after_what_they_hold(make: MakeStorage) -> None:
    storage = await made(make)
    watcher = storage.watch(PODS)
    await create(storage, "a")
    storage.close()
    first = await watcher.next_batch(_SOON)
    assert first is not None
    assert len(first) == 1
    assert await watcher.next_batch(_SOON) is None


async def run_test_what_was_delivered_has_been_handed_to_waiting_watchers(make: MakeStorage) -> None:
    storage = await made(make)
    watcher = storage.watch(PODS)
    reading = asyncio.ensure_future(watcher.next_batch(60))
    await asyncio.sleep(0)
    obj = await create(storage, "a")
    await storage.delivered(obj.key)
    assert reading.done()
    assert [event.object for event in await reading or ()] == [obj]


async def run_test_what_nobody_watches_is_delivered_at_once(make: MakeStorage) -> None:
    storage = await made(make)
    storage.watch("/registry/secrets/")
    obj = await create(storage, "a")
    delivered = asyncio.ensure_future(storage.delivered(obj.key))
    await asyncio.sleep(0)
    assert delivered.done()


async def run_test_generation_rises_with_writes_to_its_resource_only(make: MakeStorage) -> None:
    storage = await made(make)
    await create(storage, "a")
    before = storage.generation(PODS)
    await storage.create("/registry/secrets/default/x", value("x"), OFFSET, Index())
    assert storage.generation(PODS) == before
    await create(storage, "b")
    assert storage.generation(PODS) > before
