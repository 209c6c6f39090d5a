"""Watchers by themselves: what each sees of a change, how it falls behind, and how it ends."""

import asyncio

import pytest

from fakeapiserver.storage import watch
from fakeapiserver.storage.interface import Event, Index, StoredObject
from fakeapiserver.storage.mvcc import MVCC, removal
from fakeapiserver.storage.watch import BufferedWatcher, Hub, selected_event, unselected_event

PODS = "/registry/pods/"
KEY = "/registry/pods/default/web"
VALUE, OFFSET = b'{"metadata":{"name":"x"}}', 13


def is_blue(stored: StoredObject) -> bool:
    return stored.index.labels.get("colour") == "blue"


def index(colour: str) -> Index:
    return Index(labels={"colour": colour})


class Storage:
    """A core and its hub, joined as the memory backend joins them."""

    def __init__(self) -> None:
        self.core = MVCC()
        self.hub = Hub(self.core)

    def create(self, name: str, colour: str = "blue") -> None:
        self.hub.publish(self.core.create(f"{PODS}default/{name}", VALUE, OFFSET, index(colour)))

    def recolour(self, name: str, colour: str) -> None:
        stored = self.core.get(f"{PODS}default/{name}")
        assert stored is not None
        self.hub.publish(self.core.update(stored.key, VALUE, OFFSET, index(colour), stored.mod_revision))


async def seen(watcher: BufferedWatcher) -> list[tuple[str, str, int]]:
    """The next batch: type, name, revision."""
    batch = await watcher.next_batch(0.0) or []
    return [(event.type, event.object.key.rpartition("/")[2], event.revision) for event in batch]


@pytest.mark.parametrize(
    ("before", "after", "plain", "selected"),
    [
        (None, "blue", "ADDED", "ADDED"),
        (None, "red", "ADDED", None),
        ("blue", "blue", "MODIFIED", "MODIFIED"),
        ("red", "blue", "MODIFIED", "ADDED"),
        ("blue", "red", "MODIFIED", "DELETED"),
        ("red", "red", "MODIFIED", None),
        ("blue", None, "DELETED", "DELETED"),
        ("red", None, "DELETED", None),
    ],
)
def test_a_selector_decides_what_a_change_is(
    before: str | None, after: str | None, plain: str, selected: str | None
) -> None:
    core = MVCC()
    if before is not None:
        core.create(KEY, VALUE, OFFSET, index(before))
    if before is None and after is not None:
        change = core.create(KEY, VALUE, OFFSET, index(after))
    elif after is None:
        change = core.delete(KEY, None)
    else:
        change = core.update(KEY, VALUE, OFFSET, index(after), core.revision)
    event = unselected_event(change)
    assert event.type == plain
    shown = selected_event(event, is_blue)
    assert (shown and shown.type) == selected
    if shown is not None:
        # also an object that left the selection carries the revision of the change
        assert f'"resourceVersion":"{core.revision}"'.encode() in shown.object.value


def test_a_change_is_in_the_buffer_in_the_same_turn() -> None:
    async def scenario() -> None:
        storage = Storage()
        everything, blue = storage.hub.watch(PODS, None, None), storage.hub.watch(f"{PODS}default/", None, is_blue)
        elsewhere = storage.hub.watch(f"{PODS}other/", None, None)
        storage.create("a", "red")
        storage.recolour("a", "blue")
        assert await seen(everything) == [("ADDED", "a", 2), ("MODIFIED", "a", 3)]
        assert await seen(blue) == [("ADDED", "a", 3)]
        assert await seen(elsewhere) == []
        assert [everything.progress, blue.progress, elsewhere.progress] == [3, 3, 3]

    asyncio.run(scenario())


def test_all_watchers_share_one_event() -> None:
    async def scenario() -> None:
        storage = Storage()
        watchers = [storage.hub.watch(PODS, None, None) for _ in range(3)]
        storage.create("a")
        batches = [await watcher.next_batch(0.0) or [] for watcher in watchers]
        assert len({id(batch[0]) for batch in batches}) == 1

    asyncio.run(scenario())


def test_a_watch_of_the_past_begins_with_the_history() -> None:
    async def scenario() -> None:
        storage = Storage()
        for name in "abc":
            storage.create(name)
        watcher = storage.hub.watch(PODS, 2, None)
        storage.create("d")
        assert await seen(watcher) == [("ADDED", "b", 3), ("ADDED", "c", 4), ("ADDED", "d", 5)]
        storage.create("e")
        assert await seen(watcher) == [("ADDED", "e", 6)]

    asyncio.run(scenario())


