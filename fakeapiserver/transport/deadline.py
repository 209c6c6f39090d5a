"""The deadline of the request that is being served, for calls that are made on its behalf.

Upstream: the deadline of Go's request context.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

# By the clock of the event loop.
_END: Final[ContextVar[float]] = ContextVar("request_deadline", default=math.inf)


@contextmanager
def ends_after(seconds: float) -> Iterator[None]:
    """Limits the calls made within the block to so many seconds."""
    token = _END.set(asyncio.get_running_loop().time() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def told_timeout(seconds: float) -> float:
    """`seconds`, or what is left of the request's time if that is less: a whole number then, rounded up."""
    left = _END.get() - asyncio.get_running_loop().time()
    return seconds if left >= seconds else float(max(math.ceil(left), 1))
