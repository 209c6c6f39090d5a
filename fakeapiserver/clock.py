"""The one clock of a server: everything that waits or stamps asks it (the pure core is handed plain times)."""

import time
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
