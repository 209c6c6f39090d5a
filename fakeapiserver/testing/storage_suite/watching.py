"""Further watches, after upstream's tests of watches and of its cache."""

import asyncio

from fakeapiserver.storage.interface import Index, Predicate, Storage, StoredObject
from fakeapiserver.testing.storage_suite.pods import (
    LATE,
    OFFSET,
    PODS,
    SOON,
    MakeStorage,
    create,
    drain,
    made,
    name_of,
    not_named,
    noted,
    revision_in,
    update,
    value,
    write_elsewhere,
)

# A selection, the notes that a pod has one after the other ("": it is deleted), and the events that follow.
_WATCHES: list[tuple[Predicate | None, list[str], list[str]]] = [
    (None, ["1"], ["ADDED 1"]),
    (noted("bar"), ["1", "bar"], ["ADDED bar"]),
    (None, ["1", "2"], ["ADDED 1", "MODIFIED 2"]),
    (noted("1"), ["1", "bar"], ["ADDED 1", "DELETED 1"]),
    (
        noted("x", "y"),
        ["x", "1", "x", "y", ""],
        ["ADDED x", "DELETED x", "ADDED x", "MODIFIED y", "DELETED y"],
    ),
    (noted("x"), ["1", "2", ""], []),
    (None, ["1", "", "2", ""], ["ADDED 1", "DELETED 1", "ADDED 2", "DELETED 2"]),
]


async def write(storage: Storage, obj: StoredObject | None, note: str) -> StoredObject | None:
    """Creates, updates or deletes the pod `foo`, and returns it."""
    if obj is None:
        return await create(storage, "foo", note)
    if note:
        return await update(storage, obj, note)
    await storage.delete(obj.key)
    return None


async def run_test_watch(make: MakeStorage) -> None:
    """A watch with a selection shows the same of a pod, whether the watch is live or begins in the past."""
    storage = await made(make)
    for predicate, notes, expected in _WATCHES:
        start = storage.revision
        live = storage.watch(PODS, predicate=predicate)
        single = storage.watch(f"{PODS}default/", revision=start, predicate=predicate)
        obj = None
        for note in notes:
            obj = await write(storage, obj, note)
        late = storage.watch(PODS, revision=start, predicate=predicate)
        for watcher in (live, single, late):
            events = await drain(watcher)
            assert [f"{event.type} {event.object.index.labels['note']}" for event in events] == expected
            assert all(revision_in(event.object) == event.object.mod_revision == event.revision for event in events)
            watcher.close()
        if obj is not None:
            await storage.delete(obj.key)


async def run_test_delayed_watch_delivery(make: MakeStorage) -> None:
    """Events that are there when a watch is ended are still handed out, in order, and none after them."""
    storage = await made(make)
    watcher = storage.watch(PODS, revision=storage.revision)
    for i in range(21):
        await create(storage, f"foo-{i:02}")
    watcher.end()
    await create(storage, "later")
    events = await watcher.next_batch(SOON) or []
    assert [name_of(event.object) for event in events] == [f"foo-{i:02}" for i in range(21)]
    assert await watcher.next_batch(SOON) is None


async def run_test_watch_context_cancel(make: MakeStorage) -> None:
    """A watch that is closed ends at once: a reader that waits returns, and what is buffered is dropped."""
    storage = await made(make)
    watcher, buffered, unread = storage.watch(PODS), storage.watch(PODS), storage.watch(PODS)
    reading = asyncio.ensure_future(watcher.next_batch(LATE))
    await asyncio.sleep(0)
    watcher.close()
    assert await reading is None
    unread.close()
    await create(storage, "a")
    buffered.close()
    assert [await each.next_batch(LATE) for each in (watcher, buffered, unread)] == [None] * 3


async def run_test_forget_watcher(make: MakeStorage) -> None:
    """Closed watches are forgotten, and closing one again does nothing to the others."""
    storage = await made(make)
    kept, closed = storage.watch(PODS), storage.watch(PODS)
    assert storage.watchers == 2
    closed.close()
    closed.close()
    assert storage.watchers == 1
    obj = await create(storage, "a")
    assert [event.object for event in await drain(kept)] == [obj]
    kept.close()
    assert storage.watchers == 0


async def run_test_watcher_timeout(make: MakeStorage) -> None:
    """Watches that nothing reads don't hold up the others."""
    storage = await made(make)
    unread = [storage.watch(f"{PODS}default/") for _ in range(50)]
    reader = storage.watch(f"{PODS}default/")
    for i in range(22):
        obj = await create(storage, f"foo-{i}")
        events = await reader.next_batch(LATE)
        assert [(event.type, event.object) for event in events or ()] == [("ADDED", obj)]
    assert [len(await watcher.next_batch(SOON) or ()) for watcher in unread] == [22] * 50


async def run_test_watcher_not_going_back_in_time(make: MakeStorage) -> None:
    """A watch that begins in the past while others write gets each later event once and in order."""
    storage = await made(make)
    start = storage.revision
    first = await create(storage, "pod-00")

    async def write_more() -> None:
        for i in range(1, 40):
            await create(storage, f"pod-{i:02}")

    writing = asyncio.ensure_future(write_more())
    watchers = [storage.watch(PODS, revision=start), storage.watch(PODS, revision=first.mod_revision)]
    seen: list[list[int]] = [[], []]
    while not writing.done() or len(seen[0]) < 40:
        for watcher, revisions in zip(watchers, seen, strict=True):
            batch = await watcher.next_batch(SOON)
            assert batch is not None
            revisions += [event.revision for event in batch]
    seen[1] += [event.revision for event in await drain(watchers[1])]
    assert seen[0] == sorted(set(seen[0]))
    assert seen[1] == seen[0][1:]


