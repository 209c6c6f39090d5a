"""The file of a data directory: an SQLite database with a row for each revision that is still known.

    revisions  revision  key               previous  created  deleted  offset  facts   value              checksum
               2         /registry/…/a     0         2        0        13      {…}     {…"2"…}            …
               3         /registry/…/a     2         2        0        13      {…}     {…"3"…}            …
    settings   name      value             revision, compacted, time, kubernetes, keys

A write adds a row. Compaction up to a revision deletes the rows that were replaced by then, and those of deletions; what is left up to
there are the objects of that revision, and the rows after it are the history. `facts` is the object's Index as JSON, `checksum` a CRC-32
over all the others, since SQLite itself has none.

The database is locked as long as it is open. Its write-ahead log ends with the last whole transaction, whatever happens to the process.
"""

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

import msgspec
from msgspec import Struct

from fakeapiserver.effort import without_collections
from fakeapiserver.storage.interface import Index, StorageError, StoredObject, Unwritable
from fakeapiserver.storage.keys import ROOT
from fakeapiserver.storage.mvcc import MVCC, Change

Sync = Literal["full", "normal", "off"]
NAME: Final = "state.db"
VERSION: Final = 1
# "faks", so that `file` and this module know the format.
_APPLICATION_ID: Final = 0x66616B73
# How far the file's compaction may lag behind the history's.
_COMPACTED_TOGETHER: Final = 1000
_SCHEMA: Final = """
CREATE TABLE revisions (
  revision INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  previous INTEGER NOT NULL,
  created INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  facts BLOB NOT NULL,
  value BLOB NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""
_INSERT: Final = "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT: Final = "SELECT * FROM revisions WHERE revision > ? AND revision <= ? ORDER BY revision"
_NEVER: Final = 2**63 - 1
# How to get from an older version of the format to the next one.
_MIGRATIONS: Final[Mapping[int, Callable[[sqlite3.Connection], None]]] = {}

_facts_encoder: Final = msgspec.json.Encoder()
_facts_decoder: Final = msgspec.json.Decoder(Index)


class Row(NamedTuple):
    """A row of the table `revisions`."""

    revision: int
    key: str
    previous: int
    created: int
    deleted: int
    offset: int
    facts: bytes
    value: bytes
    checksum: int

    def sum(self) -> int:
        numbers = (self.revision, self.previous, self.created, self.deleted, self.offset)
        begun = zlib.crc32(b"%d %d %d %d %d" % numbers, zlib.crc32(self.key.encode()))
        return zlib.crc32(self.value, zlib.crc32(self.facts, begun))

    def stored(self) -> StoredObject:
        """The object. Raises ValueError for a row that isn't as it was written."""
        if not (isinstance(self.value, bytes) and isinstance(self.facts, bytes) and self.sum() == self.checksum):
            raise ValueError(f"revision {self.revision} ({self.key}) isn't as it was written")
        if not self.key.startswith(f"{ROOT}/") or not self.value.startswith(b'"resourceVersion":"', self.offset):
            raise ValueError(f"revision {self.revision} is of no object")
        index = _facts_decoder.decode(self.facts)
        return StoredObject(self.key, self.value, self.revision, self.created, index, self.offset)


def _row(state: StoredObject, previous: StoredObject | None, *, deleted: bool) -> Row:
    row = Row(
        state.mod_revision,
        state.key,
        previous.mod_revision if previous is not None else 0,
        state.create_revision,
        int(deleted),
        state.offset,
        _facts_encoder.encode(state.index),
        state.value,
        0,
    )
    return row._replace(checksum=row.sum())


def _row_of(change: Change) -> Row:
    if change.tombstone is not None:
        return _row(change.tombstone, change.previous, deleted=True)
    assert change.current is not None
    return _row(change.current, change.previous, deleted=False)


def in_use(folder: Path) -> OSError:
    return OSError(f"the data directory {folder} is in use: stop the other server first, or choose another directory")


class Facts(Struct, frozen=True):
    """Kept beside the objects: the Kubernetes version, and private keys in a form of the caller's."""

    kubernetes_version: str
    keys: bytes


