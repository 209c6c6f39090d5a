"""Computes the Retry-After of rejected clients: the more clients are rejected, the longer they wait.

Upstream: k8s.io/apiserver/pkg/util/flowcontrol/dropped_requests_tracker.go.
"""

from typing import Final

from msgspec import Struct, field

from fakeapiserver.clock import Clock

MAX_RETRY_AFTER: Final = 32


class _Level(Struct):
    """`history` counts the rejected by second."""

    retry_after: int = 1
    raised_at: int = 0
    second: int = 0
    history: dict[int, int] = field(default_factory=dict)

    def record(self, second: int) -> None:
        if second != self.second:
            self.second = second
            self._judge(second)
        self.history[second] = self.history.get(second, 0) + 1

    def _judge(self, now: int) -> None:
        """Twice as long after three a second, a second shorter after less than one a second."""
        span = self.retry_after
        self.history = {at: count for at, count in self.history.items() if now - at <= MAX_RETRY_AFTER}
        dropped = sum(count for at, count in self.history.items() if now - at <= span)
        if dropped >= 3 * span and now - self.raised_at >= span:
            self.retry_after = min(2 * span, MAX_RETRY_AFTER)
            self.raised_at = now
        elif dropped < span and span > 1:
            self.retry_after -= 1


class DroppedRequests:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._levels: dict[str, _Level] = {}

    def record(self, level: str) -> int:
        """Counts a rejected request of this priority level and returns the seconds for its Retry-After."""
        counted = self._levels.setdefault(level, _Level())
        counted.record(int(self._clock.now()))
        return counted.retry_after
