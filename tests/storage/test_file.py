"""The file backend: the suite of every backend, what a restart finds, and what becomes of a file that is full, torn or damaged."""

import asyncio
import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fakeapiserver.storage.file import database as databases
from fakeapiserver.storage.file import inspection
from fakeapiserver.storage.file.database import NAME, Database, Facts
from fakeapiserver.storage.file.file_storage import FileStorage
from fakeapiserver.storage.interface import KeyExists, StoredObject, Unwritable
from fakeapiserver.storage.mvcc import MVCC, Change
from fakeapiserver.testing import storage_suite as suite

FACTS = Facts("v1.36", b"{}")


def opened(folder: Path) -> tuple[Database, FileStorage]:
    """The storage of a server that starts with the folder."""
    database = Database(folder, "off")
    if database.is_empty:
        database.replace(MVCC(), 0.0, FACTS)
    storage = FileStorage(database, lambda: 0.0, database.load())
    storage.resume()
    return database, storage


def in_folder(folder: Path, scenario: Callable[[FileStorage], Awaitable[None]]) -> None:
    """Runs a scenario with the storage of a folder, and closes it."""

    async def run() -> None:
        database, storage = opened(folder)
        with database:
            await scenario(storage)
            await storage.finish()

    asyncio.run(run())


def state_of(folder: Path) -> MVCC:
    with Database(folder) as database:
        return database.load()


def objects(storage: MVCC) -> dict[str, StoredObject]:
    return {key: stored for bucket in storage.snapshot().buckets.values() for key, stored in bucket.items()}


def changes(storage: MVCC) -> list[tuple[int, str, bool]]:
    return [(c.revision, c.key, c.current is None) for c in storage.changes_after(storage.compacted)]


@pytest.mark.parametrize("check", suite.checks(), ids=lambda check: check.__name__)
def test_file(check: suite.Check, tmp_path: Path) -> None:
    async def run() -> None:
        made: list[FileStorage] = []
        with ExitStack() as stack:

            def make() -> FileStorage:
                database, storage = opened(tmp_path / str(len(made)))
                stack.enter_context(database)
                made.append(storage)
                return storage

            await check(make)
            for storage in made:
                await storage.finish()

    asyncio.run(run())


def test_a_restart_finds_objects_history_and_the_revision(tmp_path: Path) -> None:
    async def write(storage: FileStorage) -> None:
        a, b = await suite.create(storage, "a"), await suite.create(storage, "b")
        await suite.update(storage, a, "new")
        await storage.delete(b.key)

    async def read(storage: FileStorage) -> None:
        assert storage.revision == 5
        assert suite.names(await storage.list(suite.PODS)) == ["a"]
        events = await suite.drain(storage.watch(suite.PODS, revision=2))
        assert [(event.type, event.revision) for event in events] == [("ADDED", 3), ("MODIFIED", 4), ("DELETED", 5)]
        assert (await suite.create(storage, "b")).mod_revision == 6

    in_folder(tmp_path, write)
    in_folder(tmp_path, read)


def test_what_a_fresh_server_stores_is_kept_from_begin_on(tmp_path: Path) -> None:
    async def run() -> None:
        with Database(tmp_path) as database:
            storage = FileStorage(database, lambda: 7.0)
            await suite.create(storage, "before")
            assert database.is_empty
            await storage.begin(Facts("v1.35", b"keys"))
            await suite.create(storage, "after")
            await storage.finish()

    asyncio.run(run())
    with Database(tmp_path) as database:
        assert (database.facts, database.seconds) == (Facts("v1.35", b"keys"), 7.0)
        assert [key.rpartition("/")[2] for key in objects(database.load())] == ["before", "after"]


def test_compaction_drops_what_was_replaced_and_no_revision_is_used_twice(tmp_path: Path) -> None:
    async def write(storage: FileStorage) -> None:
        kept = await suite.create(storage, "kept")
        for _ in range(10):
            kept = await suite.update(storage, kept, "x")
        gone = await suite.create(storage, "gone")
        await storage.delete(gone.key)
        await storage.compact(storage.revision)

    async def read(storage: FileStorage) -> None:
        assert (storage.revision, storage.compacted) == (14, 14)
        assert (await suite.create(storage, "next")).mod_revision == 15

    in_folder(tmp_path, write)
    with Database(tmp_path) as database:
        assert [row.revision for row in database.rows(0)] == [12]
    in_folder(tmp_path, read)


