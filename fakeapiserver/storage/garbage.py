"""Python's collection of garbage, in a process that holds very many objects without cycles."""

import asyncio
import gc
from collections.abc import Mapping
from sys import getallocatedblocks
from time import process_time
from typing import Any, Final

_OLDEST: Final = 2
# Blocks of memory by which the process has to grow before a complete collection is due: some 200 MiB.
_LEAST_GROWTH: Final = 2_000_000
# A complete collection waits for rest until the process has grown by this many times what made it due.
_PATIENCE: Final = 8
# The process rests if it uses less than `_REST_PROCESSOR` seconds of processor time in `_REST_SECONDS`.
_REST_SECONDS: Final = 1.0
_REST_PROCESSOR: Final = 0.05
# Collections of the oldest generation between two counts of the blocks, each of which takes 0.3 us for a MiB.
_BETWEEN_COUNTS: Final = 32
# New objects that come together only where collections were paused (effort.without_collections): a collection of them takes 2 ms.
_PAUSED: Final = 20_000
# New objects before a collection of the youngest generation, and collections of each generation before one of the next. Python's own
# thresholds let 77,000 objects come together for the oldest, which takes 20 ms; these 8,400. Each object is looked at as often with any.
_THRESHOLDS: Final = (700, 5, 1)


class SetAside:
    """Sets the survivors of each collection of the oldest generation aside (`gc.freeze`), so that the next one, for which everything waits,
    looks at newer objects only. It is entered in a running event loop.

    Only a complete collection frees cycles among older objects. It takes half a second for 700,000 objects, so it waits until the process
    rests. It is due when the memory in use has grown by as much as the complete collection before has left, and at least by
    `least_growth` blocks: objects that come and go without cycles, as connections do, are no reason for one. A process that doesn't rest
    has one when it has grown by eight times as much.

    Objects that came together while collections were paused are set aside without a look at them: of a million, it would take 100 ms.
    """

    def __init__(self, least_growth: int = _LEAST_GROWTH) -> None:
        self._least_growth = least_growth
        self._blocks_left = 0
        self._collections = 0  # of the oldest generation since the blocks were counted
        self._is_waiting = False  # for rest
        self._is_collecting = False
        self._timer: asyncio.TimerHandle | None = None
        self._thresholds = gc.get_threshold()

    def __enter__(self) -> None:
        """Sets everything that there is aside, and lets garbage be collected."""
        self._loop = asyncio.get_running_loop()
        gc.freeze()
        self._blocks_left = getallocatedblocks()
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*_THRESHOLDS)
        gc.callbacks.append(self._notice)
        gc.enable()

    def __exit__(self, *error: object) -> None:
        """Gives all objects back to ordinary collections."""
        gc.callbacks.remove(self._notice)
        if self._timer is not None:
            self._timer.cancel()
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def _notice(self, phase: str, collection: Mapping[str, Any]) -> None:
        """Is called before and after each collection, in any thread."""
        if self._is_collecting:
            return
        if phase == "start":
            if gc.get_count()[0] > _PAUSED:
                gc.freeze()
        elif collection["generation"] == _OLDEST:
            gc.freeze()
            self._collections += 1
            if self._collections >= _BETWEEN_COUNTS and not self._is_waiting:
                self._collections = 0
                if self._growth() > 1:
                    self._is_waiting = True
                    self._loop.call_soon_threadsafe(self._await_rest)

    def _growth(self) -> float:
        """Returns by how much the process has grown since the last complete collection; 1 is what makes the next one due."""
        blocks = getallocatedblocks()
        return (blocks - self._blocks_left) / max(self._blocks_left, self._least_growth)

    def _await_rest(self) -> None:
        self._timer = self._loop.call_later(_REST_SECONDS, self._collect_at_rest, process_time())

    def _collect_at_rest(self, processor: float) -> None:
        growth, rests = self._growth(), process_time() - processor < _REST_PROCESSOR
        if growth > 1 and not rests and growth <= _PATIENCE:
            self._await_rest()
            return
        self._timer, self._is_waiting = None, False
        if growth > 1:
            self._collect_all()

    def _collect_all(self) -> None:
        self._is_collecting = True
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        # Python puts off the next collection of the oldest generation, the longer the more objects the one before has left: here none.
        gc.collect()
        self._is_collecting = False
        self._blocks_left = getallocatedblocks()
