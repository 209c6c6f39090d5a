"""The one clock of a server: everything that waits or stamps asks it (the pure core is handed plain times)."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Final, Literal, Protocol

ClockChange = Literal["stop", "start", "advance", "jump"]


class Clock(Protocol):
    """Wall-clock time for stamps, monotonic time for durations. Both in seconds."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""


class Timer(Protocol):
    """Something that will be called."""

    def cancel(self) -> None:
        """Prevents the call. Does nothing if the callback was called or cancelled before."""


class Timers(Clock, Protocol):
    """A clock that also wakes up who waits."""

    def call_later(self, seconds: float, callback: Callable[[], object], slack: float = 0.0) -> Timer:
        """Calls `callback` in the running event loop after this many seconds of the clock.

        When the clock is advanced by hand, the call may come up to `slack` seconds later, so that repeated work is done together.
        """


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object], slack: float = 0.0) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class _Waiting:
    """A callback of an AdjustableClock."""

    __slots__ = ("callback", "due", "latest")

    def __init__(self, due: float, slack: float, callback: Callable[[], object]) -> None:
        self.due = due
        self.latest = due + slack
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


# Seconds by which a sum of times may be wrong: what is due in five seconds happens when time has moved on by five seconds.
_NOISE: Final = 1e-5
# The last moment of the year 9999, which RFC 3339 can still write.
_LATEST: Final = 253402300799.0


class AdjustableClock:
    """Goes with the machine's clock until a test turns it: ahead (`advance`), or not at all (`stop`, `start`).

    Its callbacks belong to one event loop. `stopped_at`: it stands still from the start and shows this time, in seconds since the epoch."""

    def __init__(self, stopped_at: float | None = None) -> None:
        self._ahead = 0.0  # of the machine's clock, when running
        self._set_back = 0.0  # by how much of that the wall clock was set back
        # What both clocks of the machine said; with `stopped_at` the same in each run, so that sums of times are rounded in the same way.
        self._stopped: tuple[float, float] | None = None if stopped_at is None else (stopped_at, 0.0)
        self._stopped_at = stopped_at
        self._waiting: list[tuple[float, int, _Waiting]] = []
        self._count = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        # Called with each change and its seconds.
        self.on_change: Callable[[ClockChange, float], None] | None = None

    @property
    def stopped(self) -> bool:
        return self._stopped is not None

    def now(self) -> float:
        wall = self._stopped[0] if self._stopped is not None else time.time()
        return wall + self._ahead - self._set_back

    def monotonic(self) -> float:
        return (self._stopped[1] if self._stopped is not None else time.monotonic()) + self._ahead

    def call_later(self, seconds: float, callback: Callable[[], object], slack: float = 0.0) -> Timer:
        waiting = _Waiting(self.monotonic() + seconds, slack, callback)
        heapq.heappush(self._waiting, (waiting.due, next(self._count), waiting))
        self._set_timer()
        return waiting

    def stop(self) -> None:
        """Time stands still: only `advance` moves it."""
        if self._stopped is None:
            self._stopped = (time.time(), time.monotonic())
            self._set_timer()
            self._report("stop")

    def start(self) -> None:
        """Time goes on from where it stood."""
        if self._stopped is not None:
            passed = time.monotonic() - self._stopped[1]
            self._ahead -= passed
            if self._stopped_at is not None:  # the machine's two clocks weren't read together
                self._set_back += time.time() - self._stopped[0] - passed
            self._stopped = None
            self._set_timer()
            self._report("start")

    def fork(self) -> "AdjustableClock":
        """Another clock that shows the same time, and stands still if this one does. Nothing waits for it yet."""
        clock = AdjustableClock(self._stopped_at)
        clock._ahead, clock._set_back, clock._stopped = self._ahead, self._set_back, self._stopped
        return clock

    def forward_to(self, seconds: float) -> None:
        """Shows at least this time (seconds since the epoch), before anything waits."""
        self._ahead += max(0.0, seconds - self.now())

    def reset(self) -> None:
        """Shows the machine's time again, and goes on, or stands still at the time of its start if it did so then. Durations go on, too:
        what waits is called as soon as it would have been."""
        self.start()
        self._set_back = self._ahead
        if self._stopped_at is not None:
            self.stop()
            self._set_back += self.now() - self._stopped_at

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back, as an administrator or NTP does. What waits isn't affected: it waits for a duration.
        ValueError for a time before 1970 or after 9999."""
        if not 0 <= self.now() + seconds <= _LATEST:
            raise ValueError(f"a jump by {seconds:g} s leaves the years 1970 to 9999")
        self._set_back -= seconds
        self._report("jump", seconds)

    async def advance(self, seconds: float, between: Callable[[], Awaitable[object]]) -> None:
        """Moves time ahead, from one thing that is due to the next; `between` lets everybody do what follows from each, at
        the time at which it happens. ValueError for time that would go back."""
        if seconds < 0:
            raise ValueError(f"time goes forward only, not by {seconds:g} s")
        target = self.monotonic() + seconds
        if seconds:
            self._report("advance", seconds)
        while (latest := self._next_latest()) is not None and latest <= target + _NOISE:
            self._ahead += max(0.0, latest - self.monotonic())
            self._fire()
            await between()
        self._ahead += max(0.0, target - self.monotonic())
        self._fire()
        await between()

    @property
    def next_due(self) -> float | None:
        """Seconds until something is called next; None: nothing waits."""
        due = self._next_due()
        return None if due is None else max(0.0, due - self.monotonic())

    def _report(self, change: ClockChange, seconds: float = 0.0) -> None:
        if self.on_change is not None:
            self.on_change(change, seconds)

    def _next_latest(self) -> float | None:
        """When the next callback can wait no longer."""
        return min((timer.latest for _, _, timer in self._waiting if timer.callback is not None), default=None)

    def _next_due(self) -> float | None:
        while self._waiting and self._waiting[0][2].callback is None:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def _fire(self) -> None:
        now = self.monotonic()
        while (due := self._next_due()) is not None and due <= now:
            _, _, waiting = heapq.heappop(self._waiting)
            callback, waiting.callback = waiting.callback, None
            if callback is not None:
                callback()
        self._set_timer()

    def _set_timer(self) -> None:
        """Sets one timer of the event loop for the first callback that is due; sets no timer while the clock is stopped."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._next_due()
        if due is not None and self._stopped is None:
            wait = max(0.0, due - self.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._fire)


async def sleep(clock: Timers, seconds: float) -> None:
    """Waits by the clock."""
    over = asyncio.Event()
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
