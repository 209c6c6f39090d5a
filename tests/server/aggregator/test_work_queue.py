"""When keys are looked at: once however often they were added, later where that failed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fakeapiserver.clock import SystemClock
from fakeapiserver.server.aggregator.work_queue import Retry, WorkQueue


async def worked(sync: Callable[[str], Awaitable[float | None]], *keys: str, until: asyncio.Event) -> None:
    queue = WorkQueue(sync, SystemClock(), base=0.001, longest=0.004)
    for key in keys:
        queue.add(key)
    running = asyncio.create_task(queue.run())
    await asyncio.wait_for(until.wait(), 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_a_key_added_twice_is_looked_at_once() -> None:
    async def scenario() -> list[str]:
        seen: list[str] = []
        done = asyncio.Event()

        async def sync(key: str) -> None:
            seen.append(key)
            if key == "b":
                done.set()

        await worked(sync, "a", "a", "b", until=done)
        return seen

    assert asyncio.run(scenario()) == ["a", "b"]


@pytest.mark.parametrize("error", [Retry("not yet"), ValueError("a bug")])
def test_a_failure_is_repeated_until_it_succeeds(error: Exception) -> None:
    async def scenario() -> int:
        attempts = 0
        done = asyncio.Event()

        async def sync(key: str) -> None:
            nonlocal attempts
            attempts += 1
            if attempts < 5:
                raise error
            done.set()

        await worked(sync, "a", until=done)
        return attempts

    assert asyncio.run(scenario()) == 5


def test_a_key_is_looked_at_again_when_it_asks_for_it_and_never_twice_at_once() -> None:
    async def scenario() -> int:
        running, most, rounds = 0, 0, 0
        done = asyncio.Event()

        async def sync(key: str) -> float:
            nonlocal running, most, rounds
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            rounds += 1
            if rounds == 3:
                done.set()
            return 0.0

        await worked(sync, "a", until=done)
        return most

    assert asyncio.run(scenario()) == 1
