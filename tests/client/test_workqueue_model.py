"""A work queue does what a slow and plain model of it does, whatever is asked of it in whatever order."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from fakeapiserver.client.workqueue import ItemExponentialFailureRateLimiter, PriorityQueue, ShutDown, WorkQueue
from fakeapiserver.clock import Timer

ITEMS = "abcdef"


class TurnedClock:
    """Stands still until it is turned; its timers never ring."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def call_later(self, seconds: float, callback: Callable[[], object], slack: float = 0.0) -> Timer:
        return asyncio.get_running_loop().call_later(1e9, callback)


@dataclass
class Model:
    """`ready`: what can be got, in order of arrival; `again`: what was added while it is worked on. `is_once`: what is ready
    doesn't wait as well."""

    is_once: bool
    ready: list[tuple[str, int]] = field(default_factory=list)
    again: dict[str, int] = field(default_factory=dict)
    processing: set[str] = field(default_factory=set)
    later: list[tuple[float, int, str, int]] = field(default_factory=list)
    is_shut: bool = False
    count: int = 0

    def add(self, item: str, priority: int) -> None:
        if self.is_shut:
            return
        waited = next((row for row in self.later if row[2] == item), None)
        if self.is_once and waited is not None:
            self.later.remove(waited)
            priority = max(priority, waited[3])
        if item in self.processing:
            self.again[item] = max(priority, self.again.get(item, priority))
            return
        known = next((row for row in self.ready if row[0] == item), None)
        if known is None:
            self.ready.append((item, priority))
        elif priority > known[1]:
            self.ready.remove(known)
            self.ready.append((item, priority))

    def add_after(self, item: str, due: float, priority: int) -> None:
        if self.is_shut:
            return
        if self.is_once and (item in self.again or any(row[0] == item for row in self.ready)):
            self.add(item, priority)
            return
        known = next((row for row in self.later if row[2] == item), None)
        self.count += 1
        row = (due, self.count, item, priority)
        if known is not None:
            self.later.remove(known)
            due, count = min(known[:2], row[:2])
            row = (due, count, item, max(known[3], priority))
        self.later.append(row)

    def advance(self, now: float) -> None:
        for row in sorted(self.later):
            if row[0] <= now:
                self.later.remove(row)
                self.add(row[2], row[3])

    def get(self) -> tuple[str, int]:
        found = max(self.ready, key=lambda row: row[1])  # the first of several
        self.ready.remove(found)
        self.processing.add(found[0])
        return found

    def done(self, item: str) -> None:
        self.processing.discard(item)
        if item in self.again:
            self.ready.append((item, self.again.pop(item)))


class Counted:
    """A queue's metrics."""

    def __init__(self) -> None:
        self.depth = 0
        self.worked = 0

    def added(self, priority: int) -> None:
        self.depth += 1

    def taken(self, waited: float, priority: int) -> None:
        assert waited >= 0
        self.depth -= 1

    def finished(self, worked: float) -> None:
        self.worked += 1

    def retried(self) -> None: ...


