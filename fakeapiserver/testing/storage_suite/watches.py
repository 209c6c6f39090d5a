"""Watches: where they begin, what they select, and how events reach slow and prompt readers."""

import asyncio

from fakeapiserver.testing.storage_suite.pods import (
    PODS,
    SECRETS,
    SOON,
    MakeStorage,
    create,
    drain,
    made,
    noted,
    revision_in,
    update,
    write_elsewhere,
)


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
    watcher = storage.watch(PODS, predicate=noted("in"))
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
    await write_elsewhere(storage)
    assert watcher.progress == storage.revision


async def run_test_a_slow_watcher_catches_up_in_bounded_batches(make: MakeStorage) -> None:
    storage = await made(make)
    watcher = storage.watch(PODS)
    for i in range(3000):
        await create(storage, f"p{i}")
    sizes, revisions = [], []
    while batch := await watcher.next_batch(SOON):
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
    first = await watcher.next_batch(SOON)
    assert first is not None
    assert len(first) == 1
    assert await watcher.next_batch(SOON) is None


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
    storage.watch(SECRETS)
    obj = await create(storage, "a")
    delivered = asyncio.ensure_future(storage.delivered(obj.key))
    await asyncio.sleep(0)
    assert delivered.done()
