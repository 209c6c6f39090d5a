"""The causes of a controller's work, for a recording: the event whose handler is running, and the reconcile that is in progress.

Both are context variables: what is called by a handler or a reconciler, and the tasks that it starts, see them.
"""

from contextvars import ContextVar
from typing import Any, Final, Protocol

# The causes of an item that are kept: its last ones.
_MOST: Final = 20
# The object of the event whose handler is running, as the watch sent it.
event: Final[ContextVar[Any]] = ContextVar("event", default=None)
# The number that a WorkObserver gave to the reconcile in progress; 0: none is.
reconcile: Final[ContextVar[int]] = ContextVar("reconcile", default=0)


class Load(Protocol):
    """The numbers of a queue's items."""

    def __len__(self) -> int:
        """The items that could be taken now."""

    @property
    def waiting(self) -> int:
        """The items whose time hasn't come."""

    @property
    def processing(self) -> int:
        """The items that were taken and aren't done."""


class WorkObserver(Protocol):
    """Records what controllers do."""

    def began(self) -> int:
        """A reconcile begins. Returns its number, above 0."""

    def ended(self, number: int, controller: str, key: str, causes: "Causes", error: str, again: float | None) -> None:
        """A reconcile has ended. `again`: the seconds until its key is looked at again; None: only after an event."""

    def loaded(self, controller: str, queue: Load) -> None:
        """The numbers of a queue's items may have changed."""

    def mode_changed(self, controller: str, mode: str) -> None:
        """A controller got another mode: run, step or off."""


class Causes:
    """The causes of an item in a queue: the revisions of events, and the reconcile that put it there (0: none did).

    `waited`: the seconds from its first cause until it was taken."""

    __slots__ = ("after", "revisions", "waited")

    def __init__(self) -> None:
        self.revisions: list[int] = []
        self.after = 0
        self.waited = 0.0

    def note(self) -> None:
        """Adds what is going on now: the event that is being handled, or the reconcile in progress."""
        if number := reconcile.get():
            self.after = number
        elif (revision := _revision(event.get())) and revision not in self.revisions:
            self.revisions.append(revision)
            # An object that changes all the time may wait for long: its last changes are the interesting ones.
            del self.revisions[:-_MOST]


NO_CAUSES: Final = Causes()


def _revision(obj: Any) -> int:
    """Returns an object's revision; 0 for what has none."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    version = metadata.get("resourceVersion", "") if metadata else ""
    return int(version) if version.isdecimal() else 0
