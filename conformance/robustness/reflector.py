"""A client that lists and watches as client-go's reflectors do, and resumes a watch where it ended.

Upstream: k8s.io/client-go/tools/cache/reflector.go.
"""

import random
import threading
import time
from typing import Any, Final

from conformance.robustness.client import LOST, Client
from conformance.robustness.history import Content, Promise, Read, Scope, Seen, Stored, Watch
from conformance.robustness.kinds import KINDS
from conformance.robustness.reading import Reading, read_list, revision_of, selectors

_PAUSE: Final = 0.01  # seconds after a lost connection
_TIMEOUTS: Final = (3, 6)  # seconds of one watch
_END: Final = "k8s.io/initial-events-end"
_STREAMED: Final = 0.5  # of lists come as a watch's initial events
_LISTS: Final[tuple[Promise, ...]] = ("any", "newest", "not older")
_RELISTS: Final = 0.15  # after the end of a watch


class Reflector:
    """Follows the objects of a scope. `missing` is a sentence if it has ended without the last revision."""

    def __init__(self, client: Client, server: int, name: str, reading: Reading, scope: Scope) -> None:
        self.missing = ""
        self._client = client
        self._reader = name, server
        self._reading = reading
        self._scope = scope
        self._kind = KINDS[scope.resource]
        self._chance = random.Random(name)
        self._revision = 0  # where the next watch starts, 0 if it has to list first
        self._last: int | None = None  # the revision at which it may end
        self._deadline = 0.0

    def end(self, revision: int, deadline: float) -> None:
        """Lets it end when it has seen the revision, or at the deadline."""
        self._deadline, self._last = deadline, revision

    def run(self, stopped: threading.Event) -> None:
        while not self._is_done():
            try:
                if self._revision and self._chance.random() > _RELISTS:
                    self._watch(self._revision, {"resourceVersion": self._revision})
                elif self._chance.random() < _STREAMED:
                    self._watch(0, {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
                else:
                    promise, asked = self._chance.choice(_LISTS), self._reading.newest
                    read = read_list(self._reading, self._client, self._reader, self._scope, promise, asked)
                    self._revision = 0 if read is None else read.revision
            except LOST:
                time.sleep(_PAUSE)
        self._client.close()
        if self._last is not None and self._revision < self._last:
            self.missing = (
                f"{self._reader[0]} ({self._scope}) has seen {self._revision}, but {self._last} is the newest"
            )

    def _is_done(self) -> bool:
        last = self._last
        return last is not None and (self._revision >= last or time.monotonic() > self._deadline)

    def _watch(self, start: int, options: dict[str, object]) -> None:
        """Follows one watch. Those without a start begin with the objects that are there."""
        seconds = self._chance.randint(*_TIMEOUTS)
        options |= {"allowWatchBookmarks": "true", "timeoutSeconds": seconds, **selectors(self._scope)}
        watch = Watch(*self._reader, self._scope, start)
        began, objects = time.monotonic(), dict[str, Stored]()
        try:
            for type_, obj in self._client.watch(self._kind.path, options):
                if type_ == "ERROR":
                    self._revision = 0
                    time.sleep(_PAUSE)
                    return
                seen = self._seen(type_, obj)
                if start or watch.start:
                    watch.events.append(seen)
                elif type_ == "ADDED":
                    objects[seen.name] = Stored(seen.revision, seen.content)
                    continue
                else:
                    self._listed(obj, seen, began, objects)
                    watch.start = seen.revision
                self._revision = seen.revision
                self._reading.saw(seen.revision)
                if self._is_done():
                    return
        finally:
            if watch.events:
                self._reading.watches.append(watch)

    def _seen(self, type_: str, obj: Any) -> Seen:
        if type_ == "BOOKMARK":
            return Seen(type_, revision_of(obj), "", Content(), time.monotonic())
        name = f"{self._kind.resource}/{obj['metadata']['name']}"
        return Seen(type_, revision_of(obj), name, self._kind.content(obj), time.monotonic())

    def _listed(self, obj: Any, seen: Seen, began: float, objects: dict[str, Stored]) -> None:
        """Takes the bookmark that ends the initial events."""
        assert obj["metadata"].get("annotations", {}).get(_END) == "true", f"{seen} comes before the initial events"
        self._reading.reads.append(
            Read(*self._reader, self._scope, "newest", 0, began, seen.at, seen.revision, objects)
        )
