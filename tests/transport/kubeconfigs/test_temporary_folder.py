"""Temporary folders: what the next process removes, and what it must leave."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

from fakeapiserver.transport.kubeconfigs.temporary_folder import TemporaryFolder, remove_left_behind

_HOLD: Final = """
import sys
from fakeapiserver.transport.kubeconfigs.temporary_folder import TemporaryFolder
folder = TemporaryFolder()
print(folder.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    remove_left_behind.cache_clear()
    return tmp_path


def test_a_folder_is_removed_at_its_end(parent: Path) -> None:
    with TemporaryFolder() as folder:
        assert [*parent.iterdir()] == [Path(folder.name)]
    assert [*parent.iterdir()] == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with TemporaryFolder():
            assert left.exists()
        process.kill()
    with TemporaryFolder():  # this process has looked before
        assert left.exists()
    remove_left_behind.cache_clear()
    with TemporaryFolder():
        assert not left.exists()


def test_what_isnt_ours_stays(parent: Path) -> None:
    others = ("fakeapiserver-without-a-lock", "other-folder", "fakeapiserver-link", "fakeapiserver-file")
    (parent / others[0]).mkdir()
    (parent / others[1]).mkdir()
    (parent / others[1] / ".lock").touch()
    (parent / others[2]).symlink_to(parent / others[1])
    (parent / others[3]).touch()
    with TemporaryFolder():
        pass
    assert {path.name for path in parent.iterdir()} == {*others}
    assert (parent / others[1] / ".lock").exists()


def test_two_folders_of_one_process_both_stay() -> None:
    with TemporaryFolder() as first, TemporaryFolder() as second:
        assert Path(first.name).exists()
        assert Path(second.name).exists()
