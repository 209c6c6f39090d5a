"""Long computations: what leaves the event loop, and how it ends."""

import asyncio
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from fakeapiserver.apimachinery.allowance import LARGE, spend
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.effort import EndsAfter, computed, kept_in_loop, offloaded, weight, without_collections
from fakeapiserver.registry.core import RESOURCES

IN_LOOP = threading.current_thread().name


def place() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("run", [computed, offloaded])
@pytest.mark.parametrize(("size", "expected"), [(0, IN_LOOP), (LARGE - 1, IN_LOOP), (LARGE, "computation")])
def test_large_objects_are_computed_with_in_a_thread(run: Callable[..., Any], size: int, expected: str) -> None:
    assert asyncio.run(run(place, size)) == expected


@pytest.mark.parametrize(
    "item", [b"0,", b"{},", b"[],", b'"",', b'"a":"",', b'{"a":1},', b'"a":"\\"",', b'{"a":{"b":null}},']
)
def test_many_items_count_about_as_their_bytes(item: bytes) -> None:
    assert weight(item * (LARGE // len(item) - 1)) < LARGE
    assert weight(item * (LARGE * 3 // 2 // len(item))) >= LARGE


@pytest.mark.parametrize("size", [1, LARGE, 1 << 20])
def test_the_bytes_of_a_long_text_count_little(size: int) -> None:
    assert weight(b'{"data":{"a":"' + b"n" * size + b'"}}') < LARGE


@pytest.mark.parametrize(("resource", "is_small"), [("configmaps", True), ("secrets", False), ("pods", False)])
def test_only_config_maps_keep_their_texts_unparsed(resource: str, is_small: bool) -> None:
    assert (RESOURCES[resource].weight(b'"' + b"n" * LARGE + b'"') < LARGE) == is_small


def test_what_turns_out_to_be_expensive_begins_again_in_a_thread() -> None:
    places: list[str] = []

    def step() -> int:
        places.append(place())
        for _ in range(1000):
            spend(1000)
        return 1

    async def scenario() -> list[Any]:
        with EndsAfter(60):
            return [await computed(step), await computed(place), await offloaded(place, 0)]

    assert asyncio.run(scenario()) == [1, "computation", "computation"]
    assert places == [IN_LOOP, "computation"]


def test_the_server_keeps_larger_objects_of_its_own_in_the_loop() -> None:
    async def scenario() -> list[str]:
        with kept_in_loop(2 * LARGE):
            places = [await computed(place, LARGE), await offloaded(place, LARGE), await computed(place, 2 * LARGE)]
        return [*places, await computed(place, LARGE)]

    assert asyncio.run(scenario()) == [IN_LOOP, IN_LOOP, "computation", "computation"]


def test_outside_of_requests_nothing_is_counted() -> None:
    async def scenario() -> str:
        return await computed(lambda: [spend(1 << 40), place()][1])  # type: ignore[func-returns-value]

    assert asyncio.run(scenario()) == IN_LOOP


@pytest.mark.parametrize("error", [ValueError("why"), KeyboardInterrupt()])
def test_an_error_is_raised_as_in_the_event_loop(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def scenario() -> BaseException:
        try:
            await computed(fail, LARGE)
        except BaseException as raised:
            return raised
        raise AssertionError

    assert asyncio.run(scenario()) is error


def test_what_a_failed_computation_has_made_is_freed_without_a_collection() -> None:
    class Large(list[int]):
        pass

    made: list[weakref.ref[Large]] = []

    def fail() -> None:
        large = Large()
        made.append(weakref.ref(large))
        raise ValueError(len(large))

    async def scenario() -> None:
        with suppress(ValueError):
            await computed(fail, LARGE)
        while computing := [thread for thread in threading.enumerate() if thread.name == "computation"]:
            computing[0].join()
        await asyncio.sleep(0)  # the event loop has the error until then
        assert made[0]() is None

    with without_collections():
        asyncio.run(scenario())


def endless(ended: threading.Event) -> Callable[[], None]:
    def step() -> None:
        try:
            while True:
                pass
        finally:
            ended.set()

    return step


def test_the_deadline_ends_a_computation() -> None:
    ended = threading.Event()

    async def scenario() -> None:
        with EndsAfter(0.05):
            await computed(endless(ended), LARGE)

    with pytest.raises(StatusError) as refused:
        asyncio.run(scenario())
    assert (refused.value.code, refused.value.reason) == (504, "Timeout")
    assert ended.is_set()


def test_a_computation_has_ended_when_its_caller_is_cancelled() -> None:
    ended = threading.Event()

    async def scenario() -> None:
        caller = asyncio.ensure_future(computed(endless(ended), LARGE))
        await asyncio.sleep(0.02)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert ended.is_set()

    asyncio.run(scenario())


def test_others_run_meanwhile_and_only_two_compute() -> None:
    running, most, turns = 0, 0, 0
    released = threading.Event()

    def step() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        released.wait(5)
        running -= 1

    async def scenario() -> None:
        nonlocal turns
        steps = [asyncio.ensure_future(computed(step, LARGE)) for _ in range(5)]
        while most < 2:
            turns += 1
            await asyncio.sleep(0)
        released.set()
        await asyncio.gather(*steps)

    asyncio.run(scenario())
    assert most == 2
    assert turns > 0
