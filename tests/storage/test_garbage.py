"""Old objects are set aside from collections of garbage, and yet freed at last."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

from fakeapiserver.effort import without_collections
from fakeapiserver.storage import garbage
from fakeapiserver.storage.garbage import SetAside

_COLLECTIONS: Final = 32  # after which the blocks are counted


class Cycle:
    def __init__(self) -> None:
        self.itself = self


class Process:
    """The blocks of memory in use, and the processor time used, as a SetAside reads them; rest takes no time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks = 1000
        self.is_busy = False
        self._seconds = 0.0
        monkeypatch.setattr(garbage, "getallocatedblocks", lambda: self.blocks)
        monkeypatch.setattr(garbage, "process_time", self._time)
        monkeypatch.setattr(garbage, "_REST_SECONDS", 0.0)

    def _time(self) -> float:
        self._seconds += self.is_busy
        return self._seconds

    async def collects(self) -> None:
        """Collects the oldest generation until the blocks are counted, then lets the event loop run several times."""
        for _ in range(_COLLECTIONS):
            gc.collect()
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        gc.collect()
        with SetAside(least_growth=500):
            await test()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("blocks", "is_busy", "is_freed"),
    [
        (2001, False, True),
        (2000, False, False),  # the process has to double
        (2001, True, False),
        (9001, True, True),  # it has grown by eight times as much
        (9000, True, False),
    ],
)
def test_a_complete_collection_needs_growth_and_rest(
    process: Process, blocks: int, is_busy: bool, is_freed: bool
) -> None:
    async def test() -> None:
        old = Cycle()
        gc.collect()
        assert all(each is not old for each in gc.get_objects())
        gone = weakref.ref(old)
        del old
        await process.collects()
        assert gone() is not None
        process.blocks, process.is_busy = blocks, is_busy
        await process.collects()
        assert (gone() is None) == is_freed

    run(test)


def test_a_complete_collection_that_was_due_waits_for_rest(process: Process) -> None:
    async def test() -> None:
        old = Cycle()
        gc.collect()
        gone = weakref.ref(old)
        del old
        process.blocks, process.is_busy = 3000, True
        await process.collects()
        assert gone() is not None
        process.is_busy = False
        await asyncio.sleep(0.01)
        assert gone() is None

    run(test)


def test_the_next_complete_collection_needs_growth_above_what_the_last_one_left(process: Process) -> None:
    async def test() -> None:
        process.blocks = 3000
        await process.collects()
        old = Cycle()
        gc.collect()
        gone = weakref.ref(old)
        del old
        process.blocks = 6000
        await process.collects()
        assert gone() is not None
        process.blocks = 6001
        await process.collects()
        assert gone() is None

    run(test)


def test_new_garbage_is_freed() -> None:
    async def test() -> None:
        gone = weakref.ref(Cycle())
        gc.collect()
        assert gone() is None

    run(test)


@pytest.mark.parametrize("generation", [0, 1, 2])
def test_what_came_while_collections_were_paused_is_not_looked_at(generation: int) -> None:
    async def test() -> None:
        with without_collections():
            gone = weakref.ref(Cycle())
            made = [[number] for number in range(30_000)]
            collected = gc.collect(generation)
        assert collected == 0
        assert gc.get_freeze_count() > len(made)
        assert gone() is not None

    run(test)


def test_all_objects_are_given_back() -> None:
    async def test() -> None:
        with SetAside():
            old = Cycle()
            gc.collect()
        assert any(each is old for each in gc.get_objects())
        assert gc.get_freeze_count() == 0

    asyncio.run(test())
