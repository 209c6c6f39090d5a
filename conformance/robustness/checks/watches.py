"""The nine promises of watches, for watches with and without selectors."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from conformance.robustness.checks.timeline import Expected, Timeline
from conformance.robustness.history import Seen, Watch


def watches_are_ordered(timeline: Timeline) -> Iterator[str]:
    for watch in timeline.history.watches:
        last = watch.start
        for event in watch.events:
            if event.revision < last:
                yield f"{_text(watch)}: {event} follows {last}"
            last = max(last, event.revision)


def watches_are_unique(timeline: Timeline) -> Iterator[str]:
    """No event comes twice, nor does a watch show what was before its start."""
    for watch in timeline.history.watches:
        seen: set[tuple[str, int]] = set()
        for event in watch.events:
            if event.name and ((event.name, event.revision) in seen or event.revision <= watch.start):
                yield f"{_text(watch)}: {event} comes again"
            seen.add((event.name, event.revision))


def watches_are_atomic(timeline: Timeline) -> Iterator[str]:
    """If anything follows on an event, all events of its revision are there."""
    for watch in timeline.history.watches:
        shown, last = _shown(watch), max((event.revision for event in watch.events), default=0)
        revisions = {revision for revision, _ in shown}
        for event in _between(timeline, watch, last - 1):
            if event.revision in revisions and (event.revision, event.name) not in shown:
                yield f"{_text(watch)} shows a part of revision {event.revision}, without {event}"


def watches_are_reliable(timeline: Timeline) -> Iterator[str]:
    """Between the first and the last event of a watch, no revision is missing."""
    for watch in timeline.history.watches:
        revisions = {event.revision for event in watch.events if event.name}
        if not revisions:
            continue
        for event in _between(timeline, watch, max(revisions)):
            if event.revision > min(revisions) and event.revision not in revisions:
                yield f"{_text(watch)} has not shown {event}"


def watches_are_resumable(timeline: Timeline) -> Iterator[str]:
    """The first event of a watch is the first one after its start."""
    for watch in timeline.history.watches:
        first = next((event for event in watch.events if event.name), None)
        if first is not None and (missing := _between(timeline, watch, first.revision - 1)):
            yield f"{_text(watch)} begins with {first}, without {missing[0]}"


def watches_are_bookmarkable(timeline: Timeline) -> Iterator[str]:
    """A bookmark comes after everything up to its revision."""
    for watch in timeline.history.watches:
        shown: set[tuple[int, str]] = set()
        for event in watch.events:
            if event.name:
                shown.add((event.revision, event.name))
                continue
            missing = [
                each for each in _between(timeline, watch, event.revision) if (each.revision, each.name) not in shown
            ]
            if missing:
                yield f"{_text(watch)}: a bookmark at {event.revision} came before {missing[0]}"
                break


def watches_are_filtered(timeline: Timeline) -> Iterator[str]:
    """A watch shows what the log has for its selectors, and nothing else."""
    for watch in timeline.history.watches:
        expected = timeline.expected_at(watch.scope)
        for event in watch.events:
            if event.name and event.revision > timeline.history.since and (event.revision, event.name) not in expected:
                logged = timeline.changes.get((event.revision, event.name))
                yield f"{_text(watch)}: {event} doesn't belong there; the log has {logged}"


def creations_are_shown_as_such(timeline: Timeline) -> Iterator[str]:
    """An event is ADDED exactly if the object wasn't there, or wasn't selected, before; and DELETED if it isn't any more."""
    for watch, event, expected in _pairs(timeline):
        if event.type != expected.type:
            yield f"{_text(watch)}: {event} is {expected.type}"


def states_and_previous_states_are_right(timeline: Timeline) -> Iterator[str]:
    """An event shows the state of its revision, that of a deletion the last one before."""
    for watch, event, expected in _pairs(timeline):
        if event.content != expected.content:
            yield f"{_text(watch)}: {event} should show {expected.content}"


def nothing_is_watched_before_it_was_sent(timeline: Timeline) -> Iterator[str]:
    for watch in timeline.history.watches:
        for event in watch.events:
            logged = timeline.changes.get((event.revision, event.name))
            if logged is not None and timeline.began(logged) > event.at:
                yield f"{_text(watch)} shows {logged}, which was sent later"


def _shown(watch: Watch) -> set[tuple[int, str]]:
    return {(event.revision, event.name) for event in watch.events if event.name}


def _between(timeline: Timeline, watch: Watch, last: int) -> Sequence[Expected]:
    """The events that a watch has to show from its start to a revision."""
    events = timeline.expected(watch.scope)
    first = bisect_right(events, max(watch.start, timeline.history.since), key=lambda event: event.revision)
    return events[first : bisect_right(events, last, key=lambda event: event.revision)]


def _pairs(timeline: Timeline) -> Iterator[tuple[Watch, Seen, Expected]]:
    """The events of watches that the log has, too."""
    for watch in timeline.history.watches:
        expected = timeline.expected_at(watch.scope)
        for event in watch.events:
            if (found := expected.get((event.revision, event.name))) is not None:
                yield watch, event, found


def _text(watch: Watch) -> str:
    selected = " ".join(part for part in (watch.scope.resource, watch.scope.color, watch.scope.name) if part)
    return f"the watch of {selected} from {watch.start} by {watch.client}"


CHECKS = (
    watches_are_ordered,
    watches_are_unique,
    watches_are_atomic,
    watches_are_reliable,
    watches_are_resumable,
    watches_are_bookmarkable,
    watches_are_filtered,
    creations_are_shown_as_such,
    states_and_previous_states_are_right,
    nothing_is_watched_before_it_was_sent,
)
