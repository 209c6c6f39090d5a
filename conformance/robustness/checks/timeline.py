"""The changes of a history in the order of their revisions, and the times at which each is known to have happened or not."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from conformance.robustness.history import Content, History, Logged, Scope, Write

NOTHING: Final = Content()


class Expected(NamedTuple):
    """An event that a watch has to show."""

    revision: int
    type: str
    name: str
    content: Content


class Timeline:
    """The log of a history with what clients knew of it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.changes: dict[tuple[int, str], Logged] = {}
        self.by_name: dict[str, list[Logged]] = defaultdict(list)
        for logged in history.log:
            if logged.name:
                self.changes[logged.revision, logged.name] = logged
                self.by_name[logged.name].append(logged)
        self.makers = self._makers()
        self._times, self._known = _frontier(self._facts())
        self._expected: dict[Scope, list[Expected]] = {}
        self._places: dict[Scope, dict[tuple[int, str], Expected]] = {}

    def content_before(self, logged: Logged) -> Content:
        """The content of the state that a change replaces."""
        before = self.changes.get((logged.previous, logged.name))
        return NOTHING if before is None or before.deleted else before.content

    def _makers(self) -> dict[tuple[int, str], Write]:
        """The write that has made each change, which its value or its mark shows. Deletions have none."""
        values, marks = dict[str, Write](), dict[str, Write]()
        for write in self.history.writes:
            if write.verb in ("create", "update"):
                values[write.content.value or ""] = write
            elif write.verb != "delete":
                marks[write.content.mark or ""] = write
        makers = {}
        for place, logged in self.changes.items():
            before, content = self.content_before(logged), logged.content
            changed = (
                values.get(content.value or "") if content.value != before.value else marks.get(content.mark or "")
            )
            if changed is not None and not logged.deleted and changed.name == logged.name:
                makers[place] = changed
        return makers

    def began(self, logged: Logged) -> float:
        """The time before which a change can't have happened."""
        write = self.makers.get((logged.revision, logged.name))
        return -math.inf if write is None else write.began

    def _facts(self) -> Iterator[tuple[float, int]]:
        """Times, each with a revision that a client knew then."""
        for write in self.history.writes:
            if write.outcome == "done" and write.revision:
                yield write.ended, write.revision
        for read in self.history.reads:
            yield read.ended, max((read.revision, *(stored.revision for stored in read.objects.values())))
        for watch in self.history.watches:
            for event in watch.events:
                yield event.at, event.revision

    def known_before(self, time: float) -> int:
        """The highest revision that a client knew before the time."""
        index = bisect_left(self._times, time)
        return self._known[index - 1] if index else self.history.since

    def states(self, name: str, began: float, ended: float) -> list[Logged | None]:
        """The states that a request may have met between these times, None for no object."""
        changes = self.by_name.get(name, [])
        index = bisect_right(changes, self.known_before(began), key=lambda logged: logged.revision)
        states = [changes[index - 1] if index else None]
        for logged in changes[index:]:
            if self.began(logged) > ended:
                break
            states.append(logged)
        return [None if logged is None or logged.deleted else logged for logged in states]

    def expected(self, scope: Scope) -> Sequence[Expected]:
        """The events that the log is for a watch of the scope."""
        if scope not in self._expected:
            self._expected[scope] = [*self._events(scope)]
        return self._expected[scope]

    def expected_at(self, scope: Scope) -> Mapping[tuple[int, str], Expected]:
        """The same by revision and name."""
        if scope not in self._places:
            self._places[scope] = {(event.revision, event.name): event for event in self.expected(scope)}
        return self._places[scope]

    def _events(self, scope: Scope) -> Iterator[Expected]:
        contents: dict[str, Content] = {}
        for logged in self.history.log:
            name, before = logged.name, contents.get(logged.name)
            if not name or not scope.selects(name, Content(color=scope.color)):
                continue
            if logged.deleted:
                contents.pop(name, None)
            else:
                contents[name] = logged.content
            was = before is not None and scope.selects(name, before)
            is_now = not logged.deleted and scope.selects(name, logged.content)
            if is_now:
                yield Expected(logged.revision, "MODIFIED" if was else "ADDED", name, logged.content)
            elif was and before is not None:
                yield Expected(logged.revision, "DELETED", name, before)


def _frontier(facts: Iterator[tuple[float, int]]) -> tuple[list[float], list[int]]:
    times, known, highest = list[float](), list[int](), 0
    for time, revision in sorted(facts):
        if revision > highest:
            highest = revision
            times.append(time)
            known.append(revision)
    return times, known
