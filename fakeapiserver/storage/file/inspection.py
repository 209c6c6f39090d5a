"""Looks at a database that may be damaged: what is in it, what is wrong, and what can still be read."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from sqlite3 import DatabaseError

import msgspec
from msgspec import Struct

from fakeapiserver.storage.file.database import Database, Row
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.mvcc import MVCC

# A search for what follows a damaged page ends this many revisions behind the newest known one.
_BEYOND = 2**20


class Found(Struct, frozen=True):
    """`size` in bytes. `problems` are sentences; with one the file can't be served."""

    revision: int
    compacted: int
    objects: int
    size: int
    problems: Sequence[str] = ()


def check(database: Database) -> Found:
    """Reads everything."""
    problems: list[str] = []
    try:
        problems += [text for (text,) in database.execute("PRAGMA integrity_check(20)") if text != "ok"]
    except DatabaseError as error:
        problems.append(str(error))
    storage, unread = contents(database)
    problems += unread
    objects = sum(map(len, storage.snapshot().buckets.values()))
    return Found(storage.revision, storage.compacted, objects, database.size, problems)


def contents(database: Database) -> tuple[MVCC, list[str]]:
    """The state with its history, or, if the file is damaged, what can be read, and the damage as sentences."""
    try:
        return database.load(), []
    except ValueError as error:
        storage, problems = readable(database)
        return storage, problems or [str(error)]


def readable(database: Database) -> tuple[MVCC, list[str]]:
    """The newest state of each object that can be read, without history, and what can't be, as sentences."""
    objects: dict[str, StoredObject] = {}
    problems: list[str] = []
    newest = 1
    for row in _rows(database, problems):
        newest = max(newest, row.revision)
        try:
            stored = row.stored()
        except (ValueError, msgspec.DecodeError) as error:
            problems.append(str(error))
            continue
        if row.deleted:
            objects.pop(row.key, None)
        else:
            objects[row.key] = stored
    storage = MVCC()
    storage.load([*objects.values()], newest, iter(()), newest)
    return storage, problems


def _rows(database: Database, problems: list[str]) -> Iterator[Row]:
    """The rows that can be read, in order; what is skipped is added to the problems."""
    last: int | None = 0
    while last is not None:
        try:
            for row in database.rows(last):
                last = row.revision
                yield row
        except DatabaseError as error:
            problems.append(f"what follows revision {last} can't be read: {error}")
            last = _next_readable(database, last)
        else:
            return


def _next_readable(database: Database, after: int) -> int | None:
    """The revision before one behind a damaged page that can be read; None if none can."""
    step = 1
    while step < _BEYOND:
        with suppress(DatabaseError):
            row = database.execute("SELECT * FROM revisions WHERE revision > ? LIMIT 1", (after + step,)).fetchone()
            return int(row[0]) - 1 if row is not None else None
        step *= 2
    return None
