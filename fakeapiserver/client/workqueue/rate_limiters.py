"""The delays before an item is tried again (upstream: k8s.io/client-go/util/workqueue/default_rate_limiters.go)."""

from collections.abc import Hashable
from typing import Final, Protocol

from fakeapiserver.client.flowcontrol import TokenBucket
from fakeapiserver.clock import Clock, SystemClock

_MAX_EXPONENT: Final = 64


class RateLimiter(Protocol):
    """Decides by how often an item failed. Seconds throughout."""

    def when(self, item: Hashable) -> float:
        """Seconds until the item may be tried again; counts as a failure."""

    def forget(self, item: Hashable) -> None:
        """Resets the count of failures, after success or when the item is given up."""

    def num_requeues(self, item: Hashable) -> int:
        """Returns how often the item failed since it was forgotten."""


class ItemExponentialFailureRateLimiter:
    """`base` seconds, doubled with each failure of the item, up to `maximum`."""

    def __init__(self, base: float = 0.005, maximum: float = 1000.0) -> None:
        self._base = base
        self._maximum = maximum
        self._failures: dict[Hashable, int] = {}

    def when(self, item: Hashable) -> float:
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(self._base * 2.0 ** min(failures, _MAX_EXPONENT), self._maximum)

    def forget(self, item: Hashable) -> None:
        self._failures.pop(item, None)

    def num_requeues(self, item: Hashable) -> int:
        return self._failures.get(item, 0)


class ItemFastSlowRateLimiter:
    """`fast` seconds for the first `attempts` failures, `slow` afterwards."""

    def __init__(self, fast: float, slow: float, attempts: int) -> None:
        self._fast = fast
        self._slow = slow
        self._attempts = attempts
        self._failures: dict[Hashable, int] = {}

    def when(self, item: Hashable) -> float:
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        return self._fast if failures <= self._attempts else self._slow

    def forget(self, item: Hashable) -> None:
        self._failures.pop(item, None)

    def num_requeues(self, item: Hashable) -> int:
        return self._failures.get(item, 0)


class BucketRateLimiter:
    """`qps` items a second altogether, `burst` at once; failures of an item don't count."""

    def __init__(self, qps: float = 10.0, burst: int = 100, clock: Clock | None = None) -> None:
        self._bucket = TokenBucket(qps, burst)
        self._clock = clock or SystemClock()

    def when(self, item: Hashable) -> float:
        return self._bucket.reserve(self._clock.monotonic())

    def forget(self, item: Hashable) -> None:
        """Does nothing: no state is kept per item."""

    def num_requeues(self, item: Hashable) -> int:
        return 0


class MaxOfRateLimiter:
    """The longest of several waits."""

    def __init__(self, *limiters: RateLimiter) -> None:
        self._limiters = limiters

    def when(self, item: Hashable) -> float:
        return max(limiter.when(item) for limiter in self._limiters)

    def forget(self, item: Hashable) -> None:
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: Hashable) -> int:
        return max(limiter.num_requeues(item) for limiter in self._limiters)


class WithMaxWaitRateLimiter:
    """Another's wait, but never longer than `maximum` seconds."""

    def __init__(self, limiter: RateLimiter, maximum: float) -> None:
        self._limiter = limiter
        self._maximum = maximum

    def when(self, item: Hashable) -> float:
        return min(self._limiter.when(item), self._maximum)

    def forget(self, item: Hashable) -> None:
        self._limiter.forget(item)

    def num_requeues(self, item: Hashable) -> int:
        return self._limiter.num_requeues(item)


def default_controller_rate_limiter(clock: Clock | None = None) -> RateLimiter:
    """5 ms to 1,000 s for an item that fails, and 10 a second (100 at once) altogether."""
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(), BucketRateLimiter(clock=clock))
