"""The allowance of a request for computations in the event loop: `spend` counts them, and `effort.computed` begins them.

This is apart from effort.py, which imports errors, and with them serializers, which use this.
"""

import math
from contextvars import ContextVar
from typing import Final

# Bytes from which on an object isn't computed with in the event loop: what takes longest needs 4 us a byte.
LARGE: Final = 16 * 1024


class Limits:
    """`end`: when the request's calls and computations end, by the clock of the event loop. `left`: what it may still spend while
    `counts` is set, which is during a computation that may be begun again. `large`: the bytes of an object that leaves the event loop."""

    __slots__ = ("counts", "end", "large", "left")

    def __init__(self, end: float, left: float, large: int = LARGE) -> None:
        self.end = end
        self.left = left
        self.large = large
        self.counts = False

    def keep(self, size: int) -> bool:
        """Reports whether a computation with objects of so many bytes begins in the event loop."""
        return size < self.large and self.left >= 0


_UNLIMITED: Final = Limits(math.inf, math.inf)
limits: Final[ContextVar[Limits]] = ContextVar("request_limits", default=_UNLIMITED)


class TooExpensive(BaseException):
    """Raised by `spend` in the event loop. Only `effort.computed` catches it."""


def spend(cost: int) -> None:
    """Counts what a computation has done. Raises TooExpensive if it must leave the event loop."""
    mine = limits.get()
    if mine.counts:
        mine.left -= cost
        if mine.left < 0:
            raise TooExpensive


def affordable(cost: int) -> int:
    """Returns how much of so much may be spent here."""
    mine = limits.get()
    return int(min(cost, mine.left)) if mine.counts else cost