async def run_test_cluster_scoped_watch(make: MakeStorage) -> None:
    """A watch of objects without a namespace, and of one of them."""
    storage = await made(make)
    nodes = "/registry/nodes/"
    everything = storage.watch(nodes)
    single = storage.watch(nodes, predicate=lambda item: item.key == f"{nodes}n1")
    neither = storage.watch(nodes, predicate=lambda item: item.key == f"{nodes}n1" and "x" in item.index.labels)
    for name in ("n1", "n11"):
        await storage.create(f"{nodes}{name}", value(name), OFFSET, Index())
    await create(storage, "n1")
    assert [name_of(event.object) for event in await drain(everything)] == ["n1", "n11"]
    assert [name_of(event.object) for event in await drain(single)] == ["n1"]
    assert await drain(neither) == []


async def run_test_namespace_scoped_watch(make: MakeStorage) -> None:
    """Selections in one namespace and in all of them, with pods of one name in several."""
    storage = await made(make)
    expectations: list[tuple[str, Predicate | None, list[str]]] = [
        (PODS, None, ["t1-a/foo", "t1-b/foo", "t1-a/bar"]),
        (PODS, lambda item: item.key.startswith(f"{PODS}t1-b/"), ["t1-b/foo"]),
        (PODS, noted("n1"), ["t1-a/foo", "t1-b/foo"]),
        (PODS, noted("absent"), []),
        (PODS, not_named("foo"), ["t1-a/bar"]),
        (f"{PODS}t1-a/", None, ["t1-a/foo", "t1-a/bar"]),
        (f"{PODS}t1-a/", lambda item: item.key.startswith(f"{PODS}t1-b/"), []),
        (f"{PODS}t1-a/", noted("n2"), ["t1-a/bar"]),
        (f"{PODS}t1/", None, []),
        (f"{PODS}t1-a/foo/", None, []),
    ]
    watchers = [storage.watch(prefix, predicate=predicate) for prefix, predicate, _ in expectations]
    for name, note, namespace in (("foo", "n1", "t1-a"), ("foo", "n1", "t1-b"), ("bar", "n2", "t1-a")):
        await create(storage, name, note, namespace)
    for watcher, (prefix, _, expected) in zip(watchers, expectations, strict=True):
        assert [event.object.key.removeprefix(PODS) for event in await drain(watcher)] == expected, prefix


async def run_test_progress_notify(make: MakeStorage) -> None:
    """A watch that nothing happens to comes as far as the writes of others do."""
    storage = await made(make)
    obj = await create(storage, "a")
    watcher = storage.watch(f"{PODS}default/", revision=obj.mod_revision)
    assert watcher.progress >= obj.mod_revision
    await create(storage, "b", namespace="other")
    elsewhere = await write_elsewhere(storage)
    assert watcher.progress >= elsewhere.mod_revision
    assert await drain(watcher) == []


async def run_test_watch_bookmarks_with_correct_resource_version(make: MakeStorage) -> None:
    """A watch's progress never falls, and events that follow are newer."""
    storage = await made(make)
    watcher = storage.watch(f"{PODS}default/", revision=storage.revision)
    last = watcher.progress
    events = 0
    for i in range(30):
        await create(storage, f"foo-{i}", namespace="default" if i % 3 else "other")
        assert watcher.progress >= last
        last = watcher.progress
        if i % 4 == 0:
            for event in await watcher.next_batch(SOON) or ():
                assert event.revision > last
                last, events = event.revision, events + 1
            assert watcher.progress >= last
            last = watcher.progress
    for event in await drain(watcher):
        assert event.revision > last
        last, events = event.revision, events + 1
    assert events == 20
    assert watcher.progress == storage.revision


async def run_test_caching_objects(make: MakeStorage) -> None:
    """Watches see one event each, which they share, so that it is encoded once; also if only some of them select."""
    storage = await made(make)
    watchers = [storage.watch(PODS), storage.watch(f"{PODS}default/"), storage.watch(PODS, predicate=noted("in"))]
    obj = await create(storage, "a", "in")
    await update(storage, obj, "in")
    seen = [await drain(watcher) for watcher in watchers]
    assert [len(events) for events in seen] == [2, 2, 2]
    for first, *others in zip(*seen, strict=True):
        assert all(other is first for other in others)


async def run_test_caching_delete_events(make: MakeStorage) -> None:
    """A pod leaves two selections and is deleted then: each watch gets the last state that it selected, at the revision of its end."""
    storage = await made(make)
    everything = storage.watch(PODS)
    foo, bar = storage.watch(PODS, predicate=noted("foobar", "foo")), storage.watch(PODS, predicate=noted("foobar"))
    first = await create(storage, "pod", "foobar")
    second = await update(storage, first, "foo")
    third = await update(storage, second, "other")
    gone = await storage.delete(third.key)

    def deleted(obj: StoredObject, revision: int) -> tuple[str, bytes]:
        return "DELETED", obj.value.replace(b"%d" % obj.mod_revision, b"%d" % revision)

    seen = [[(event.type, event.object.value) for event in await drain(watcher)] for watcher in (everything, foo, bar)]
    assert seen == [
        [("ADDED", first.value), ("MODIFIED", second.value), ("MODIFIED", third.value), ("DELETED", gone.value)],
        [("ADDED", first.value), ("MODIFIED", second.value), deleted(second, third.mod_revision)],
        [("ADDED", first.value), deleted(first, second.mod_revision)],
    ]
    assert [revision_in(obj) for obj in (first, second, third)] == [obj.mod_revision for obj in (first, second, third)]
