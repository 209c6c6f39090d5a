"""The deadline of the request that is being served, for calls that are made on its behalf.

Upstream: the deadline of Go's request context.
"""

import asyncio
import math
from contextvars import ContextVar
from typing import Final

# By the clock of the event loop.
_END: Final[ContextVar[float]] = ContextVar("request_deadline", default=math.inf)


class EndsAfter:
    """Limits the calls made within the block to so many seconds. A class, since every write comes through here."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _END.set(asyncio.get_running_loop().time() + self._seconds)

    def __exit__(self, *_: object) -> None:
        _END.reset(self._token)


def told_timeout(seconds: float) -> float:
    """`seconds`, or what is left of the request's time if that is less: a whole number then, rounded up."""
    left = _END.get() - asyncio.get_running_loop().time()
    return seconds if left >= seconds else float(max(math.ceil(left), 1))
