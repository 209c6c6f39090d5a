"""The comparison that every test ends with: it finds what a storage and its file or etcd don't have in common."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fakeapiserver.storage.file.database import Database, Facts
from fakeapiserver.storage.file.file_storage import FileStorage
from fakeapiserver.storage.interface import Index
from fakeapiserver.storage.mvcc import MVCC
from fakeapiserver.testing import storage_suite as suite

KEY = f"{suite.PODS}default/a"


def forget(mvcc: MVCC) -> None:
    mvcc.delete(KEY, None)


def invent(mvcc: MVCC) -> None:
    mvcc.create(f"{suite.PODS}default/b", suite.value("b"), suite.OFFSET, Index())


def change(mvcc: MVCC) -> None:
    mvcc.replace([mvcc.update(KEY, suite.value("a", "y"), suite.OFFSET, Index(), 2).current], 2)  # type: ignore[list-item]


@pytest.mark.parametrize("damage", [None, forget, invent, change])
def test_differences_are_found(damage: Callable[[MVCC], None] | None, tmp_path: Path, agreement: list[str]) -> None:
    async def run() -> None:
        with Database(tmp_path, "off") as database:
            storage = FileStorage(database, lambda: 0.0)
            await storage.begin(Facts("v1.36", b""))
            await suite.create(storage, "a", "x")
            if damage is not None:
                damage(storage._mvcc)
            await storage.finish()

    asyncio.run(run())
    assert bool(agreement) == (damage is not None)
    agreement.clear()
