"""The checks: each returns what is wrong with a history, as sentences. Pure.

Upstream: the promises are those of etcd (website/content/en/docs/v3.6/learning/api_guarantees.md) and the nine of watches are those of its
tests/robustness/validate/watch.go.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from conformance.robustness.history import History, Logged, Read

State = dict[str, tuple[int, str]]


def problems(history: History) -> list[str]:
    """Everything that is wrong, each with the name of its check."""
    return [f"{check.__name__}: {text}" for check in CHECKS for text in check(history)]


def revisions_are_dense(history: History) -> Iterator[str]:
    """A transaction of etcd may write several keys in one revision."""
    last = history.since
    for logged in history.log:
        if logged.revision not in (last, last + 1):
            yield f"revision {logged.revision} follows {last}"
        last = logged.revision


def revisions_are_unique(history: History) -> Iterator[str]:
    """No two answers, and no two watches, know different writes by one revision."""
    known: dict[int, tuple[str, str]] = {}
    answers = [(write.revision, write.name, write.value) for write in history.writes if write.revision]
    events = [
        (event.revision, event.name, event.value) for watch in history.watches for event in watch.events if event.name
    ]
    for revision, name, value in [*answers, *events]:
        if known.setdefault(revision, (name, value)) != (name, value):
            yield f"revision {revision} is {known[revision]} and {(name, value)}"


def nothing_answered_is_lost(history: History) -> Iterator[str]:
    logged = {each.revision: each for each in history.log}
    for write in history.writes:
        if write.outcome != "done":
            continue
        found = logged.get(write.revision)
        if found is None or (found.name, found.value) != (write.name, write.value):
            yield f"{write.verb} {write.name} {write.value} was answered with {write.revision}, where the log has {found}"


def nothing_happens_twice(history: History) -> Iterator[str]:
    seen: dict[tuple[str, bool], int] = {}
    for logged in history.log:
        if logged.name and not logged.deleted:
            first = seen.setdefault((logged.value, logged.deleted), logged.revision)
            if first != logged.revision:
                yield f"{logged.name} {logged.value} is at {first} and {logged.revision}"


def nothing_happens_that_nobody_did(history: History) -> Iterator[str]:
    """Every revision is a write that was sent, and wasn't refused."""
    written = {write.value for write in history.writes if write.verb != "delete" and write.outcome != "refused"}
    deleted = {write.expected for write in history.writes if write.verb == "delete" and write.outcome != "refused"}
    for logged in history.log:
        if logged.name and (logged.previous not in deleted if logged.deleted else logged.value not in written):
            yield f"nobody made {logged}"


def compare_and_swap_is_honest(history: History) -> Iterator[str]:
    """A write replaces what it expected, and that is what was there."""
    by_value = {write.value: write for write in history.writes if write.verb != "delete"}
    newest: dict[str, int] = {}
    for logged in history.log:
        if not logged.name:
            continue
        if logged.previous != newest.get(logged.name, 0):
            yield f"{logged} replaces {logged.previous}, but {newest.get(logged.name, 0)} was there"
        write = None if logged.deleted else by_value.get(logged.value)
        if write is not None and write.expected != logged.previous:
            yield f"{logged} replaces {logged.previous}, but its client expected {write.expected}"
        newest[logged.name] = 0 if logged.deleted else logged.revision


def reads_are_consistent(history: History) -> Iterator[str]:
    """A list shows the state of its revision, and all that was answered before it was asked for."""
    states = _States(history.log)
    answered = sorted((write.ended, write.revision) for write in history.writes if write.outcome == "done")
    highest: list[int] = []
    for _, revision in answered:
        highest.append(max(revision, highest[-1] if highest else 0))
    ends = [ended for ended, _ in answered]
    for read in history.reads:
        index = bisect_right(ends, read.began)
        if index and read.revision < highest[index - 1]:
            yield f"a list at {read.revision} began after {highest[index - 1]} was answered"
        if read.revision >= history.since and read.objects != states.at(read.revision):
            yield f"a list at {read.revision} differs from the log: {_difference(read, states.at(read.revision))}"


