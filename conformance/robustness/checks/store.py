"""The checks of the store's log, and of writes against it."""

from collections import Counter
from collections.abc import Iterator

from conformance.robustness.checks.timeline import NOTHING, Timeline
from conformance.robustness.history import Content, Logged, Write, merged

# The answers of a server to a write that it doesn't make.
_REFUSALS = frozenset((404, 409, 429))


def revisions_are_dense(timeline: Timeline) -> Iterator[str]:
    """A transaction of etcd may write several keys in one revision."""
    last = timeline.history.since
    for logged in timeline.history.log:
        if logged.revision not in (last, last + 1):
            yield f"revision {logged.revision} follows {last}"
        last = logged.revision


def revisions_are_unique(timeline: Timeline) -> Iterator[str]:
    """No two answers, events and lists know different states of an object by one revision."""
    known: dict[tuple[str, int], Content] = {}
    history = timeline.history
    states = [(write.name, write.revision, write.answer) for write in history.writes if write.answer is not None]
    states += [
        (event.name, event.revision, event.content)
        for watch in history.watches
        for event in watch.events
        if event.name and event.type != "DELETED"
    ]
    states += [
        (name, stored.revision, stored.content) for read in history.reads for name, stored in read.objects.items()
    ]
    names: dict[int, str] = {}
    for name, revision, content in states:
        if known.setdefault((name, revision), content) != content:
            yield f"{name} at revision {revision} is {known[name, revision]} and {content}"
        if names.setdefault(revision, name) != name:
            yield f"revision {revision} is of {names[revision]} and {name}"


def nothing_answered_is_lost(timeline: Timeline) -> Iterator[str]:
    """A write that was answered is in the log as it was answered."""
    for write in timeline.history.writes:
        if write.outcome != "done" or write.verb == "delete":
            continue
        logged = timeline.changes.get((write.revision, write.name))
        if logged is None or logged.deleted or logged.content != write.answer:
            yield f"{_text(write)} was answered with {write.answer} at {write.revision}, where the log has {logged}"


def no_deletion_is_lost(timeline: Timeline) -> Iterator[str]:
    """Each deletion that was answered is in the log, at its time, for itself alone."""
    deletions = {(logged.name, logged.previous): logged for logged in timeline.history.log if logged.deleted}
    done = [write for write in timeline.history.writes if write.outcome == "done" and write.verb == "delete"]
    for write in done:
        if write.expected is not None and (write.name, write.expected) not in deletions:
            yield f"{_text(write)} was answered, but isn't in the log"
        elif write.expected is None:
            known = timeline.known_before(write.began)
            if not any(logged.deleted and logged.revision > known for logged in timeline.by_name[write.name]):
                yield f"{_text(write)} was answered, but the log has none after {known}"
    answered = Counter(write.name for write in done)
    logged = Counter(name for name, _ in deletions)
    for name, count in answered.items():
        if count > logged[name]:
            yield f"{count} deletions of {name} were answered, but the log has {logged[name]}"


def nothing_happens_twice(timeline: Timeline) -> Iterator[str]:
    seen: dict[int, int] = {}
    for (revision, _), write in timeline.makers.items():
        first = seen.setdefault(id(write), revision)
        if first != revision:
            yield f"{_text(write)} is at {first} and {revision}"


def nothing_happens_unasked(timeline: Timeline) -> Iterator[str]:
    """Every change is a write that was sent, and wasn't refused, or the end of a lease."""
    deletions = [write for write in timeline.history.writes if write.verb == "delete" and write.outcome != "refused"]
    conditional = {(write.name, write.expected) for write in deletions}
    unconditional = {write.name for write in deletions if write.expected is None}
    for logged in timeline.by_name.values():
        for change in logged:
            if change.deleted:
                before = timeline.changes.get((change.previous, change.name))
                expires = before is not None and before.has_lease
                if (
                    not expires
                    and change.name not in unconditional
                    and (change.name, change.previous) not in conditional
                ):
                    yield f"no client has deleted {change}"
                continue
            write = timeline.makers.get((change.revision, change.name))
            if write is None:
                yield f"no client has written {change}"
            elif write.outcome == "refused":
                yield f"{_text(write)} was refused with {write.status}, but is {change}"


