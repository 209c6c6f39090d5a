"""Watchers: each has a bounded buffer; a write offers its change to all in the same turn of the event loop, and waits for none.

A watcher that falls behind its bound drops its buffer and catches up from the history by its last revision; when the history
has forgotten that revision it ends, cleanly and without an error event, and its client resumes from the last revision it saw.

Upstream: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go; invariants: etcd's tests/robustness/validate/watch.go.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final, Protocol

from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.storage.interface import Compacted, Event, Predicate, StoredObject
from fakeapiserver.storage.mvcc import MVCC, Change
from fakeapiserver.storage.versioner import restamp

log = logging.getLogger(__name__)

MAX_BUFFERED_EVENTS: Final = 1000
MAX_BUFFERED_BYTES: Final = 4 * 1024 * 1024
# Bytes that all watchers together buffer while their readers are busy, as those of slow clients are.
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024
# Bytes after which a watcher that has fallen behind reads no more of the history at once: what it hasn't sent yet is held by it alone.
_CATCH_UP_BYTES: Final = 64 * 1024
# Watchers with a sink are served in rounds. In a turn of the event loop they get at least this many seconds, and this share of the time
# since they were last served, but no more than the most, so that neither they nor requests wait for long; the time is looked at after so
# many watchers.
_LEAST_SERVICE: Final = 0.0002
_MOST_SERVICE: Final = 0.005
_SERVICE: Final = 0.25
_SERVED_AT_ONCE: Final = 8
# A round takes a third of the time from its beginning to the next one's, so that changes which follow each other leave together. The next
# one begins after so many seconds at the latest, and at once if it would be less than the minimum, since a timer takes a millisecond.
_ROUND: Final = 3.0
_MIN_PAUSE: Final = 0.0003
_MAX_PAUSE: Final = 0.003
# Times to look whether all were served, a pause after each.
_LOOKS: Final = 20
# In a burst of writes many readers are woken together a little later, so that each gets several events at once: this many
# seconds for each reader, and never more than the maximum.
_BURST_DELAY: Final = 0.0001
_MAX_BURST_DELAY: Final = 0.002
# Writes that follow each other within this many seconds are a burst.
_BURST_WINDOW: Final = 0.1
_BURST_WATCHERS: Final = 8
# Seconds within which a client that reads its watch promptly has read what was sent; a real server takes about as long for a write.
_READING: Final = 0.002
# Turns of the event loop within which a watch of this process does so. With a seed they are waited for instead, since the order of later
# writes must not depend on the machine's time.
_READING_TURNS: Final = 20


def unselected_event(change: Change) -> Event:
    """The change as a watcher without a selector sees it."""
    if change.current is None:
        assert change.tombstone is not None
        return Event("DELETED", change.tombstone, change.previous, change.revision)
    kind: Final = "MODIFIED" if change.previous is not None else "ADDED"
    return Event(kind, change.current, change.previous, change.revision)


def selected_event(event: Event, predicate: Predicate) -> Event | None:
    """The event as a watcher with a selector sees it: objects that begin to match are ADDED, those that cease to match are DELETED."""
    seen = event.previous is not None and predicate(event.previous)
    if event.type == "DELETED":
        return event if seen else None
    sees = predicate(event.object)
    if sees and seen:
        return event
    if sees:
        return event if event.type == "ADDED" else Event("ADDED", event.object, event.previous, event.revision)
    if not seen or event.previous is None:
        return None
    last = event.previous
    if event.gone is None:
        value = restamp(last.value, last.offset, event.revision)
        event.gone = StoredObject(last.key, value, event.revision, last.create_revision, last.index, last.offset)
    return Event("DELETED", event.gone, last, event.revision)


# Takes events that come while the reader waits, and returns true; false if it can't now.
Sink = Callable[[list[Event]], bool]


class BufferedWatcher:
    """A watch. Only one task may iterate it: its reader. While the reader waits for the next batch, events go to `sink`, if there is one:
    that costs no switch of tasks. The reader is woken when the sink takes nothing, when its time is up, and at the end.
    """

    __slots__ = (
        "_buffer",
        "_bytes",
        "_closed",
        "_hub",
        "_is_queued",
        "_lagging",
        "_predicate",
        "_prefix",
        "_revision",
        "_start",
        "_unread",
        "_waiting",
        "sink",
    )

    def __init__(self, hub: "Hub", prefix: str, revision: int, predicate: Predicate | None) -> None:
        self._hub = hub
        self._prefix = prefix
        self._predicate = predicate
        self._buffer: list[Event] = []
        self._bytes = 0
        self._unread = 0  # bytes of events that came while the reader was busy
        self._is_queued = False
        self.sink: Sink | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._lagging = False
        self._closed = False
        self._start = revision
        # Everything up to here was offered, and what was wanted of it is in the buffer or handed out. Several changes may have one
        # revision, since etcd deletes all keys of a lease at once: these are offered in one turn of the event loop.
        self._revision = revision

    @property
    def progress(self) -> int:
        """The newest revision that was handed out; events in the buffer or in the history weren't."""
        if self._buffer:
            return self._buffer[0].revision - 1
        return self._revision if self._lagging else max(self._revision, self._hub.revision)

    def resume(self) -> None:
        """Starts in the past: the first batch comes from the history."""
        self._lagging = True

    def offer(self, event: Event) -> None:
        """Called by a write, for every change below the prefix."""
        if self._closed:
            return
        if self._lagging:
            self.wake()
            return
        if event.revision <= self._start:
            return  # a watch from the future waits for its revision
        self._revision = event.revision
        seen = event if self._predicate is None else selected_event(event, self._predicate)
        if seen is None:
            return
        hub = self._hub
        if (
            len(self._buffer) >= MAX_BUFFERED_EVENTS
            or self._bytes > MAX_BUFFERED_BYTES
            or (self._unread and hub.unread > MAX_UNREAD_BYTES)
        ):
            # From here on the history is the buffer. What is buffered already is still handed out first, up to the revision before.
            self._lagging = True
            while self._buffer and self._buffer[-1].revision == event.revision:
                self._buffer.pop()
            self._revision = event.revision - 1
            return
        self._buffer.append(seen)
        size = len(seen.object.value)
        self._bytes += size
        waiting = self._waiting
        if waiting is None or waiting.done():
            self._unread += size
            hub.unread += size
        elif self.sink is None:
            hub.woken[self] = None
        elif not self._is_queued:
            self._is_queued = True
            hub.ready.append(self)

    def deliver(self) -> None:
        """Passes what is buffered to the sink, or wakes the reader if it takes nothing now."""
        self._is_queued = False
        waiting, sink = self._waiting, self.sink
        if waiting is None or waiting.done() or not self._buffer:
            return
        if sink is None or self._lagging:
            self.wake()
            return
        try:
            is_taken = sink(self._buffer)
        except Exception:
            log.exception("a watch ends, because its events can't be sent")
            self.close()
            return
        if is_taken:
            self._taken()
        else:
            self.wake()

    def _taken(self) -> list[Event]:
        """Empties the buffer, and returns what was in it."""
        batch, self._buffer, self._bytes = self._buffer, [], 0
        self._hub.unread -= self._unread
        self._unread = 0
        return batch

    async def next_batch(self, timeout: float) -> list[Event] | None:
        if not self._buffer and not self._closed and not self._lagging:
            await self._wait(timeout)
        if self._closed and not self._buffer:
            return None
        batch = self._taken()
        if self._lagging and not batch:
            return self._catch_up()
        return batch

    def _catch_up(self) -> list[Event] | None:
        """The missed events, from the history. Closes the watch and returns None if the history has forgotten them."""
        try:
            missed = self._hub.events_after(self._prefix, self._revision)
        except Compacted:
            self.close()
            return None
        batch: list[Event] = []
        size = 0
        for event in missed:
            is_full = len(batch) >= MAX_BUFFERED_EVENTS or size > _CATCH_UP_BYTES
            if is_full and event.revision > self._revision:
                return batch  # the rest next time
            self._revision = event.revision
            predicate = self._predicate
            seen = event if predicate is None else selected_event(event, predicate)
            if seen is not None:
                batch.append(seen)
                size += len(seen.object.value)
        self._lagging = False
        self._revision = self._hub.revision
        return batch

    async def _wait(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_later(max(timeout, 0.0), self.wake)
        try:
            await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def end(self) -> None:
        """Ends the watch for the storage: buffered events are still handed out, then None."""
        self._closed = True
        self.wake()

    def close(self) -> None:
        self.end()
        self.sink = None
        self._taken()
        self._hub.woken.pop(self, None)
        self._hub.forget(self, self._prefix)


class ChangeObserver(Protocol):
    """Records changes of the storage, for a time line."""

    def published(self, change: Change) -> None:
        """Called for each change, in the order of revisions, before watchers see it."""

    def interrupted(self) -> None:
        """Called when all watches end: the objects may have changed otherwise."""


class Hub:
    """All watchers of a storage, by the prefix they watch."""

    def __init__(self, mvcc: MVCC, chance: Chance = UNSEEDED) -> None:
        self._mvcc = mvcc
        # Both in the order in which they were added, which a set would not keep.
        self._watchers: dict[str, dict[BufferedWatcher, None]] = {}
        # Watchers with something new whose readers aren't woken yet, and those whose sinks haven't got it yet.
        self.woken: dict[BufferedWatcher, None] = {}
        self.ready: deque[BufferedWatcher] = deque()
        # Bytes that are buffered for readers that are busy.
        self.unread = 0
        self._is_serving = False
        self._served = 0.0  # the time up to which watchers were served
        self._begun = 0.0  # the time at which the round began
        self._round = 0  # watchers that are still to be served in this round
        self._service = 0.0  # seconds that the round has taken so far
        # With a seed, watchers are woken in an order that depends on it.
        self._order = chance.source("watchers") if chance.seed is not None else None
        # Reports whether clients outside of this process watch.
        self.has_clients: Callable[[], bool] = lambda: True
        self.observer: ChangeObserver | None = None
        self._last_publish = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def revision(self) -> int:
        return self._mvcc.revision

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def watch(self, prefix: str, revision: int | None, predicate: Predicate | None) -> BufferedWatcher:
        """A watcher from `revision` on; one from the future waits silently, as upstream does. Raises Compacted if `revision` is
        forgotten."""
        start = self.revision if revision is None else revision
        watcher = BufferedWatcher(self, prefix, start, predicate)
        if start < self.revision:
            self._mvcc.check_watchable(start)
            watcher.resume()
        self._watchers.setdefault(prefix, {})[watcher] = None
        return watcher

    def publish(self, change: Change) -> None:
        """Offers the change to its watchers, in the turn of the commit: as one event object, so that it is encoded once."""
        event: Event | None = None
        if self.observer is not None:
            self.observer.published(change)
        for prefix in _prefixes(change.key) if self._watchers else ():
            for watcher in self._watchers.get(prefix, ()):
                if event is None:
                    event = unselected_event(change)
                watcher.offer(event)
        if self.ready and not self._is_serving:
            self._begin_round()
        if self.woken:
            self._wake_soon()

    def _begin_round(self) -> None:
        self._is_serving = True
        now, loop = perf_counter(), asyncio.get_running_loop()
        pause = min(self._service * _ROUND, _MAX_PAUSE) - (now - self._begun)
        self._served, self._service, self._round = now, 0.0, 0
        if pause > _MIN_PAUSE:
            loop.call_later(pause, self._serve)
        else:
            loop.call_soon(self._serve)

    def _serve(self) -> None:
        """Delivers to watchers with a sink, in the order in which they wait. The rest is served in the next turn of the event loop:
        requests have theirs in between, and their writes are delivered together with these.
        """
        now = begin = perf_counter()
        end = now + min(max(_LEAST_SERVICE, (now - self._served) * _SERVICE), _MOST_SERVICE)
        ready = self.ready
        if not self._round:
            self._round, self._begun = len(ready), now
        while self._round and now < end:
            count = min(self._round, _SERVED_AT_ONCE)
            for _ in range(count):
                ready.popleft().deliver()
            self._round -= count
            now = perf_counter()
        self._served = now
        self._service += now - begin
        if self._round:
            asyncio.get_running_loop().call_soon(self._serve)
        elif ready:
            self._begin_round()
        else:
            self._is_serving = False

    async def delivered(self, key: str) -> None:
        """See Storage. In a burst some watchers get their events later, so they are waited for as well."""
        if not any(prefix in self._watchers for prefix in _prefixes(key)):
            return
        if self._order is not None and not self.has_clients():
            for _ in range(_READING_TURNS):
                await asyncio.sleep(0)
            return
        for _ in range(_LOOKS):
            if not self.ready:
                break
            await asyncio.sleep(_MAX_PAUSE / 2)
        woken_in = 0.0 if self._timer is None else self._timer.when() - asyncio.get_running_loop().time()
        await asyncio.sleep(max(woken_in, 0.0) + _READING)

    def _wake_soon(self) -> None:
        """Wakes readers at once after a single write or if they are few, and a little later, together, in a burst."""
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        burst = len(self.woken) > _BURST_WATCHERS and now - self._last_publish < _BURST_WINDOW
        burst = burst and (self._order is None or self.has_clients())
        self._last_publish = now
        if burst:
            delay = min(_BURST_DELAY * len(self.woken), _MAX_BURST_DELAY)
            self._timer = loop.call_later(delay, self._wake_all)
        else:
            self._wake_all()

    def _wake_all(self) -> None:
        self._timer = None
        woken, self.woken = [*self.woken], {}
        if self._order is not None:
            self._order.shuffle(woken)
        for watcher in woken:
            watcher.wake()

    def events_after(self, prefix: str, revision: int) -> Iterator[Event]:
        changes = self._mvcc.changes_after(revision)
        return (unselected_event(change) for change in changes if change.key.startswith(prefix))

    def forget(self, watcher: BufferedWatcher, prefix: str) -> None:
        watchers = self._watchers.get(prefix)
        if watchers is not None:
            watchers.pop(watcher, None)
            if not watchers:
                del self._watchers[prefix]

    def end_all(self) -> None:
        for watchers in list(self._watchers.values()):
            for watcher in watchers:
                watcher.end()
        self._watchers.clear()
        if self.observer is not None:
            self.observer.interrupted()


def _prefixes(key: str) -> list[str]:
    """`/registry/pods/default/web` -> every prefix a watch of it may have."""
    prefixes, at = [], key.find("/", 1)
    while at >= 0:
        prefixes.append(key[: at + 1])
        at = key.find("/", at + 1)
    return prefixes