def writes_keep_the_order_of_time(history: History) -> Iterator[str]:
    answered = sorted((write.ended, write.revision) for write in history.writes if write.outcome == "done")
    highest: list[int] = []
    for _, revision in answered:
        highest.append(max(revision, highest[-1] if highest else 0))
    ends = [ended for ended, _ in answered]
    for write in history.writes:
        index = bisect_right(ends, write.began)
        if write.outcome == "done" and index and write.revision < highest[index - 1]:
            yield f"{write.name} {write.value} is at {write.revision}, but began after {highest[index - 1]} was answered"


def watches_are_ordered(history: History) -> Iterator[str]:
    for watch in history.watches:
        last = watch.start
        for event in watch.events:
            if event.revision < last or (event.name and event.revision == last):
                yield f"{event} follows {last}"
            last = max(last, event.revision)


def watches_are_unique(history: History) -> Iterator[str]:
    for watch in history.watches:
        seen: set[tuple[str, int]] = set()
        for event in watch.events:
            if event.name and (event.name, event.revision) in seen:
                yield f"{event} comes twice"
            seen.add((event.name, event.revision))


def watches_are_reliable(history: History) -> Iterator[str]:
    """From its start to its last event, a watch shows every event."""
    for watch in history.watches:
        shown = {event.revision for event in watch.events if event.name}
        if not shown:
            continue
        for logged in history.log:
            if logged.name and watch.start < logged.revision <= max(shown) and logged.revision not in shown:
                yield f"a watch from {watch.start} to {max(shown)} has not shown {logged}"


def bookmarks_come_after_everything_before(history: History) -> Iterator[str]:
    named = [logged.revision for logged in history.log if logged.name]
    for watch in history.watches:
        shown: set[int] = set()
        for event in watch.events:
            if event.name:
                shown.add(event.revision)
            else:
                missing = [
                    revision for revision in named if watch.start < revision <= event.revision and revision not in shown
                ]
                if missing:
                    yield f"a bookmark at {event.revision} came before {missing[:3]}"


def watches_show_what_is_in_the_log(history: History) -> Iterator[str]:
    """An event is ADDED if nothing was there before, and DELETED shows the last state."""
    logged = {each.revision: each for each in history.log}
    values = {each.revision: each.value for each in history.log}
    for watch in history.watches:
        for event in watch.events:
            found = logged.get(event.revision)
            if not event.name or event.revision <= history.since:
                continue
            if found is None or found.name != event.name:
                yield f"{event} isn't in the log, which has {found}"
            elif event.type != _type(found):
                yield f"{event} is {_type(found)}"
            elif event.value != (values.get(found.previous, event.value) if found.deleted else found.value):
                yield f"{event} has another value than the log: {found}"


def _type(logged: Logged) -> str:
    if logged.deleted:
        return "DELETED"
    return "MODIFIED" if logged.previous else "ADDED"


CHECKS: Final[Sequence[Callable[[History], Iterator[str]]]] = (
    revisions_are_dense,
    revisions_are_unique,
    nothing_answered_is_lost,
    nothing_happens_twice,
    nothing_happens_that_nobody_did,
    compare_and_swap_is_honest,
    reads_are_consistent,
    writes_keep_the_order_of_time,
    watches_are_ordered,
    watches_are_unique,
    watches_are_reliable,
    bookmarks_come_after_everything_before,
    watches_show_what_is_in_the_log,
)


class _States:
    """The state at each revision of a log."""

    def __init__(self, log: Sequence[Logged]) -> None:
        self._revisions = [0]
        self._states: list[State] = [{}]
        for logged in log:
            if not logged.name:
                continue
            state = {**self._states[-1]}
            if logged.deleted:
                state.pop(logged.name, None)
            else:
                state[logged.name] = (logged.revision, logged.value)
            self._revisions.append(logged.revision)
            self._states.append(state)

    def at(self, revision: int) -> State:
        return self._states[bisect_right(self._revisions, revision) - 1]


def _difference(read: Read, state: Mapping[str, tuple[int, str]]) -> str:
    names = [name for name in sorted({*read.objects, *state}) if read.objects.get(name) != state.get(name)]
    return ", ".join(f"{name} is {read.objects.get(name)} in place of {state.get(name)}" for name in names[:3])
