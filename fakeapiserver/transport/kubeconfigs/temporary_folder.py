"""Temporary folders that don't outlive their process for long: each has a locked file, and the next process removes those without a lock.

A process that is killed at once can't remove its folder; its lock ends with it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fakeapiserver.transport.file_lock import lock_file

PREFIX: Final = "fakeapiserver-"
_LOCK: Final = ".lock"
_UNLOCKED: Final = ".lock-of-a-beginning"


class TemporaryFolder:
    """A folder of this process, `name`, until `cleanup` or the end of a `with` block. The first one of a process removes folders of
    processes that are gone.
    """

    def __init__(self) -> None:
        remove_left_behind(Path(tempfile.gettempdir()))
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        self.name = self._folder.name
        # Under its name the file is never without its lock: else another process could remove the folder.
        beginning = Path(self.name) / _UNLOCKED
        self._lock = os.open(beginning, os.O_CREAT | os.O_RDWR, 0o600)
        with suppress(OSError):  # some file systems have no locks: such a folder isn't removed by others
            lock_file(self._lock)
            beginning.rename(Path(self.name) / _LOCK)

    def cleanup(self) -> None:
        """Removes the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cleanup()


@cache
def remove_left_behind(parent: Path) -> None:
    """Removes the folders in `parent` of processes that are gone, once in a process: to read a large folder takes longer than to make one
    in it."""
    for folder in _left_behind(parent):
        shutil.rmtree(folder, ignore_errors=True)


def _left_behind(parent: Path) -> Iterator[Path]:
    """Yields the folders with our prefix and owner whose lock is held by no process."""
    with suppress(OSError):
        for entry in os.scandir(parent):
            if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            if _is_own(entry) and _is_unlocked(Path(entry.path) / _LOCK):
                yield Path(entry.path)


def _is_own(entry: "os.DirEntry[str]") -> bool:
    """Reports whether the user owns the entry. On Windows each user has a folder for temporary files of their own."""
    return not hasattr(os, "getuid") or entry.stat(follow_symlinks=False).st_uid == os.getuid()


def _is_unlocked(path: Path) -> bool:
    try:
        lock = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:  # it has no such file, or is being removed
        return False
    try:
        lock_file(lock)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