def test_the_file_follows_the_bounds_of_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "_COMPACTED_TOGETHER", 5)

    async def run() -> None:
        with Database(tmp_path, "off") as database:
            storage = FileStorage(database, lambda: 0.0, MVCC(max_events=20))
            await storage.begin(FACTS)
            obj = await suite.create(storage, "a")
            for _ in range(60):
                obj = await suite.update(storage, obj, "x")
            assert len([*database.rows(0)]) < 30
            await storage.finish()

    asyncio.run(run())
    assert [stored.mod_revision for stored in objects(state_of(tmp_path)).values()] == [62]


@pytest.mark.parametrize("what", ["restore", "revert", "adopt"])
def test_a_state_that_is_brought_back_is_kept(what: str, tmp_path: Path) -> None:
    async def write(storage: FileStorage) -> None:
        a = await suite.create(storage, "a")
        snapshot = storage.snapshot()
        await storage.delete(a.key)
        writing = asyncio.ensure_future(suite.create(storage, "b"))
        await asyncio.sleep(0)
        if what == "restore":
            await storage.restore(snapshot)
        elif what == "revert":
            await storage.revert(snapshot)
        else:
            await storage.adopt([a], 90)
        await writing
        await suite.create(storage, "c")

    in_folder(tmp_path, write)
    names = {key.rpartition("/")[2] for key in objects(state_of(tmp_path))}
    assert names == ({"a", "b", "c"} if what == "adopt" else {"a", "c"})


def test_adopted_objects_of_one_revision_are_kept(tmp_path: Path) -> None:
    """Objects of several clusters, or of one transaction of etcd's, may have the same revision; in a file, each has one of its own."""

    async def write(storage: FileStorage) -> None:
        a = await suite.create(storage, "a")
        others = [replace(a, key=f"/registry/pods/default/{name}") for name in "bc"]
        await storage.adopt([a, *others], a.mod_revision)

    in_folder(tmp_path, write)
    found = {key.rpartition("/")[2]: stored for key, stored in objects(state_of(tmp_path)).items()}
    assert {name: stored.mod_revision for name, stored in found.items()} == {"a": 2, "b": 3, "c": 4}
    assert b'"resourceVersion":"4"' in found["c"].value


def test_writes_at_the_same_time_share_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    append = Database.append

    def counted(database: Database, changed: list[object], *rest: object) -> None:
        sizes.append(len(changed))
        append(database, changed, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "append", counted)

    async def write(storage: FileStorage) -> None:
        await asyncio.gather(*(suite.create(storage, f"p{i}") for i in range(50)))

    in_folder(tmp_path, write)
    assert [size for size in sizes if size] == [50]


def test_nothing_is_shown_before_it_is_in_the_file(tmp_path: Path) -> None:
    async def scenario(storage: FileStorage) -> None:
        watcher = storage.watch(suite.PODS)
        creating = asyncio.ensure_future(suite.create(storage, "a"))
        await asyncio.sleep(0)
        key = f"{suite.PODS}default/a"
        assert await storage.get(key) is None
        assert (storage.revision, storage.get_now(key)) == (1, None)
        found = await storage.get_for_update(key)  # another writer goes on from it, once it is in the file
        assert found is not None
        assert found is storage.get_now(key)
        with pytest.raises(KeyExists):
            await suite.create(storage, "a")
        assert creating.done()
        assert [event.revision for event in await suite.drain(watcher)] == [2]

    in_folder(tmp_path, scenario)


def test_a_write_goes_on_when_its_client_is_gone(tmp_path: Path) -> None:
    async def scenario(storage: FileStorage) -> None:
        creating = asyncio.ensure_future(suite.create(storage, "a"))
        await asyncio.sleep(0)
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)
        await suite.create(storage, "b")

    in_folder(tmp_path, scenario)
    assert len(objects(state_of(tmp_path))) == 2


