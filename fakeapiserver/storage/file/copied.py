"""A data directory that is only read: a copy is opened, since SQLite writes next to a file that it opens."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fakeapiserver.storage.file.database import NAME, Database, in_use


@contextmanager
def copied(folder: Path) -> Iterator[Database]:
    """A copy of a data directory, which no server must be using. Raises OSError and ValueError as `Database` does."""
    path = folder / NAME
    if path.is_file() and _is_locked(path):
        raise in_use(folder)
    with TemporaryDirectory(prefix="fakeapiserver-") as place:
        try:
            for file in folder.glob(f"{NAME}*"):
                shutil.copyfile(file, Path(place) / file.name)
        except OSError as error:
            raise OSError(f"can't read the data directory {folder}: {error.strerror}") from error
        with Database(folder, "off", must_exist=True, copy=Path(place)) as database:
            yield database


def _is_locked(path: Path) -> bool:
    """Reports whether a server has the file open. Only SQLite may look: when a process closes a file, it loses its locks on it."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
        try:
            # In this mode SQLite creates no files, and fails where it gets the lock, which it may only read with.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("SELECT 1 FROM sqlite_schema")
        except sqlite3.Error as error:
            return error.sqlite_errorname.startswith("SQLITE_BUSY")
    return False
