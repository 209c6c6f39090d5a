"""A watcher with a fault: its events come later, merged, or not all."""

import asyncio
from typing import Final

from fakeapiserver.clock import Timers
from fakeapiserver.endpoints.request import ResponseBroken
from fakeapiserver.faults import answers
from fakeapiserver.faults.rule import Fault
from fakeapiserver.storage.interface import Event, Watcher

# The newest state of an object, as the event that a client should get in place of two: (earlier, later) -> the merged one.
_MERGED: Final = {
    ("ADDED", "MODIFIED"): "ADDED",
    ("MODIFIED", "MODIFIED"): "MODIFIED",
    ("MODIFIED", "DELETED"): "DELETED",
    ("ADDED", "DELETED"): "",
}


class FaultyWatcher:
    """Hands out the events of `source` as the fault lets it. Once `removed` is set, what was held back comes at once."""

    def __init__(
        self, source: Watcher, fault: Fault, clock: Timers, removed: asyncio.Event, others: set[Watcher], sent: int
    ) -> None:
        """`others`: the open watchers of the fault, to which this one belongs until it is closed. `sent`: events sent before."""
        self._others = others
        others.add(self)
        self._source = source
        self._fault = fault
        self._clock = clock
        self._removed = removed
        # Events that are held back, with the time at which they were made.
        self._held: list[tuple[float, Event]] = []
        self._sent = sent
        self._count = 0

    @property
    def progress(self) -> int:
        """See Watcher. Zero, which makes no bookmark, if bookmarks are withheld."""
        if not self._fault.bookmarks and not self._removed.is_set():
            return 0
        return self._held[0][1].revision - 1 if self._held else self._source.progress

    def wake(self) -> None:
        self._source.wake()

    def end(self) -> None:
        self._source.end()

    def close(self) -> None:
        self._held.clear()
        self._others.discard(self)
        self._source.close()

    async def next_batch(self, timeout: float) -> list[Event] | None:
        """See Watcher. Raises ResponseBroken to cut the watch, and StatusError 410."""
        if self._is_over():
            self._raise_end()
            return None
        due = self._due()
        if not due:
            # the clock may be moved by hand, the time-out is of the event loop
            timer = self._clock.call_later(self._next(), self._source.wake) if self._held else None
            try:
                events = await self._source.next_batch(timeout)
            finally:
                if timer is not None:
                    timer.cancel()
            if events is None:
                self._held.clear()  # never sent, as by a server that goes down
                return None
            now = self._clock.monotonic()
            self._held += [(now, event) for event in self._unreal(events)]
            due = self._due()
        if self._fault.stop_after is not None and not self._removed.is_set():
            due = due[: self._fault.stop_after - self._sent]
        self._sent += len(due)
        return due

    def _is_over(self) -> bool:
        fault = self._fault
        if self._removed.is_set():
            return False
        if fault.stop_after is not None:
            return self._sent >= fault.stop_after
        return fault.expire == "now"

    def _raise_end(self) -> None:
        """Raises what ends the watch, if it doesn't end cleanly."""
        if self._fault.expire == "now":
            raise answers.expired(str(max(self._source.progress, 1)))
        if self._fault.end == "cut":
            raise ResponseBroken

    # ------------------------------------------------------------------ held back

    def _wait(self) -> float:
        return max(self._fault.delay, self._fault.coalesce)

    def _next(self) -> float:
        """Seconds until something that is held back is due."""
        return max(0.0, self._held[0][0] + self._wait() - self._clock.monotonic())

    def _due(self) -> list[Event]:
        """Removes and returns the held events that are due."""
        if not self._held:
            return []
        if self._removed.is_set():
            ready = len(self._held)
        else:
            now = self._clock.monotonic()
            ready = sum(made + self._wait() <= now for made, _ in self._held)
        if self._fault.coalesce and ready:
            ready = len(self._held)  # all of them belong to one window
        events = [event for _, event in self._held[:ready]]
        del self._held[:ready]
        return coalesced(events) if self._fault.coalesce else events

    def _unreal(self, events: list[Event]) -> list[Event]:
        """Returns the events as no API server sends them."""
        fault = self._fault
        if fault.lose:
            kept = []
            for event in events:
                self._count += 1
                if self._count % fault.lose:
                    kept.append(event)
            events = kept
        if fault.duplicate:
            events = [event for event in events for _ in range(2)]
        if fault.reorder:
            events = _reordered(events)
        return events


def coalesced(events: list[Event]) -> list[Event]:
    """Returns the events with only the last one of each object, as a client sees them that lists again."""
    last: dict[str, Event] = {}
    for event in events:
        earlier = last.pop(event.object.key, None)
        if earlier is None:
            last[event.object.key] = event
            continue
        kind = _MERGED.get((earlier.type, event.type))
        if kind is None:  # deleted and created again: two objects
            last[f"{event.object.key}\0{earlier.revision}"] = earlier
            last[event.object.key] = event
        elif kind:
            last[event.object.key] = Event(kind, event.object, earlier.previous, event.revision)  # type: ignore[arg-type]
    return list(last.values())


def _reordered(events: list[Event]) -> list[Event]:
    """Returns the events with neighbours of different objects in the other order."""
    events = list(events)
    for i in range(0, len(events) - 1, 2):
        if events[i].object.key != events[i + 1].object.key:
            events[i], events[i + 1] = events[i + 1], events[i]
    return events
