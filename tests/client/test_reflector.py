"""Tests the requests that a reflector sends to its source."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Any, Unpack

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache import reflector
from fakeapiserver.client.dynamic import ListOptions, RawList
from fakeapiserver.client.rest import WatchEvent
from tests.client.test_leaderelection import VirtualTime

_END = {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}


class Source:
    """Streams an empty first state; its first watch ends at once, others in `seconds`, each after one event."""

    def __init__(self, seconds: float, enough: int) -> None:
        self.asked: list[bool] = []
        self.done = asyncio.Event()
        self._seconds = seconds
        self._enough = enough

    async def list_raw(self, **options: Unpack[ListOptions]) -> RawList:
        raise AssertionError("the first state is streamed")

    async def watch(self, **options: Unpack[ListOptions]) -> AsyncGenerator[WatchEvent, None]:
        self.asked.append(bool(options.get("send_initial_events")))
        if len(self.asked) == self._enough:
            self.done.set()
        if self.asked[-1]:
            yield WatchEvent("BOOKMARK", _END)
            return
        await asyncio.sleep(self._seconds)
        yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(len(self.asked))}})


class Store:
    def add(self, obj: Object) -> None: ...

    update = delete = add

    def replace(self, objects: Iterable[Object]) -> None: ...

    def resync(self) -> None: ...


def test_the_time_of_the_first_watch_isnt_that_of_those_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise every informer would list again once its first watch should have ended. Runs in virtual time."""
    monkeypatch.setattr(reflector, "_MIN_WATCH_SECONDS", 0)
    monkeypatch.setattr(reflector, "_GRACE_SECONDS", 0.1)

    async def main() -> list[bool]:
        source: Any = Source(seconds=0.03, enough=8)
        task = asyncio.create_task(reflector.Reflector(source, Store()).run())
        await asyncio.wait_for(source.done.wait(), 60)
        task.cancel()
        found: list[bool] = source.asked
        return found

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        assert runner.run(main()) == [True] + 7 * [False]
