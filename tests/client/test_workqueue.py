"""The work queue: each item once, never by two workers at a time, later if it is to wait."""

import asyncio
from collections.abc import Callable

import pytest

from fakeapiserver.client.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    PriorityQueue,
    RateLimiter,
    ShutDown,
    WithMaxWaitRateLimiter,
    WorkQueue,
)
from fakeapiserver.clock import Timer


class TestClock:
    __test__ = False

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def call_later(self, seconds: float, callback: Callable[[], object], slack: float = 0.0) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


async def taken(queue: WorkQueue[str]) -> list[str]:
    """Returns the items that are ready now, and marks each as done."""
    found = []
    while len(queue):
        item = await queue.get()
        queue.done(item)
        found.append(item)
    return found


def test_items_come_in_order_and_once() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        for item in ("a", "b", "a", "c", "b"):
            queue.add(item)
        assert await taken(queue) == ["a", "b", "c"]

    asyncio.run(scenario())


def test_the_contents_are_shown_in_their_order() -> None:
    async def scenario() -> None:
        clock = TestClock()
        queue = PriorityQueue[str](clock=clock)
        for item, priority in (("a", 0), ("b", 0), ("c", 5), ("b", 7)):
            queue.add(item, priority)
        queue.add_after("later", 30)
        queue.add_after("soon", 10)
        clock.time += 4
        assert (queue.ready, dict(queue.delayed)) == (["b", "c", "a"], {"soon": 6, "later": 26})
        assert await queue.get() == "b"
        queue.add("b")  # it waits until it is done
        assert (queue.ready, queue.worked_on) == (["c", "a"], ["b"])
        queue.done("b")
        assert queue.ready == ["c", "a", "b"]

    asyncio.run(scenario())


def test_higher_priorities_come_first_and_raise_what_waits() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        for item, priority in (("low", -10), ("a", 0), ("b", 0), ("low", 5), ("a", -1)):
            queue.add(item, priority)
        assert [await queue.get_with_priority() for _ in range(3)] == [("low", 5), ("a", 0), ("b", 0)]
        assert len(queue) == 0

    asyncio.run(scenario())


def test_an_item_added_while_it_is_worked_on_waits_until_that_is_done() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        item = await queue.get()
        queue.add("a")
        assert len(queue) == 0
        queue.done(item)
        assert await taken(queue) == ["a"]

    asyncio.run(scenario())


def test_the_earliest_of_several_times_counts() -> None:
    async def scenario() -> None:
        clock = TestClock()
        queue = WorkQueue[str](clock=clock)
        for seconds in (30, 10, 20):
            queue.add_after("a", seconds)
        queue.add_after("b", 15)
        assert (len(queue), queue.waiting) == (0, 2)
        clock.time += 10
        queue.advance()
        assert await taken(queue) == ["a"]
        clock.time += 20
        queue.advance()
        assert await taken(queue) == ["b"]
        assert queue.waiting == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("kind", "later"),
    [
        (WorkQueue, ["a"]),  # client-go's: what was to come later, comes
        (PriorityQueue, []),  # controller-runtime's: an item is in it once
    ],
)
def test_an_item_that_is_added_now_and_later(kind: type[WorkQueue[str]], later: list[str]) -> None:
    async def scenario() -> None:
        for order in ("now, later", "later, now"):
            clock = TestClock()
            queue = kind(clock=clock)
            for time in order.split(", "):
                queue.add_after("a", {"now": 0, "later": 10}[time])
            assert await taken(queue) == ["a"]
            clock.time += 10
            queue.advance()
            assert await taken(queue) == later

    asyncio.run(scenario())


def test_the_highest_of_several_priorities_counts() -> None:
    async def scenario() -> None:
        clock = TestClock()
        queue = PriorityQueue[str](clock=clock)
        queue.add_after("a", 10, 7)
        queue.add_after("a", 20, 5)
        queue.add_after("b", 10, 6)
        queue.add_after("c", 30, 9)
        queue.add("c", 1)
        queue.add("d", 8)
        clock.time += 10
        queue.advance()
        assert queue.depths == {9: 1, 8: 1, 7: 1, 6: 1}
        assert await taken(queue) == ["c", "d", "a", "b"]
        assert queue.depths == {9: 0, 8: 0, 7: 0, 6: 0}

    asyncio.run(scenario())


def test_failures_wait_longer_each_time_until_they_are_forgotten() -> None:
    async def scenario() -> None:
        clock = TestClock()
        queue = WorkQueue[str](clock=clock, rate_limiter=ItemExponentialFailureRateLimiter(1.0, 60.0))
        for wait in (1, 2, 4):
            queue.add_rate_limited("a")
            clock.time += wait - 0.5
            queue.advance()
            assert len(queue) == 0
            clock.time += 0.5
            queue.advance()
            assert await taken(queue) == ["a"]
        assert queue.num_requeues("a") == 3
        queue.forget("a")
        assert queue.num_requeues("a") == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("limiter", "waits"),
    [
        (ItemExponentialFailureRateLimiter(0.005, 1000.0), [0.005, 0.01, 0.02, 0.04]),
        (ItemExponentialFailureRateLimiter(1.0, 3.0), [1.0, 2.0, 3.0, 3.0]),
        (ItemFastSlowRateLimiter(0.1, 10.0, 2), [0.1, 0.1, 10.0, 10.0]),
        (BucketRateLimiter(10.0, 2, TestClock()), [0.0, 0.0, 0.1, 0.2]),
        (MaxOfRateLimiter(ItemFastSlowRateLimiter(5, 5, 9), ItemExponentialFailureRateLimiter(3.0)), [5, 6, 12, 24]),
        (WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(3.0), 5.0), [3.0, 5.0, 5.0, 5.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rate_limiters(limiter: RateLimiter, waits: list[float]) -> None:
    assert [limiter.when("a") for _ in waits] == pytest.approx(waits)
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


def test_shut_down_gives_out_what_is_there_and_then_ends_those_who_wait() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]("work")
        queue.add("a")
        queue.add_after("late", 1.0)
        item = await queue.get()
        waiter = asyncio.ensure_future(queue.get())
        draining = asyncio.ensure_future(queue.shut_down_with_drain())
        await asyncio.sleep(0)
        with pytest.raises(ShutDown, match="work queue work is shut down"):
            await waiter
        queue.add("b")
        assert not draining.done()
        queue.done(item)
        await draining
        assert (len(queue), queue.waiting) == (0, 0)

    asyncio.run(scenario())


def test_a_worker_that_is_cancelled_loses_no_item() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"

    asyncio.run(scenario())
