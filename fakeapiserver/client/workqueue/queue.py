"""The queue of a controller's items: each item once, never at two workers at a time, after a delay if it has one.

Upstream: k8s.io/client-go/util/workqueue/{queue,delaying_queue,rate_limiting_queue}.go, one here: an item without delay or priority
waits for neither; and sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue, PriorityQueue.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from fakeapiserver.client.causes import NO_CAUSES, Causes
from fakeapiserver.client.workqueue.rate_limiters import RateLimiter, default_controller_rate_limiter
from fakeapiserver.clock import SystemClock, Timer, Timers

# Seconds by which a timer may come early: sums of times are rounded.
_ROUNDING: Final = 1e-6
T = TypeVar("T", bound=Hashable)


class ShutDown(Exception):
    """The queue is shut down: there is nothing more to get."""


class QueueMetrics(Protocol):
    """Receives what a queue counts. Times in seconds."""

    def added(self, priority: int) -> None:
        """An item is to be looked at."""

    def taken(self, waited: float, priority: int) -> None:
        """Called when an item is taken, so many seconds after it was added."""

    def finished(self, worked: float) -> None:
        """Called when an item is done, so many seconds after it was taken."""

    def retried(self) -> None:
        """An item was added for later."""


class _Waiting(Struct):
    """An item that is to be looked at: since when, how urgently."""

    since: float
    priority: int


class WorkQueue(Generic[T]):
    """FIFO among items of one priority; higher priorities first.

    An item that is added while it waits stays one, with the higher priority and the earlier time. One that is added while it is
    worked on waits until `done`. Belongs to one event loop.

    queue.add("default/web")
    item = await queue.get()
    try: ...
    finally: queue.done(item)
    """

    def __init__(
        self,
        name: str = "",
        *,
        rate_limiter: RateLimiter | None = None,
        metrics: QueueMetrics | None = None,
        clock: Timers | None = None,
        notes_causes: bool = False,
    ) -> None:
        self.name = name
        # Seconds by which delayed items may come late when a test moves the clock.
        self.slack = 0.0
        # How many items were got so far.
        self.taken = 0
        self._clock = clock or SystemClock()
        self._limiter = rate_limiter or default_controller_rate_limiter(self._clock)
        self._metrics = metrics
        self._dirty: dict[T, _Waiting] = {}
        self._processing: dict[T, float] = {}
        # priority -> items in order; what got another priority, or was taken, stays behind as a shadow, and is skipped
        self._ready: dict[int, deque[tuple[T, _Waiting]]] = {}
        self._order: list[int] = []
        self._delayed: list[tuple[float, int, T]] = []
        self._due: dict[T, tuple[float, int]] = {}
        self._count = 0
        self._timer: Timer | None = None
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drained = asyncio.Event()
        self._shutting_down = False
        self._paused = False
        # Why each item is in the queue, or is being worked on; None: that isn't noted.
        self._causes: dict[T, Causes] | None = {} if notes_causes else None
        self._taken_for: dict[T, Causes] = {}

    def __len__(self) -> int:
        """Items that could be got now."""
        return sum(item not in self._processing for item in self._dirty)

    @property
    def depths(self) -> Mapping[int, int]:
        """Returns the number of waiting items by priority, including priorities that were used before."""
        counts = dict.fromkeys(self._ready, 0)
        for waiting in self._dirty.values():
            counts[waiting.priority] = counts.get(waiting.priority, 0) + 1
        return counts

    @property
    def waiting(self) -> int:
        """Items whose time hasn't come."""
        return len(self._due)

    @property
    def processing(self) -> int:
        """Items that were got and aren't done."""
        return len(self._processing)

    @property
    def worked_on(self) -> Sequence[T]:
        """The items that were got and aren't done."""
        return [*self._processing]

    @property
    def ready(self) -> Sequence[T]:
        """The items that could be got now, the next one first."""
        return [
            item
            for priority in self._order
            for item, waiting in self._ready[priority]
            if self._dirty.get(item) is waiting and waiting.priority == priority and item not in self._processing
        ]

    @property
    def delayed(self) -> Mapping[T, float]:
        """The items whose time hasn't come -> the seconds until it does, the soonest first."""
        now = self._clock.monotonic()
        items = sorted(self._due.items(), key=lambda entry: entry[1])
        return {item: max(0.0, due - now) for item, (due, _) in items}

    @property
    def oldest_processing(self) -> float:
        """Seconds since the longest work began, 0 without any."""
        return self._clock.monotonic() - min(self._processing.values()) if self._processing else 0.0

    @property
    def unfinished_seconds(self) -> float:
        """Seconds of all work that goes on, together."""
        now = self._clock.monotonic()
        return sum(now - since for since in self._processing.values())

    @property
    def shutting_down(self) -> bool:
        return self._shutting_down

    @property
    def soonest(self) -> float | None:
        """Seconds until the next item's time has come; None: nothing waits for a time."""
        return max(0.0, min(due for due, _ in self._due.values()) - self._clock.monotonic()) if self._due else None

    @property
    def next_retry(self) -> float | None:
        """Seconds until an item comes back that was added with rate limiting, i.e. after a failure; None: there is no such item."""
        due = [due for item, (due, _) in self._due.items() if self._limiter.num_requeues(item)]
        return max(0.0, min(due) - self._clock.monotonic()) if due else None

    @property
    def at_rest(self) -> bool:
        """Reports whether no item can be taken and none is being processed."""
        return not self._processing and (self._paused or not self._dirty)

    @property
    def paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        """Stops handing out items until `resume`; added items wait."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        for _ in range(len(self)):
            self._wake()

    def causes(self, item: T) -> Causes:
        """Why an item that is being worked on was put into the queue; empty unless the queue notes causes."""
        return self._taken_for.get(item, NO_CAUSES)

    def due_in(self, item: T) -> float | None:
        """Seconds until an item can be taken again; None if it isn't in the queue."""
        if item in self._dirty:
            return 0.0
        known = self._due.get(item)
        return None if known is None else max(0.0, known[0] - self._clock.monotonic())

    def _note_cause(self, item: T) -> None:
        assert self._causes is not None
        self._causes.setdefault(item, Causes()).note()

    def _take_causes(self, item: T, waited: float) -> None:
        assert self._causes is not None
        causes = self._taken_for[item] = self._causes.pop(item, Causes())
        causes.waited = waited

    # ------------------------------------------------------------------ putting in

    def add(self, item: T, priority: int = 0) -> None:
        """The item is to be looked at."""
        if self._shutting_down:
            return
        if self._causes is not None:
            self._note_cause(item)
        self._put(item, priority)

    def _put(self, item: T, priority: int) -> None:
        known = self._dirty.get(item)
        if known is not None:
            if priority > known.priority:
                known.priority = priority
                if item not in self._processing:
                    self._line_up(item, known)
            return
        known = self._dirty[item] = _Waiting(self._clock.monotonic(), priority)
        if self._metrics is not None:
            self._metrics.added(priority)
        if item not in self._processing:
            self._line_up(item, known)

    def add_after(self, item: T, seconds: float, priority: int = 0) -> None:
        """`add` when so many seconds are over; of several times, the earliest counts, and the highest priority."""
        if self._shutting_down:
            return
        if seconds <= 0:
            self.add(item, priority)
            return
        if self._metrics is not None:
            self._metrics.retried()
        if self._causes is not None:
            self._note_cause(item)
        due = self._clock.monotonic() + seconds
        known = self._due.get(item)
        if known is not None:
            priority = max(priority, known[1])
            if known[0] <= due:
                self._due[item] = (known[0], priority)
                return
        self._count += 1
        self._due[item] = (due, priority)
        heapq.heappush(self._delayed, (due, self._count, item))
        self._set_timer()

    def add_rate_limited(self, item: T, priority: int = 0) -> None:
        """`add` when the rate limiter says so: later with each failure."""
        self.add_after(item, self._limiter.when(item), priority)

    def forget(self, item: T) -> None:
        """Resets the rate limiter's count of an item's failures."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Returns how often the item was added with rate limiting since `forget`."""
        return self._limiter.num_requeues(item)

    # ------------------------------------------------------------------ taking out

    async def get(self) -> T:
        """The next item, when there is one; call `done` when the work is. ShutDown when the queue is shut down and empty."""
        return (await self.get_with_priority())[0]

    async def get_with_priority(self) -> tuple[T, int]:
        """(item, priority). ShutDown."""
        while True:
            item = self._next()
            if item is not None:
                return item
            if self._shutting_down:
                raise ShutDown(f"the work queue {self.name} is shut down")
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # another getter has what woke this one up
                if getter.done() and not getter.cancelled():
                    self._wake()
                raise

    def done(self, item: T) -> None:
        """Marks `item` as processed and requeues it if it was added meanwhile.

        Does nothing if it is not being processed.
        """
        started = self._processing.pop(item, None)
        if started is None:
            return
        if self._causes is not None:
            self._taken_for.pop(item, None)
        if self._metrics is not None:
            self._metrics.finished(self._clock.monotonic() - started)
        known = self._dirty.get(item)
        if known is not None:
            self._line_up(item, known)
        elif self._shutting_down and not self._processing and not self._dirty:
            self._drained.set()

    # -------------------------------------------------------------------- the end

    def shut_down(self) -> None:
        """Takes nothing more; what is in it can still be got."""
        self._shutting_down = True
        if self._timer is not None:
            self._timer.cancel()
        self._delayed.clear()
        self._due.clear()
        if self._causes is not None:
            self._causes.clear()
        while self._getters:
            self._wake()
        if not self._processing and not self._dirty:
            self._drained.set()

    def drop_ready(self) -> None:
        """Drops all items that are not being processed."""
        self._ready.clear()
        self._order.clear()
        self._dirty.clear()
        while self._getters:
            self._wake()
        if self._shutting_down and not self._processing:
            self._drained.set()

    async def shut_down_with_drain(self) -> None:
        """`shut_down`, and waits until everything in it is done."""
        self.shut_down()
        await self._drained.wait()

    # --------------------------------------------------------------------- inside

    def _line_up(self, item: T, waiting: _Waiting) -> None:
        line = self._ready.get(waiting.priority)
        if line is None:
            line = self._ready[waiting.priority] = deque()
            self._order = sorted(self._ready, reverse=True)
        line.append((item, waiting))
        self._wake()

    def _next(self) -> tuple[T, int] | None:
        if self._paused:
            return None
        for priority in self._order:
            line = self._ready[priority]
            while line:
                item, known = line.popleft()
                if self._dirty.get(item) is not known or known.priority != priority:
                    continue
                del self._dirty[item]
                now = self._clock.monotonic()
                self._processing[item] = now
                self.taken += 1
                if self._causes is not None:
                    self._take_causes(item, now - known.since)
                if self._metrics is not None:
                    self._metrics.taken(now - known.since, priority)
                return item, priority
        return None

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._delayed:
            wait = max(0.0, self._delayed[0][0] - self._clock.monotonic())
            self._timer = self._clock.call_later(wait, self.advance, self.slack)

    def advance(self) -> None:
        """Adds what is due by the clock; called by a timer, and by tests that turn the clock."""
        now = self._clock.monotonic() + _ROUNDING
        while self._delayed and self._delayed[0][0] <= now:
            due, _, item = heapq.heappop(self._delayed)
            known = self._due.get(item)
            if known is not None and known[0] == due:
                del self._due[item]
                self._put(item, known[1])
        self._set_timer()


class PriorityQueue(WorkQueue[T]):
    """An item is in it once: ready, or waiting for its time. One that is added now needn't be added later as well."""

    def add(self, item: T, priority: int = 0) -> None:
        """The item is to be looked at; with the priority of the time it waited for, if that is higher."""
        waited = self._due.pop(item, None)
        super().add(item, priority if waited is None else max(priority, waited[1]))

    def add_after(self, item: T, seconds: float, priority: int = 0) -> None:
        """`add` when so many seconds are over, unless it is ready already."""
        if item in self._dirty and seconds > 0:
            if self._metrics is not None:
                self._metrics.retried()
            seconds = 0.0
        super().add_after(item, seconds, priority)