@pytest.mark.parametrize("kind", [WorkQueue, PriorityQueue])
@pytest.mark.parametrize("seed", range(40))
def test_a_queue_does_what_its_model_does(seed: int, kind: type[WorkQueue[str]]) -> None:
    async def scenario() -> None:
        dice, clock, metrics = random.Random(seed), TurnedClock(), Counted()
        model = Model(is_once=kind is PriorityQueue)
        limiter = ItemExponentialFailureRateLimiter(1.0, 20.0)
        queue = kind(clock=clock, metrics=metrics, rate_limiter=limiter)
        failures = dict.fromkeys(ITEMS, 0)
        for _ in range(400):
            item, priority = dice.choice(ITEMS), dice.choice((-10, 0, 0, 0, 5))
            match dice.choice(("add", "add", "after", "limited", "forget", "get", "get", "done", "done", "wait")):
                case "add":
                    queue.add(item, priority)
                    model.add(item, priority)
                case "after":
                    seconds = dice.choice((1, 2, 5, 30))
                    queue.add_after(item, seconds, priority)
                    model.add_after(item, clock.time + seconds, priority)
                case "limited":
                    queue.add_rate_limited(item, priority)
                    model.add_after(item, clock.time + min(2.0 ** failures[item], 20.0), priority)
                    failures[item] += 1
                case "forget":
                    queue.forget(item)
                    failures[item] = 0
                case "get" if model.ready:
                    assert await queue.get_with_priority() == model.get()
                case "done":
                    queue.done(item)
                    model.done(item)
                case "wait":
                    clock.time += dice.choice((0.5, 1, 10))
                    queue.advance()
                    model.advance(clock.time)
            assert (len(queue), queue.waiting) == (len(model.ready), len(model.later))
            assert queue.processing == len(model.processing)
            assert queue.num_requeues(item) == failures[item]
            assert metrics.depth == len(model.ready) + len(model.again)
        await drained(queue, model)
        assert metrics.depth == 0

    asyncio.run(scenario())


async def drained(queue: WorkQueue[str], model: Model) -> None:
    """Shut down with drain: nothing comes in, all that is in it comes out, and only then it ends."""
    draining = asyncio.ensure_future(queue.shut_down_with_drain())
    await asyncio.sleep(0)
    model.is_shut = True
    model.later.clear()
    queue.add("late")
    queue.add_after("late", 1.0)
    assert queue.waiting == 0
    while model.processing or model.ready:
        assert not draining.done()
        for item in sorted(model.processing):
            queue.done(item)
            model.done(item)
        if model.ready:
            assert await queue.get_with_priority() == model.get()
    await asyncio.wait_for(draining, 1)
    with pytest.raises(ShutDown):
        await queue.get()


@pytest.mark.parametrize("seed", range(20))
def test_several_workers_never_have_one_item_at_a_time_and_lose_none(seed: int) -> None:
    """Workers come, are cancelled while they wait or work, and each item that was added is worked on after that."""

    async def scenario() -> None:
        dice, queue = random.Random(seed), WorkQueue[str]()
        working: set[str] = set()
        stale: set[str] = set()  # added, and not begun since

        async def work() -> None:
            while True:
                item = await queue.get()
                assert item not in working
                working.add(item)
                stale.discard(item)
                try:
                    for _ in range(dice.randrange(4)):
                        await asyncio.sleep(0)
                except asyncio.CancelledError:
                    stale.add(item)
                    queue.add(item)
                    raise
                finally:
                    working.discard(item)
                    queue.done(item)

        workers = [asyncio.ensure_future(work()) for _ in range(4)]
        for _ in range(300):
            item = dice.choice(ITEMS)
            stale.add(item)
            queue.add(item, dice.choice((0, 0, 7)))
            if dice.random() < 0.1:
                place = dice.randrange(4)
                workers[place].cancel()
                await asyncio.wait([workers[place]])
                workers[place] = asyncio.ensure_future(work())
            if dice.random() < 0.5:
                await asyncio.sleep(0)
        await asyncio.wait_for(queue.shut_down_with_drain(), 60)
        assert stale == set()
        ended = await asyncio.gather(*workers, return_exceptions=True)
        assert {type(error) for error in ended} == {ShutDown}

    asyncio.run(scenario())


def test_items_that_are_not_processed_are_dropped_and_the_drain_ends() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        for item in ITEMS:
            queue.add(item)
        worked_on = await queue.get()
        draining = asyncio.ensure_future(queue.shut_down_with_drain())
        await asyncio.sleep(0)
        queue.drop_ready()
        assert not draining.done()
        queue.done(worked_on)
        await asyncio.wait_for(draining, 1)
        idle = WorkQueue[str]()
        idle.add("a")
        ending = asyncio.ensure_future(idle.shut_down_with_drain())
        await asyncio.sleep(0)
        idle.drop_ready()
        await asyncio.wait_for(ending, 1)

    asyncio.run(scenario())
