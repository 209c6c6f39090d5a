"""--etcd-compaction-interval: history is kept for an interval, and forgotten within two."""

import asyncio

import pytest

from fakeapiserver.cli.flags import parse
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config


async def compacted(interval: float, *, rounds: int) -> tuple[int, int]:
    """The revision of a fresh server's objects, and the one that history begins behind some intervals later, as soon as it has moved."""
    server = APIServer(Config(etcd_compaction_interval=interval))
    await server.start()
    revision = server.storage.revision
    for _ in range(rounds):
        await asyncio.sleep(0.005)
        if server.storage.compacted >= revision:
            break
    await server.stop()
    return revision, server.storage.compacted


def test_history_is_forgotten() -> None:
    revision, oldest = asyncio.run(compacted(0.01, rounds=5000))
    assert oldest >= revision


def test_it_is_kept_by_default() -> None:
    revision, oldest = asyncio.run(compacted(0.0, rounds=20))
    assert oldest < revision


@pytest.mark.parametrize(("text", "seconds"), [("20s", 20.0), ("5m0s", 300.0), ("0", 0.0)])
def test_the_flag_is_a_duration(text: str, seconds: float) -> None:
    assert parse([f"--etcd-compaction-interval={text}"]).config.etcd_compaction_interval == seconds
