"""Tests waiting for objects: the results and the retries."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from fakeapiserver.client import wait
from fakeapiserver.client.dynamic import RawList
from fakeapiserver.client.errors import StatusError, TransportError
from fakeapiserver.client.rest import OnAnswer, WatchEvent

Script = Sequence[WatchEvent | Exception]


class Source:
    """Lists nothing, and gives each watch the next script."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.lists = 0

    async def list_raw(self, **options: Any) -> RawList:
        self.lists += 1
        assert options["field_selector"] == "metadata.name=web"
        return RawList(json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode())

    async def watch(self, *, on_answer: OnAnswer | None = None, **options: Any) -> AsyncGenerator[WatchEvent, None]:
        for event in self._scripts.pop(0) if self._scripts else ():
            if isinstance(event, Exception):
                raise event
            yield event


def ready(status: str) -> WatchEvent:
    conditions = [{"type": "Ready", "status": status}]
    return WatchEvent("MODIFIED", {"metadata": {"name": "web"}, "status": {"conditions": conditions}})


@pytest.mark.parametrize(
    ("scripts", "lists"),
    [
        ([[ready("False"), ready("True")]], 1),
        ([[ready("False"), TransportError("unexpected EOF")], [ready("True")]], 2),
        ([[WatchEvent("ERROR", {"code": 410})], [], [ready("True")]], 3),
    ],
    ids=["at once", "broken", "expired"],
)
def test_watches_are_started_again(scripts: Sequence[Script], lists: int) -> None:
    source = Source(*scripts)
    found = asyncio.run(wait.until(source, wait.has_condition("Ready"), name="web", sleep=lambda _: asyncio.sleep(0)))
    assert found == ready("True").object
    assert source.lists == lists


def test_time_limits_say_what_was_waited_for() -> None:
    with pytest.raises(TimeoutError, match=r"^the condition didn't hold for web within 0\.01 seconds$"):
        asyncio.run(wait.until(Source(), wait.has_condition("Ready"), name="web", timeout=0.01))

    async def never() -> bool:
        return False

    with pytest.raises(TimeoutError, match=r"^the condition didn't hold within 0\.01 seconds$"):
        asyncio.run(wait.poll_until(never, interval=0.001, timeout=0.01))


@pytest.mark.parametrize(("conflicts", "works"), [(0, True), (4, True), (5, False)])
def test_conflicts_are_tried_again(conflicts: int, works: bool) -> None:
    pauses: list[float] = []
    left = [*[StatusError({"reason": "Conflict", "code": 409})] * conflicts]

    async def work() -> str:
        if left:
            raise left.pop()
        return "done"

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    if works:
        assert asyncio.run(wait.retry_on_conflict(work, sleep=sleep)) == "done"
        assert all(0.01 <= pause <= 0.011 for pause in pauses)
        assert len(pauses) == conflicts
    else:
        with pytest.raises(StatusError):
            asyncio.run(wait.retry_on_conflict(work, sleep=sleep))