def compare_and_swap_is_honest(timeline: Timeline) -> Iterator[str]:
    """A write replaces what it expected, and that is what was there. Parts that it doesn't set stay."""
    for changes in timeline.by_name.values():
        newest = 0
        for logged in changes:
            if logged.previous != newest:
                yield f"{logged} replaces {logged.previous}, but {newest} was there"
            newest = 0 if logged.deleted else logged.revision
            write = timeline.makers.get((logged.revision, logged.name))
            if write is None:
                continue
            if write.expected not in (None, logged.previous):
                yield f"{logged} replaces {logged.previous}, but its client expected {write.expected}"
            before = timeline.content_before(logged)
            if not logged.previous:
                before = Content(uid=logged.content.uid)
            if logged.content != (content := merged(write.content, before)):
                yield f"{logged} should be {content}, by {_text(write)}"


def uids_are_unique(timeline: Timeline) -> Iterator[str]:
    """Each object that is created has a uid of its own."""
    known: dict[str | None, Logged] = {}
    for logged in timeline.changes.values():
        if not logged.previous and known.setdefault(logged.content.uid, logged) is not logged:
            yield f"{logged} has the uid of {known[logged.content.uid]}"


def refusals_are_true(timeline: Timeline) -> Iterator[str]:
    """A write is refused with 409 only if its object was, or became, another state than the client expected, and with 404 only if it was
    absent."""
    for write in timeline.history.writes:
        if write.outcome != "refused":
            continue
        if write.status not in _REFUSALS:
            yield f"{_text(write)} was refused with {write.status}"
            continue
        states = timeline.states(write.name, write.began, write.ended)
        if write.status == 404 and None not in states:
            yield f"{_text(write)} was refused with 404, but there was {states}"
        if write.status == 409 and write.expected is not None and not _conflicts(write, states):
            yield f"{_text(write)} was refused with 409, but there was {states}"


def _conflicts(write: Write, states: list[Logged | None]) -> bool:
    return any((0 if state is None else state.revision) != write.expected for state in states)


def writes_keep_the_order_of_time(timeline: Timeline) -> Iterator[str]:
    """A write gets a higher revision than each that a client knew before it was sent."""
    for write in timeline.history.writes:
        known = timeline.known_before(write.began)
        if write.outcome == "done" and write.verb != "delete" and write.revision <= known:
            yield f"{_text(write)} is at {write.revision}, but began after {known} was known"


def leases_are_kept(timeline: Timeline) -> Iterator[str]:
    """Events have a lease in etcd, and aren't deleted before its time."""
    history = timeline.history
    began = {write.name: write.began for write in history.writes if write.name.startswith("events/")}
    for logged in history.log:
        if history.expiry and logged.name in began and not logged.deleted and not logged.has_lease:
            yield f"{logged} has no lease"
    for watch in history.watches:
        for event in watch.events:
            if event.type == "DELETED" and event.at - began.get(event.name, event.at - history.expiry) < history.expiry:
                yield f"{event} comes {event.at - began[event.name]:.3f} seconds after its creation"


def everything_arrives(timeline: Timeline) -> Iterator[str]:
    yield from timeline.history.late


def _text(write: Write) -> str:
    content = write.content
    parts = [
        write.verb,
        write.name,
        *(part for part in (content.value, content.mark) if part and part != NOTHING.value),
    ]
    return " ".join([*parts, f"of {write.client}"])


CHECKS = (
    revisions_are_dense,
    revisions_are_unique,
    nothing_answered_is_lost,
    no_deletion_is_lost,
    nothing_happens_twice,
    nothing_happens_unasked,
    compare_and_swap_is_honest,
    uids_are_unique,
    refusals_are_true,
    writes_keep_the_order_of_time,
    leases_are_kept,
    everything_arrives,
)
