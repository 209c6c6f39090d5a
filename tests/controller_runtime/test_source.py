"""Tests a source of a controller's events: a channel of objects."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakeapiserver.controller_runtime import source
from fakeapiserver.controller_runtime.event import Event, object_of
from fakeapiserver.controller_runtime.handler import Queue


async def objects(*names: str, failure: Exception | None = None) -> AsyncIterator[dict[str, Any]]:
    for name in names:
        yield {"metadata": {"name": name}}
    if failure is not None:
        raise failure


def told(channel_of: AsyncIterator[dict[str, Any]]) -> list[str]:
    """Returns the names that a handler receives; it raises an error for "bad"."""
    found: list[str] = []

    def handler(event: Event, queue: Queue) -> None:
        name = object_of(event)["metadata"]["name"]
        if name == "bad":
            raise ValueError("a bad one")
        found.append(name)

    async def scenario() -> None:
        channel = source.Channel(channel_of, handler)
        await channel.start(None)  # type: ignore[arg-type]
        for _ in range(5):
            await asyncio.sleep(0)
        channel.stop()

    asyncio.run(scenario())
    return found


def test_an_iterator_that_fails_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert told(objects("one", failure=OSError("gone"))) == ["one"]
    (record,) = [record for record in caplog.records if record.name.endswith("source")]
    assert record.getMessage() == "channel source: the iterator failed, no more events come from it"
    assert record.exc_text is not None
    assert record.exc_text.endswith("OSError: gone")


def test_a_handler_that_fails_costs_one_event(caplog: pytest.LogCaptureFixture) -> None:
    assert told(objects("bad", "another")) == ["another"]
    assert [record.getMessage() for record in caplog.records if record.name.endswith("source")] == [
        "channel source: the handler failed"
    ]
