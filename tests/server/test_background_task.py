"""Failures of background tasks are logged."""

import asyncio
import logging

import pytest

from fakeapiserver import Cluster
from fakeapiserver.server import background_task
from fakeapiserver.server.upkeep.event_expiry import EventExpiry
from tests.plain_client import Client


def test_a_failure_is_logged_and_the_server_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: EventExpiry) -> None:
        raise LookupError("no such lease")

    monkeypatch.setattr(EventExpiry, "run", fail)
    with Cluster(controllers=()) as cluster:
        assert Client(cluster).status("GET", "/api/v1/namespaces") == 200
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.getMessage().endswith("fail can't go on: no such lease")
    assert record.exc_info is not None


def test_the_end_of_a_server_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        task = background_task.start(asyncio.Event().wait, "waiting")  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    assert caplog.records == []
