"""The clock a test turns."""

import asyncio
import time

import pytest

from fakeapiserver.clock import AdjustableClock, sleep


def test_time_that_is_moved_on_calls_what_is_due_in_order_and_at_its_time() -> None:
    async def scenario() -> list[tuple[str, float]]:
        clock, seen = AdjustableClock(), []
        clock.stop()
        start = clock.now()
        for name, seconds in (("c", 30.0), ("a", 10.0), ("b", 20.0)):
            clock.call_later(seconds, lambda name=name: seen.append((name, round(clock.now() - start, 3))))

        async def between() -> None:
            if seen == [("a", 10.0)]:
                clock.call_later(5.0, lambda: seen.append(("a2", round(clock.now() - start, 3))))
            await asyncio.sleep(0)

        await clock.advance(25.0, between)
        assert round(clock.now() - start, 3) == 25.0
        return seen

    assert asyncio.run(scenario()) == [("a", 10.0), ("a2", 15.0), ("b", 20.0)]


def test_a_stopped_clock_wakes_no_waiter_until_it_goes_on() -> None:
    async def scenario() -> None:
        clock, seen = AdjustableClock(), []
        clock.stop()
        before = clock.monotonic()
        clock.call_later(0.0, lambda: seen.append(1))
        await asyncio.sleep(0.01)
        assert not seen
        assert clock.monotonic() == before
        began = time.monotonic()
        clock.start()
        await sleep(clock, 0.001)
        assert seen
        assert clock.monotonic() - before < time.monotonic() - began + 0.001

    asyncio.run(scenario())


def test_a_cancelled_call_never_comes() -> None:
    async def scenario() -> list[int]:
        clock, seen = AdjustableClock(), []

        async def nothing() -> None:
            pass

        clock.call_later(1.0, lambda: seen.append(1)).cancel()
        assert clock.next_due is None
        await clock.advance(5.0, nothing)
        return seen

    assert asyncio.run(scenario()) == []


def test_time_does_not_go_back() -> None:
    async def scenario() -> None:
        async def nothing() -> None:
            pass

        with pytest.raises(ValueError, match="forward only"):
            await AdjustableClock().advance(-1.0, nothing)

    asyncio.run(scenario())


def test_a_clock_that_is_reset_shows_the_machines_time_and_wakes_as_before() -> None:
    async def scenario() -> None:
        clock, seen = AdjustableClock(), []
        clock.call_later(3600.0, lambda: seen.append("due"))
        clock.stop()
        await clock.advance(3000.0, lambda: asyncio.sleep(0))
        before = clock.monotonic()
        clock.reset()
        assert abs(clock.now() - time.time()) < 60
        assert clock.monotonic() >= before
        await clock.advance(600.0, lambda: asyncio.sleep(0))
        assert seen == ["due"]
        assert 0 < clock.now() - time.time() < 660

    asyncio.run(scenario())


def test_a_jump_sets_the_wall_clock_only() -> None:
    async def scenario() -> None:
        clock, seen = AdjustableClock(), []
        clock.call_later(3600.0, lambda: seen.append("due"))
        clock.stop()
        now, monotonic = clock.now(), clock.monotonic()
        clock.jump(7200.0)
        clock.jump(-10800.0)
        assert clock.now() == pytest.approx(now - 3600)
        assert clock.monotonic() == monotonic
        assert seen == []
        with pytest.raises(ValueError, match="1970 to 9999"):
            clock.jump(-1e10)

    asyncio.run(scenario())
