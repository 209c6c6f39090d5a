"""The history: states of the past, and what compaction leaves of them."""

from fakeapiserver.storage.interface import Compacted, ListQuery, StoredObject
from fakeapiserver.testing.storage_suite.pods import (
    LATE,
    PODS,
    MakeStorage,
    create,
    drain,
    key_of,
    made,
    refused,
    update,
    write_elsewhere,
)


async def run_test_cache_snapshots(make: MakeStorage) -> None:
    """A list at each revision shows the state of then, with deleted objects and their successors."""
    storage = await made(make)
    states: dict[int, dict[str, StoredObject]] = {storage.revision: {}}
    now: dict[str, StoredObject] = {}
    for step in ("create a", "create b", "update a", "delete a", "create c", "create a", "update b", "delete c"):
        verb, name = step.split()
        key = key_of(name)
        if verb == "create":
            now[key] = await create(storage, name, step)
        elif verb == "update":
            now[key] = await update(storage, now[key], step)
        else:
            await storage.delete(key)
            del now[key]
        states[storage.revision] = {**now}
    assert len(states) == 9
    for revision, state in states.items():
        listed = await storage.list(PODS, ListQuery(revision=revision))
        assert (listed.items, listed.revision) == ([state[key] for key in sorted(state)], revision)


async def run_test_compact_revision(make: MakeStorage) -> None:
    """A list at a revision works until the storage is compacted beyond it, and at the compacted revision itself."""
    storage = await made(make)
    obj = await create(storage, "a", "1")
    listed = await storage.list(PODS)
    assert storage.compacted < listed.revision
    assert await storage.list(PODS, ListQuery(revision=listed.revision)) == listed
    await write_elsewhere(storage)
    compacted = (await storage.list(PODS)).revision
    await storage.compact(compacted)
    assert storage.compacted == compacted
    error = await refused(Compacted, storage.list(PODS, ListQuery(revision=listed.revision)))
    assert error.oldest > listed.revision
    assert (await storage.list(PODS, ListQuery(revision=compacted))).items == [obj]
    assert (await storage.list(PODS)).items == [obj]


async def run_test_watch_from_zero(make: MakeStorage) -> None:
    """After compaction a watch can begin where a list is, and no longer before the compacted revision."""
    storage = await made(make)
    first = await create(storage, "a", "1")
    second = await update(storage, first, "2")
    third = await update(storage, second, "3")
    await storage.compact(third.mod_revision)
    listed = await storage.list(PODS, ListQuery(minimum_revision=0))
    assert listed.items == [third]
    watcher = storage.watch(PODS, revision=listed.revision)
    fourth = await update(storage, third, "4")
    assert [event.object for event in await drain(watcher)] == [fourth]
    for stale in (first, second):
        try:
            storage.watch(PODS, revision=stale.mod_revision)
        except Compacted as error:
            assert error.oldest == third.mod_revision
        else:
            raise AssertionError("a watch begins at a forgotten revision")


async def run_test_empty_watch_event_cache(make: MakeStorage) -> None:
    """With an empty history, watches begin at the present revision and at later ones."""
    storage = await made(make)
    for i in range(5):
        last = await create(storage, f"foo-{i}")
    await storage.compact(last.mod_revision)
    now = storage.watch(PODS, revision=last.mod_revision)
    later = storage.watch(PODS, revision=last.mod_revision + 1)
    try:
        storage.watch(PODS, revision=last.mod_revision - 1)
    except Compacted:
        pass
    else:
        raise AssertionError("a watch begins at a forgotten revision")
    assert (await drain(now), await drain(later)) == ([], [])
    written = await create(storage, "foo-5")
    assert [event.object for event in await drain(now)] == [written]


async def run_test_cache_interval_invalidation_stops_watch(make: MakeStorage) -> None:
    """A watch ends, without an event, if what it still had to read of the history was compacted."""
    storage = await made(make)
    first = await create(storage, "a", "1")
    second = await update(storage, first, "2")
    watcher = storage.watch(PODS, revision=first.mod_revision)
    whole = storage.watch(PODS, revision=second.mod_revision)
    third = await update(storage, second, "3")
    await storage.compact(third.mod_revision)
    assert await watcher.next_batch(LATE) is None
    assert [event.object for event in await whole.next_batch(LATE) or ()] == [third]


async def run_test_changes_after_a_revision(make: MakeStorage) -> None:
    """Each write as the object before and after it; Compacted once the first of them is forgotten."""
    storage = await made(make)
    start = storage.revision
    first = await create(storage, "a", "1")
    second = await update(storage, first, "2")
    await storage.delete(first.key)
    assert [*storage.changes_now(start)] == [(None, first), (first, second), (second, None)]
    assert [*storage.changes_now(second.mod_revision)] == [(second, None)]
    assert [*storage.changes_now(storage.revision)] == []
    await storage.compact(second.mod_revision)
    assert [*storage.changes_now(second.mod_revision)] == [(second, None)]
    try:
        [*storage.changes_now(first.mod_revision)]
    except Compacted:
        return
    raise AssertionError("changes that were compacted were returned")