# ---------------------------------------------------------------------- faults


def test_a_full_disk_refuses_writes_and_later_takes_them_again(tmp_path: Path) -> None:
    async def scenario(storage: FileStorage) -> None:
        obj = await suite.create(storage, "a")
        database = storage._database
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count={pages + 2}")
        writes = [suite.create(storage, f"p{i}", "x" * 3000) for i in range(20)]
        results = await asyncio.gather(*writes, suite.update(storage, obj, "b"), return_exceptions=True)
        assert {type(result) for result in results} == {Unwritable}
        assert "can't be written: database or disk is full" in str(results[0])
        assert (storage.revision, len((await storage.list(suite.PODS)).items)) == (2, 1)
        database.execute("PRAGMA max_page_count=1000000")
        assert (await suite.create(storage, "later")).mod_revision == 3

    in_folder(tmp_path, scenario)
    assert len(objects(state_of(tmp_path))) == 2


def test_no_writer_starts_from_a_state_that_a_full_disk_refuses(tmp_path: Path) -> None:
    """A client would be refused with a conflict that never was."""

    async def scenario(storage: FileStorage) -> None:
        obj = await suite.create(storage, "a")
        database = storage._database
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count={pages}")
        updating = asyncio.ensure_future(suite.update(storage, obj, "x" * 30000))
        await asyncio.sleep(0)
        assert await storage.get_for_update(obj.key) == obj
        with pytest.raises(Unwritable):
            await updating

    in_folder(tmp_path, scenario)


def test_after_an_error_of_the_device_nothing_is_written_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise Unwritable("state.db can't be written: disk I/O error", lasting=True)

    async def scenario(storage: FileStorage) -> None:
        obj = await suite.create(storage, "a")
        with monkeypatch.context() as patched:
            patched.setattr(Database, "append", broken)
            with pytest.raises(Unwritable):
                await suite.update(storage, obj, "b")
        with pytest.raises(Unwritable, match="disk I/O error"):
            await suite.update(storage, obj, "b")
        assert await storage.get(obj.key) == obj

    in_folder(tmp_path, scenario)