def test_a_watch_of_the_future_waits_for_its_revision() -> None:
    async def scenario() -> None:
        storage = Storage()
        watcher = storage.hub.watch(PODS, 3, None)
        for name in "abc":
            storage.create(name)
        assert await seen(watcher) == [("ADDED", "c", 4)]

    asyncio.run(scenario())


def test_a_watcher_that_falls_behind_reads_the_history_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_BUFFERED_EVENTS", 3)

    async def scenario() -> None:
        storage = Storage()
        watcher = storage.hub.watch(PODS, None, None)
        for name in "abcdefgh":
            storage.create(name)
        assert watcher.progress == 1
        batches = []
        while batch := await seen(watcher):
            batches.append([name for _, name, _ in batch])
        assert batches == [["a", "b", "c"], ["d", "e", "f"], ["g", "h"]]
        assert watcher.progress == 9

    asyncio.run(scenario())


def test_a_watcher_that_fell_behind_reads_little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events belong to it alone."""
    monkeypatch.setattr(watch, "_CATCH_UP_BYTES", 2 * len(VALUE))

    async def scenario() -> None:
        storage = Storage()
        for name in "abcdefgh":
            storage.create(name)
        watcher = storage.hub.watch(PODS, 1, None)
        batches = []
        while batch := await seen(watcher):
            batches.append("".join(name for _, name, _ in batch))
        assert batches == ["ab", "cd", "ef", "gh"]

    asyncio.run(scenario())


def test_watchers_whose_selector_no_longer_matches_share_the_last_state() -> None:
    async def scenario() -> None:
        storage = Storage()
        storage.create("a")
        watchers = [storage.hub.watch(PODS, None, is_blue) for _ in range(3)]
        storage.recolour("a", "red")
        batches = [await watcher.next_batch(0.0) or [] for watcher in watchers]
        assert [[event.type for event in batch] for batch in batches] == [["DELETED"]] * 3
        assert len({id(batch[0].object) for batch in batches}) == 1

    asyncio.run(scenario())


def test_a_watcher_whose_history_is_forgotten_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_BUFFERED_EVENTS", 1)

    async def scenario() -> None:
        storage = Storage()
        watcher = storage.hub.watch(PODS, None, None)
        for name in "abc":
            storage.create(name)
        storage.core.compact(4)
        assert await seen(watcher) == [("ADDED", "a", 2)]
        assert await watcher.next_batch(0.0) is None
        assert len(storage.hub) == 0

    asyncio.run(scenario())


def test_what_is_buffered_is_handed_out_before_the_end() -> None:
    async def scenario() -> None:
        storage = Storage()
        watcher = storage.hub.watch(PODS, None, None)
        storage.create("a")
        storage.hub.end_all()
        storage.create("b")
        assert await seen(watcher) == [("ADDED", "a", 2)]
        assert await watcher.next_batch(0.0) is None

    asyncio.run(scenario())


def remove_together(storage: Storage, names: list[str]) -> None:
    """Deletes objects at one revision, as etcd does with the keys of a lease."""
    revision = storage.core.revision + 1
    for name in names:
        last = storage.core.get(f"{PODS}default/{name}")
        assert last is not None
        storage.hub.publish(storage.core.commit(removal(last, revision)))


@pytest.mark.parametrize("room", [10, 3, 2, 1])
def test_changes_of_one_revision_are_handed_out_once_each(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they fit into the buffer, or are read from the history because they don't."""
    monkeypatch.setattr(watch, "MAX_BUFFERED_EVENTS", room)

    async def scenario() -> None:
        storage = Storage()
        names = ["a", "b", "c"]
        for name in names:
            storage.create(name)
        live, late = storage.hub.watch(PODS, None, None), storage.hub.watch(PODS, storage.core.revision, None)
        storage.create("d")
        remove_together(storage, names)
        storage.create("e")
        expected = [("ADDED", "d", 5), *(("DELETED", name, 6) for name in names), ("ADDED", "e", 7)]
        for watcher in (live, late, storage.hub.watch(PODS, 4, None)):
            events = []
            while batch := await seen(watcher):
                events += batch
            assert events == expected

    asyncio.run(scenario())


class Client:
    """Reads a watch by a task, and by a sink as long as it takes events. It notes which of them got each event."""

    def __init__(self, watcher: BufferedWatcher) -> None:
        self.watcher = watcher
        self.takes = True
        self.got: list[tuple[str, str]] = []
        self.busy = asyncio.Event()
        self.busy.set()
        watcher.sink = self.take
        self.task = asyncio.ensure_future(self.read())

    def take(self, events: list[Event]) -> bool:
        if self.takes:
            self.note("sink", events)
        return self.takes

    def note(self, way: str, events: list[Event]) -> None:
        self.got += [(way, event.object.key.rpartition("/")[2]) for event in events]

    async def read(self) -> None:
        while (events := await self.watcher.next_batch(60.0)) is not None:
            self.note("task", events)
            await self.busy.wait()


