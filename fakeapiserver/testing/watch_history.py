"""Checks what watchers saw against the log of writes: etcd's promises of a watch, applied to recorded events.

Ordered, unique, reliable (nothing left out up to the last event), filtered by its selector, right in type and content,
and bookmarks that never run ahead of events. Upstream: etcd's tests/robustness/validate/watch.go.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object

Event = dict[str, Any]
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Write(Struct, frozen=True):
    """A write: the object in the answer, or None for a deletion."""

    revision: int
    name: str
    object: Object | None


class Watch(Struct, frozen=True):
    """The events of one watcher, in order, after revision `start`; `selects` is its selector.

    `complete`: it was read until nothing more came, so that every write must be among the events.
    """

    start: int
    events: Sequence[Event]
    selects: Callable[[Object], bool] = lambda obj: True
    complete: bool = True


def state_at(writes: Sequence[Write], revision: int) -> dict[str, Object]:
    """Every object as it was at a revision, by name. `writes` is the whole log, from nothing on."""
    state: dict[str, Object] = {}
    for write in writes:
        if write.revision > revision:
            break
        if write.object is None:
            state.pop(write.name, None)
        else:
            state[write.name] = write.object
    return state


def revision_of(event: Event) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


def split_initial(events: Sequence[Event]) -> tuple[list[Event], int, list[Event]]:
    """The initial events, the revision they show, and what came behind the bookmark that ends them. ValueError without one."""
    for i, event in enumerate(events):
        annotations = event["object"]["metadata"].get("annotations") or {}
        if event["type"] == "BOOKMARK" and INITIAL_EVENTS_END in annotations:
            return list(events[:i]), revision_of(event), list(events[i + 1 :])
    raise ValueError("no bookmark ends the initial events")


def violations(writes: Sequence[Write], watch: Watch) -> list[str]:
    """Every broken promise in words; empty when all are kept."""
    problems: list[str] = []
    expected = list(_expected(writes, watch))
    at, told = 0, watch.start
    for event in watch.events:
        revision = revision_of(event)
        if event["type"] == "BOOKMARK":
            if revision < told:
                problems.append(f"a bookmark of {revision} behind an event of {told}")
            missed = [want for want in expected[at:] if revision_of(want) <= revision]
            if missed:
                problems.append(f"a bookmark of {revision} ahead of {_shown(missed[0])}")
            told = max(told, revision)
            continue
        if revision <= told:
            problems.append(f"{_shown(event)} after {told} was told")
        told = max(told, revision)
        if at < len(expected) and event == expected[at]:
            at += 1
        else:
            wanted = _shown(expected[at]) if at < len(expected) else "nothing"
            problems.append(f"{_shown(event)} where {wanted} was due")
            at = next((i for i, want in enumerate(expected) if revision_of(want) > revision), len(expected))
    if watch.complete and at < len(expected):
        problems.append(f"{_shown(expected[at])} never came")
    return problems


def _expected(writes: Sequence[Write], watch: Watch) -> Iterator[Event]:
    """Yields the events that a watcher must get from the log."""
    state: dict[str, Object] = {}
    for write in writes:
        before, after = state.get(write.name), write.object
        if after is None:
            state.pop(write.name, None)
        else:
            state[write.name] = after
        saw = before is not None and watch.selects(before)
        sees = after is not None and watch.selects(after)
        if write.revision <= watch.start or not (saw or sees):
            continue
        if sees:
            yield {"type": "MODIFIED" if saw else "ADDED", "object": after}
        elif before is not None:
            stamped = {**before["metadata"], "resourceVersion": str(write.revision)}
            yield {"type": "DELETED", "object": {**before, "metadata": stamped}}


def _shown(event: Event) -> str:
    return f"{event['type']} {event['object']['metadata'].get('name', '')} at {revision_of(event)}"