class Database:
    """An open, locked data directory. Used by one thread at a time.

    Raises OSError for a folder that can't be used or is in use, ValueError for a file that is damaged, of a newer version, or of
    another program: one sentence each, which says what to do. `copy`: a folder with a copy of the file, which is opened instead.
    """

    def __init__(
        self, folder: Path, sync: Sync = "full", *, must_exist: bool = False, copy: Path | None = None
    ) -> None:
        self.path = folder / NAME
        if must_exist and not self.path.is_file():
            raise FileNotFoundError(f"{folder} is no data directory: it has no file {NAME}")
        if copy is None:
            self._prepare(folder)
        self._connection = self._connected(self.path if copy is None else copy / NAME, sync)
        try:
            self._open()
        except BaseException:
            self._connection.close()
            raise
        self._compacted = self._number("compacted", 1)

    def _prepare(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is no folder: name another data directory")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise OSError(f"can't use the data directory {folder}: {error.strerror}") from error

    def _connected(self, path: Path, sync: Sync) -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
        with self._explained():
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={sync.upper()}")
            connection.execute("BEGIN IMMEDIATE")  # takes the lock, which is kept then
            connection.execute("COMMIT")
        return connection

    def _open(self) -> None:
        """Makes the tables of a new file, and migrates those of an older version."""
        with self._explained():
            (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if tables and application != _APPLICATION_ID:
                raise ValueError(f"{self.path} is of another program: choose another data directory")
            if version > VERSION:
                raise ValueError(
                    f"{self.path} has the format version {version}, but this fakeapiserver reads version {VERSION} and older ones: "
                    "use a newer fakeapiserver"
                )
            if not tables:
                with self._transaction() as connection:
                    for statement in _SCHEMA.split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version={VERSION}")
            for older in range(version if tables else VERSION, VERSION):
                with self._transaction() as connection:
                    _MIGRATIONS[older](connection)
                    connection.execute(f"PRAGMA user_version={older + 1}")

    @property
    def is_empty(self) -> bool:
        """Reports whether nothing was stored here yet."""
        return self._setting("kubernetes") is None

    @property
    def facts(self) -> Facts:
        """Raises ValueError if nothing was stored here yet."""
        version = self._setting("kubernetes")
        if version is None:
            raise ValueError(f"{self.path} holds no state yet: a server that starts with this directory stores one")
        return Facts(version.decode(), self._setting("keys") or b"")

    @property
    def seconds(self) -> float:
        """The time of the cluster's clock at the last write, in seconds since 1970; 0.0 if nothing was stored here yet."""
        return float(self._setting("time") or b"0")

    # ----------------------------------------------------------------- writes

    def append(self, changes: Iterable[Change], seconds: float, compacted: int) -> None:
        """Writes changes, in the order of their revisions; they are in the file when this returns, and none of them is if it raises. What
        was replaced up to the revision `compacted` may be dropped, a thousand revisions at a time.

        Raises Unwritable."""
        is_due = compacted - self._compacted >= _COMPACTED_TOGETHER
        with self._written() as connection:
            connection.executemany(_INSERT, map(_row_of, changes))
            self._set("time", seconds)
            if is_due:
                self._drop(compacted)
        if is_due:
            self._compacted = compacted

    def compact(self, revision: int) -> None:
        """Drops what was replaced up to that revision. Raises Unwritable."""
        with self._written():
            self._drop(revision)
        self._compacted = max(self._compacted, revision)

    def replace(self, storage: MVCC, seconds: float, facts: Facts | None = None) -> None:
        """Writes the whole state in place of the present one; `facts` only if they are given. Raises Unwritable."""
        with self._written() as connection:
            connection.execute("DELETE FROM revisions")
            connection.executemany(_INSERT, (_row(state, None, deleted=False) for state in storage.base()))
            connection.executemany(_INSERT, map(_row_of, storage.changes_after(storage.compacted)))
            self._set("revision", storage.revision)
            self._set("compacted", storage.compacted)
            self._set("time", seconds)
            if facts is not None:
                self._describe(facts)
        self._compacted = storage.compacted

    def describe(self, facts: Facts) -> None:
        """Writes what is kept beside the objects. Raises Unwritable."""
        with self._written():
            self._describe(facts)

    def _describe(self, facts: Facts) -> None:
        self._set("kubernetes", facts.kubernetes_version)
        self._set("keys", facts.keys)

    def _drop(self, revision: int) -> None:
        bounds = (self._compacted, revision)
        self._set("revision", self._newest())
        self._connection.execute(
            "DELETE FROM revisions WHERE revision IN (SELECT previous FROM revisions WHERE revision > ? AND revision <= ?)",
            bounds,
        )
        self._connection.execute("DELETE FROM revisions WHERE revision > ? AND revision <= ? AND deleted", bounds)
        self._set("compacted", max(self._compacted, revision))

    @property
    def size(self) -> int:
        """The bytes of the file and of its log."""
        return sum(path.stat().st_size for path in self.path.parent.glob(f"{NAME}*"))

    def shrink(self) -> None:
        """Gives space that is no longer used back to the file system. Raises OSError."""
        with self._explained():
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Unlocks the folder. A second call does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ reads

    def load(self) -> MVCC:
        """The state with its history. Raises ValueError if the file is damaged."""
        storage = MVCC()
        compacted = self._compacted
        try:
            newest = self._newest()
            with without_collections():
                base = [row.stored() for row in self.rows(0, compacted)]
                storage.load(base, compacted, self._changes(compacted), newest)
        except (sqlite3.DatabaseError, msgspec.DecodeError, StorageError, ValueError) as error:
            raise ValueError(self._damaged(error)) from error
        return storage

    def _newest(self) -> int:
        """The newest revision; the row of a deletion that was compacted is gone."""
        (revision,) = self._connection.execute("SELECT max(revision) FROM revisions").fetchone()
        return max(self._number("revision", 1), revision or 1)

    def rows(self, after: int, until: int = _NEVER) -> Iterator[Row]:
        """The rows after one revision up to another, in order. Raises sqlite3.DatabaseError."""
        return map(Row._make, self._connection.execute(_SELECT, (after, until)))

    def execute(self, statement: str, values: Sequence[int] = ()) -> sqlite3.Cursor:
        """Runs a statement that only reads. Raises sqlite3.DatabaseError."""
        return self._connection.execute(statement, values)

    def _changes(self, after: int) -> Iterator[tuple[StoredObject, bool]]:
        for row in self.rows(after):
            after += 1
            if row.revision != after:
                raise ValueError(f"revision {after} is missing")
            yield row.stored(), bool(row.deleted)

    # --------------------------------------------------------------- settings

    def _setting(self, name: str) -> bytes | None:
        with self._explained():
            found = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return found[0] if found is not None else None

    def _number(self, name: str, default: int) -> int:
        value = self._setting(name)
        return int(value) if value is not None else default

    def _set(self, name: str, value: str | float | bytes) -> None:
        data = value if isinstance(value, bytes) else str(value).encode()
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, data))

    # ----------------------------------------------------------------- errors

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # it may be rolled back already
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        """A transaction whose failure is Unwritable."""
        try:
            with self._transaction() as connection:
                yield connection
        except sqlite3.Error as error:
            is_full = error.sqlite_errorname == "SQLITE_FULL"
            raise Unwritable(f"{self.path} can't be written: {error}", lasting=not is_full) from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            name = error.sqlite_errorname
            if name.startswith("SQLITE_BUSY"):
                raise in_use(self.path.parent) from error
            if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                raise ValueError(self._damaged(error)) from error
            raise OSError(f"can't use {self.path}: {error}") from error

    def _damaged(self, error: Exception) -> str:
        return f"{self.path} is damaged: {error}; {self.advice}"

    @property
    def advice(self) -> str:
        """The rest of a sentence that says how to save a damaged file."""
        return f"`fakeapiserver state export {self.path.parent} saved.json` saves what can be read, and serve --load takes it"