async def rest(hub: Hub) -> None:
    """Returns when no watcher waits to be served."""
    for _ in range(1000):
        await asyncio.sleep(0)
        if not (hub.ready or hub.woken):
            break
        await asyncio.sleep(0.001)
    for _ in range(3):
        await asyncio.sleep(0)


def test_events_go_to_the_sink_and_by_the_task_where_it_takes_none() -> None:
    async def scenario() -> None:
        storage = Storage()
        client = Client(storage.hub.watch(PODS, None, is_blue))
        await asyncio.sleep(0)
        storage.create("a")
        storage.create("red", "red")
        assert storage.hub.ready
        await rest(storage.hub)
        client.takes = False
        client.busy.clear()  # as a slow client's connection is
        storage.create("b")
        await rest(storage.hub)
        client.takes = True
        storage.create("c")
        storage.create("d")
        await rest(storage.hub)
        assert client.got == [("sink", "a"), ("task", "b")]
        assert storage.hub.unread == 2 * len(VALUE) + 2 * len('"resourceVersion":"5",')
        client.busy.set()
        await rest(storage.hub)
        storage.create("e")
        await rest(storage.hub)
        assert client.got == [("sink", "a"), ("task", "b"), ("task", "c"), ("task", "d"), ("sink", "e")]
        assert storage.hub.unread == 0
        client.watcher.end()
        await client.task

    asyncio.run(scenario())


def test_many_watchers_are_served_in_turns_and_get_everything_in_order() -> None:
    async def scenario() -> None:
        storage = Storage()
        clients = [Client(storage.hub.watch(PODS, None, None)) for _ in range(200)]
        late = Client(storage.hub.watch(PODS, None, None))
        late.takes = False
        await asyncio.sleep(0)
        for number in range(50):
            storage.create(f"{number}")
            if number % 7 == 0:
                await asyncio.sleep(0)
        clients[0].watcher.close()  # while it waits to be served
        await rest(storage.hub)
        names = [f"{number}" for number in range(50)]
        assert [[name for _, name in client.got] for client in clients[1:]] == [names] * 199
        assert [name for _, name in late.got] == names
        assert {way for client in clients for way, _ in client.got} == {"sink"}
        storage.hub.end_all()
        await asyncio.gather(*(client.task for client in (*clients, late)))

    asyncio.run(scenario())


def test_watchers_get_no_long_turn_after_a_long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def later() -> float:
        nonlocal now
        now += 0.001
        return now

    async def scenario() -> None:
        nonlocal now
        monkeypatch.setattr(watch, "perf_counter", later)
        storage = Storage()
        clients = [Client(storage.hub.watch(PODS, None, None)) for _ in range(200)]
        await asyncio.sleep(0)
        storage.create("a")
        now += 1.0
        await asyncio.sleep(0)
        assert 0 < sum(bool(client.got) for client in clients) <= 6 * watch._SERVED_AT_ONCE
        storage.hub.end_all()
        await asyncio.gather(*(client.task for client in clients))

    asyncio.run(scenario())


def test_busy_readers_are_bounded_in_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the history is their buffer."""
    monkeypatch.setattr(watch, "MAX_UNREAD_BYTES", 1000)

    async def scenario() -> None:
        storage = Storage()
        watchers = [storage.hub.watch(PODS, None, None) for _ in range(10)]
        for number in range(100):
            storage.create(f"{number}")
            assert storage.hub.unread <= 1000 + len(watchers) * 100
        for watcher in watchers:
            names: list[str] = []
            while batch := await seen(watcher):
                names += [name for _, name, _ in batch]
            assert names == [f"{number}" for number in range(100)]
        assert storage.hub.unread == 0

    asyncio.run(scenario())


def test_a_watch_whose_sink_fails_ends_and_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        storage = Storage()
        broken, sound = (Client(storage.hub.watch(PODS, None, None)) for _ in range(2))

        def fail(events: list[Event]) -> bool:
            raise RuntimeError("on purpose")

        broken.watcher.sink = fail
        await asyncio.sleep(0)
        storage.create("a")
        await rest(storage.hub)
        await broken.task
        storage.create("b")
        await rest(storage.hub)
        assert broken.got == []
        assert sound.got == [("sink", "a"), ("sink", "b")]
        storage.hub.end_all()
        await sound.task

    asyncio.run(scenario())
    assert "on purpose" in caplog.text
