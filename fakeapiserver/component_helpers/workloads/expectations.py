"""Creations and deletions that a controller has not seen in its informer yet; until then it does nothing more
(upstream: pkg/controller/controller_utils.go).

Keys are controllers, `namespace/name`. One instance serves one kind of controllers.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from fakeapiserver.clock import Clock
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent

# Seconds after which expectations are given up.
EXPECTATIONS_TIMEOUT: Final = 300.0


class _Expected(Struct):
    additions: int
    deletions: int
    since: float


def is_over(event: Event) -> bool:
    """The controller is gone, and maybe another one of its name there: nothing is expected any more."""
    if isinstance(event, UpdateEvent):
        return bool(event.object_old["metadata"]["uid"] != event.object_new["metadata"]["uid"])
    return isinstance(event, DeleteEvent)


class ControllerExpectations:
    """Additions and deletions that are to be observed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def satisfied(self, key: str) -> bool:
        """Everything was observed, or nothing expected, or it is too long ago."""
        expected = self._expected.get(key)
        if expected is None or (expected.additions <= 0 and expected.deletions <= 0):
            return True
        return self._clock.monotonic() - expected.since > EXPECTATIONS_TIMEOUT

    def pending(self, key: str) -> tuple[int, int]:
        """(additions, deletions) that weren't observed yet; below 0 for more than were expected."""
        expected = self._expected.get(key)
        return (expected.additions, expected.deletions) if expected is not None else (0, 0)

    def set(self, key: str, additions: int, deletions: int) -> None:
        """Replaces what was expected before."""
        self._expected[key] = _Expected(additions, deletions, self._clock.monotonic())

    def expect_creations(self, key: str, additions: int) -> None:
        self.set(key, additions, 0)

    def raise_by(self, key: str, additions: int, deletions: int) -> None:
        """Raises the expected numbers; does nothing without expectations."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.additions += additions
            expected.deletions += deletions

    def creation_observed(self, key: str, count: int = 1) -> None:
        """Counts a creation that was seen, or that failed and won't be seen."""
        self.raise_by(key, -count, 0)

    def forget(self, key: str) -> None:
        """Forgets a controller that is gone: another one of its name starts without expectations."""
        self._expected.pop(key, None)


class CountingExpectations(ControllerExpectations):
    """Deletions are counted as they come."""

    def expect_deletions(self, key: str, deletions: int) -> None:
        self.set(key, 0, deletions)

    def deletion_observed(self, key: str) -> None:
        self.raise_by(key, 0, -1)


class UIDTrackingControllerExpectations(ControllerExpectations):
    """Knows whose deletion is expected: a pod that is marked first and gone later counts once."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._deleted: dict[str, set[str]] = {}

    def expect_deletions(self, key: str, objects: Iterable[str]) -> None:
        """The keys of the objects that are deleted."""
        self._deleted[key] = deleted = set(objects)
        self.set(key, 0, len(deleted))

    def deletion_observed(self, key: str, deleted: str) -> None:
        """Counts a deletion that was seen, or that failed and won't be seen."""
        awaited = self._deleted.get(key)
        if awaited is not None and deleted in awaited:
            awaited.discard(deleted)
            self.raise_by(key, 0, -1)

    def forget(self, key: str) -> None:
        super().forget(key)
        self._deleted.pop(key, None)