steps = st.lists(
    st.tuples(st.sampled_from(["create", "update", "delete"]), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps, lost=st.integers(1, 30), kept=st.booleans())
def test_whenever_the_server_dies_what_was_answered_is_there(
    steps: list[tuple[str, int, bool]], lost: int, kept: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The process dies at a transaction, before it is in the file or after (`kept`); some writes wait for each other, others don't."""
    folder = tmp_path_factory.mktemp("data")
    answered: list[int] = []

    class Died(Exception):
        pass

    async def run() -> None:
        database, storage = opened(folder)
        append, transactions = database.append, iter(range(1, 1000))

        def dying(changed: Iterable[Change], seconds: float, compacted: int) -> None:
            dies = next(transactions) == lost
            if kept or not dies:
                append(changed, seconds, compacted)
            if dies:
                raise Died

        setattr(database, "append", dying)  # noqa: B010
        with database:
            await asyncio.gather(*[task async for task in tasks(storage)], return_exceptions=True)

    async def tasks(storage: FileStorage) -> AsyncIterator["asyncio.Future[None]"]:
        for verb, number, waits in steps:
            task = asyncio.ensure_future(one(storage, verb, f"p{number}"))
            if waits:
                await asyncio.wait([task])
            yield task

    async def one(storage: FileStorage, verb: str, name: str) -> None:
        current = await storage.get_for_update(f"{suite.PODS}default/{name}")
        if verb == "create":
            written = await suite.create(storage, name)
        elif current is None:
            return
        elif verb == "update":
            written = await suite.update(storage, current, "x")
        else:
            written = await storage.delete(current.key, expected_revision=current.mod_revision)
        answered.append(written.mod_revision)

    asyncio.run(run())
    found = state_of(folder)
    revisions = [revision for revision, _, _ in changes(found)]
    assert revisions == [*range(2, found.revision + 1)]
    assert set(answered) <= set(revisions)
    assert answered == sorted(answered)


@settings(max_examples=80, deadline=None)
@given(end=st.floats(0, 1), garbage=st.binary(max_size=30))
def test_a_torn_log_ends_with_a_whole_transaction(
    end: float, garbage: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, copy = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("copy")

    async def write(storage: FileStorage) -> None:
        for i in range(12):
            await suite.create(storage, f"p{i}", "x" * 500)
        for path in folder.iterdir():
            shutil.copy(path, copy)

    in_folder(folder, write)
    log = copy / f"{NAME}-wal"
    whole = log.read_bytes()
    log.write_bytes(whole[: int(len(whole) * end)] + garbage)
    found = state_of(copy)
    assert [revision for revision, _, _ in changes(found)] == [*range(2, found.revision + 1)]
    assert found.revision <= 13


# --------------------------------------------------------------- what is found


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    with Database(folder):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600}


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is no folder: name another data directory"):
        Database(tmp_path / "file")


def test_one_server_uses_a_directory(tmp_path: Path) -> None:
    with (
        Database(tmp_path),
        pytest.raises(OSError, match=r"is in use: stop the other server first, or choose another directory"),
    ):
        Database(tmp_path)
    Database(tmp_path).close()


def no_database(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE things (name TEXT)")


def of_a_newer_version(path: Path) -> None:
    Database(path.parent).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version=9")


def with_another_value(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE revisions SET value = replace(value, 'spec', 'spic') WHERE revision = 3")


def without_a_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM revisions WHERE revision = 2")


def with_a_bad_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 8192 * 4096
    data[middle : middle + 4096] = b"\x00" * 4096
    path.write_bytes(data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data directory with a few pods, without a log."""

    async def write(storage: FileStorage) -> None:
        for i in range(30):
            obj = await suite.create(storage, f"p{i}", f"spec {i} " + "x" * 300)
        await storage.delete(obj.key)

    in_folder(tmp_path, write)
    return tmp_path


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (no_database, "is damaged: file is not a database"),
        (of_another_program, "is of another program: choose another data directory"),
        (
            of_a_newer_version,
            "has the format version 9, but this fakeapiserver reads version 1 and older ones: use a newer",
        ),
    ],
)
def test_a_file_that_cannot_be_opened(damage: Callable[[Path], None], complaint: str, tmp_path: Path) -> None:
    damage(tmp_path / NAME)
    with pytest.raises(ValueError, match=complaint):
        Database(tmp_path)


@pytest.mark.parametrize(
    ("damage", "found", "left"),
    [
        (with_another_value, r"revision 3 \(/registry/pods/default/p1\) isn't as it was written", 28),
        (with_a_bad_page, "state.db is damaged: ", None),
    ],
)
def test_a_damaged_file_is_refused_and_what_can_be_read_is_saved(
    damage: Callable[[Path], None], found: str, left: int | None, folder: Path
) -> None:
    damage(folder / NAME)
    with Database(folder) as database:
        with pytest.raises(ValueError, match=found) as refusal:
            database.load()
        assert f"`fakeapiserver state export {folder} saved.json` saves what can be read" in str(refusal.value)
        problems = inspection.check(database).problems
        state, _ = inspection.readable(database)
    assert problems
    assert len(objects(state)) == left or (left is None and 0 < len(objects(state)) < 29)


def test_a_row_that_is_missing_is_noticed(folder: Path) -> None:
    without_a_row(folder / NAME)
    with Database(folder) as database, pytest.raises(ValueError, match="is damaged: revision 2 is missing"):
        database.load()


def test_a_sound_file_has_no_problems(folder: Path) -> None:
    with Database(folder) as database:
        found = inspection.check(database)
    assert (found.revision, found.compacted, found.objects, found.problems) == (32, 1, 29, [])


def test_an_older_version_is_migrated_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Database(tmp_path).close()
    monkeypatch.setattr(databases, "VERSION", 3)
    steps = {
        1: lambda connection: connection.execute("CREATE TABLE second (name TEXT)"),
        2: lambda connection: connection.execute("ALTER TABLE second RENAME TO third"),
    }
    monkeypatch.setattr(databases, "_MIGRATIONS", steps)
    with Database(tmp_path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (3,)
        assert database.execute("SELECT count(*) FROM third").fetchone() == (0,)
