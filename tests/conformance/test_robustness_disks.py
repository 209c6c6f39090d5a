"""The damage that the harness does to the ends of logs is what a loss of power leaves: nothing that was acknowledged is gone."""

import random
import shutil
from pathlib import Path

import pytest

from conformance.robustness import disks
from fakeapiserver.storage.file.database import NAME, Database, Facts
from fakeapiserver.storage.interface import Index
from fakeapiserver.storage.mvcc import MVCC, creation

LOG = f"{NAME}-wal"


def written(folder: Path, copy: Path) -> None:
    """Copies a directory with 20 revisions while it is open, as a kill leaves it."""
    with Database(folder, "off") as database:
        database.replace(MVCC(), 0.0, Facts("v1.36", b"{}"))
        for revision in range(2, 22):
            change = creation(f"/registry/pods/default/p{revision}", b'{"metadata":{}}', 13, Index(), revision)
            database.append([change], 0.0, 1)
        shutil.copytree(folder, copy)


def test_a_torn_log_of_sqlite_keeps_each_transaction(tmp_path: Path) -> None:
    written(tmp_path / "open", tmp_path / "killed")
    what = set()
    for seed in range(40):
        folder = tmp_path / str(seed)
        shutil.copytree(tmp_path / "killed", folder)
        size = (folder / LOG).stat().st_size
        what.add(disks.tear_sqlite(folder / LOG, random.Random(seed)))
        assert (folder / LOG).stat().st_size >= size
        with Database(folder, "off") as database:
            assert database.load().revision == 21
    assert len(what) == 4


def test_what_is_cut_is_behind_the_last_transaction(tmp_path: Path) -> None:
    """Without its last byte the last transaction isn't whole, so the end is before it."""
    written(tmp_path / "open", tmp_path / "killed")
    data = (tmp_path / "killed" / LOG).read_bytes()
    whole, shorter = disks._end_of_sqlite(data), disks._end_of_sqlite(data[:-1])
    assert (whole, shorter < whole) == (len(data), True)
    assert disks._end_of_sqlite(b"") == 0


@pytest.mark.parametrize("data", [b"", bytes(32)])
def test_an_empty_log_stays(data: bytes, tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(data)
    assert disks.tear_sqlite(tmp_path / LOG, random.Random(1)) == "no log"
    assert (tmp_path / LOG).read_bytes() == data
