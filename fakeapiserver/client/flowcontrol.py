"""Limits for the rate of a client's requests, and its delays after failures (upstream: k8s.io/client-go/util/flowcontrol).

Pure: the time is an argument.
"""

import random
from typing import Protocol

from msgspec import Struct, field

__all__ = ["Backoff", "Random", "TokenBucket"]


class TokenBucket:
    """`qps` tokens come back a second, up to `burst` (at least 1) lie in it; it begins full."""

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs a rate above 0 and a burst of at least 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._last: float | None = None

    def reserve(self, now: float) -> float:
        """Takes a token; the seconds to wait until it is there."""
        if self._last is not None:
            self._tokens = min(self._burst, self._tokens + max(0.0, now - self._last) * self._qps)
        self._last = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._qps)

    def accepts(self, now: float) -> bool:
        """Takes a token if one is there."""
        if self.reserve(now) == 0:
            return True
        self.give_back()
        return False

    def give_back(self) -> None:
        """A token that was reserved isn't used."""
        self._tokens += 1


class Random(Protocol):
    def random(self) -> float:
        """Returns a number in [0, 1)."""


class Backoff(Struct):
    """Seconds to wait, longer each time: `initial`, times `factor`, up to `cap`, each up to `jitter` (a share) longer.

    After `reset` seconds without a failure it starts again (upstream: wait.Backoff, DelayWithReset).
    """

    initial: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.0
    reset: float = float("inf")
    random: Random = field(default_factory=random.Random)
    _next: float = 0.0
    _last: float | None = None

    def step(self, now: float) -> float:
        """The seconds to wait after a failure at `now`."""
        if self._last is None or now - self._last > self.reset:
            self._next = self.initial
        self._last = now
        delay = self._next
        self._next = min(self._next * self.factor, self.cap)
        return delay * (1 + self.jitter * self.random.random())
