"""The request that is being handled, for records that are made meanwhile."""

from contextvars import ContextVar
from typing import Final, Protocol

from fakeapiserver.storage.mvcc import Change


class Handled(Protocol):
    """A request that is being handled."""

    number: int
    # The first change that it has made.
    written: Change | None

    @property
    def is_answered(self) -> bool:
        """Reports whether it was answered."""


request: Final[ContextVar[Handled | None]] = ContextVar("request", default=None)


def writer(change: Change) -> int:
    """Returns the number of the request that makes a change; 0 if none does, or its answer is over."""
    handled = request.get()
    if handled is None or handled.is_answered:
        return 0
    if handled.written is None:
        handled.written = change
    return handled.number
