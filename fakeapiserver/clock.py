"""The one clock of a server: everything that waits or stamps asks it (the pure core is handed plain times)."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time for stamps, monotonic time for durations. Both in seconds."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


def rfc3339(seconds: float) -> str:
    """metav1.Time on the wire: UTC, whole seconds, `2026-01-02T15:04:05Z`."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """metav1.MicroTime on the wire: UTC, microseconds, `2026-01-02T15:04:05.000000Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float | None:
    """An RFC 3339 time as seconds since the Unix epoch; None for what isn't one."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
