"""Bugs of the watches that all storages share."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import structs

from conformance.robustness.bug import planted
from fakeapiserver.storage import watch
from fakeapiserver.storage.interface import Event
from fakeapiserver.storage.mvcc import Change

_counter: Final = itertools.count(1)


def _now_and_then(every: int) -> bool:
    return next(_counter) % every == 0


def _publishing(change: Callable[[Callable[[Change], None], Change], None]) -> None:
    publish = watch.Hub.publish

    def changed(self: watch.Hub, made: Change) -> None:
        change(lambda each: publish(self, each), made)

    watch.Hub.publish = changed  # type: ignore[method-assign, assignment]


@planted()
def skipped_events() -> None:
    """A watch doesn't show every event."""
    _publishing(lambda publish, change: None if _now_and_then(30) else publish(change))


@planted()
def swapped_events() -> None:
    """Two events come in the other order."""
    held: list[Change] = []

    def swapped(publish: Callable[[Change], None], change: Change) -> None:
        if held:
            publish(structs.replace(change))
            publish(held.pop())
        elif _now_and_then(30):
            held.append(change)
        else:
            publish(change)

    _publishing(swapped)
    offer = watch.BufferedWatcher.offer

    def offered(self: watch.BufferedWatcher, event: Event) -> None:
        self._revision = min(self._revision, event.revision - 1)
        offer(self, event)

    watch.BufferedWatcher.offer = offered  # type: ignore[method-assign]


@planted()
def repeated_events() -> None:
    """A resumed watch shows its last event again."""
    opened = watch.Hub.watch

    def earlier(self: watch.Hub, prefix: str, revision: int | None, predicate: Any) -> watch.BufferedWatcher:
        return opened(self, prefix, revision - 3 if revision else revision, predicate)

    watch.Hub.watch = earlier  # type: ignore[method-assign]


@planted()
def gaps_after_resuming() -> None:
    """A resumed watch misses its first events."""
    after = watch.Hub.events_after

    def later(self: watch.Hub, prefix: str, revision: int) -> Iterator[Event]:
        return itertools.islice(after(self, prefix, revision), 2, None)

    watch.Hub.events_after = later  # type: ignore[method-assign]


@planted()
def wrong_types() -> None:
    """Some changes of an object are shown as new objects."""
    unselected = watch.unselected_event

    def mistaken(change: Change) -> Event:
        event = unselected(change)
        return structs.replace(event, type="ADDED") if event.type == "MODIFIED" and _now_and_then(30) else event

    watch.unselected_event = mistaken


@planted()
def early_bookmarks() -> None:
    """A bookmark names a revision whose events weren't shown yet."""
    progress = watch.BufferedWatcher.progress.fget  # type: ignore[attr-defined]
    watch.BufferedWatcher.progress = property(lambda self: progress(self) + 40)  # type: ignore[assignment, method-assign]
