"""A watcher that never shows chosen states of an object, as a watch that broke off before them and was opened again after them."""

import asyncio
from fnmatch import fnmatchcase

from fakeapiserver.faults.watching import coalesced
from fakeapiserver.storage.interface import Event, Watcher
from fakeapiserver.storage.keys import ROOT, resource_of


class StateCounter:
    """Numbers the states of the first object that matches `pattern` (`NAME` or `NAMESPACE/NAME`), from 1, for all watchers of a fault."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._key = ""
        self._numbers: dict[int, int] = {}

    def number(self, event: Event) -> int:
        """Returns the number of the state that the event shows; 0 for another object."""
        key = event.object.key
        if not self._key and self._matches(key):
            self._key = key
        if key != self._key:
            return 0
        return self._numbers.setdefault(event.revision, len(self._numbers) + 1)

    def _matches(self, key: str) -> bool:
        place = key.removeprefix(f"{ROOT}/{resource_of(key)}/")
        return fnmatchcase(place if "/" in self._pattern else place.rpartition("/")[2], self._pattern)


class UnobservingWatcher:
    """Hands out the events of `source`. From the first of the chosen states on it holds back all events, since a watch keeps their order,
    and sends the last one of each object when the state after the chosen ones is there, or once `removed` is set."""

    def __init__(
        self,
        source: Watcher,
        counter: StateCounter,
        states: tuple[int, int],
        removed: asyncio.Event,
        others: set[Watcher],
    ) -> None:
        """`others`: the open watchers of the fault, to which this one belongs until it is closed."""
        self._source = source
        self._counter = counter
        self._first, self._last = states
        self._removed = removed
        self._others = others
        others.add(self)
        self._held: list[Event] = []

    @property
    def progress(self) -> int:
        """See Watcher."""
        return self._held[0].revision - 1 if self._held else self._source.progress

    def wake(self) -> None:
        self._source.wake()

    def end(self) -> None:
        self._source.end()

    def close(self) -> None:
        self._held.clear()
        self._others.discard(self)
        self._source.close()

    async def next_batch(self, timeout: float) -> list[Event] | None:
        """See Watcher."""
        events = [] if self._removed.is_set() and self._held else await self._source.next_batch(timeout)
        if events is None:
            self._held.clear()  # never sent, as by a server that goes down
            return None
        sent: list[Event] = []
        for event in events:
            number = self._counter.number(event)
            if self._held or self._first <= number <= self._last:
                self._held.append(event)
            else:
                sent.append(event)
            if number > self._last:
                sent += self._released()
        if self._removed.is_set():
            sent += self._released()
        return sent

    def _released(self) -> list[Event]:
        events = coalesced(self._held)
        self._held.clear()
        return events
