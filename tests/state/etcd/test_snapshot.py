"""The keys in files of etcd: their newest values and revisions."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.state.etcd.snapshot import KeyValue, is_etcd_file, read
from tests.state.etcd.bolt_builder import Builder
from tests.state.etcd.keyspace_builder import Etcd, key_value, revision

STORE = Etcd().put(b"/b", b"1").put(b"/a", b"2").put(b"/b", b"3").put(b"/c", b"4").put(b"/d", b"").delete(b"/c", b"/a")
STORE.put(b"/c", b"6")
KEYS = {b"/b": KeyValue(b"3", 2, 4, 2), b"/c": KeyValue(b"6", 8, 8, 1), b"/d": KeyValue(b"", 6, 6, 1)}


@pytest.mark.parametrize("checksum", [True, False])
def test_the_newest_values_of_existing_keys_are_read(checksum: bool, tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.write_bytes(STORE.file(checksum=checksum))
    assert is_etcd_file(file.read_bytes())
    for keyspace in (read(file), read(str(file)), read(file.read_bytes())):
        assert keyspace.keys == KEYS
        assert list(keyspace.keys) == sorted(KEYS)
        assert (keyspace.revision, keyspace.compacted) == (8, 0)
        assert (keyspace.consistent_index, keyspace.storage_version) == (0, "")


def test_the_revision_is_that_of_a_deletion_too() -> None:
    assert read(Etcd().put(b"/a", b"").delete(b"/a").file()).revision == 3
    assert read(Etcd().file()).revision == 1


def test_a_compacted_store_has_the_revision_of_its_compaction() -> None:
    """Compaction removes the tombstone of the last deletion."""
    etcd = Etcd().put(b"/a", b"1")
    etcd.meta = {b"finishedCompactRev": revision(5), b"scheduledCompactRev": revision(9), b"confState": b"{}"}
    etcd.meta |= {b"consistent_index": (77).to_bytes(8, "big"), b"storageVersion": b"3.6.0"}
    keyspace = read(etcd.file())
    assert (keyspace.revision, keyspace.compacted) == (9, 9)
    assert (keyspace.consistent_index, keyspace.storage_version) == (77, "3.6.0")
    assert keyspace.keys == {b"/a": KeyValue(b"1", 2, 2, 1)}


def test_a_key_remembers_its_lease() -> None:
    data = key_value(b"/a", b"v", 2, 2, 1) + b"\x30\x81\x01"
    assert read(Builder().build({b"key": {revision(2): data}})).keys[b"/a"].lease == 129


def damaged(**writes: bytes) -> bytes:
    return Builder().build({b"key": {bytes.fromhex(key[1:]): value for key, value in writes.items()}})


AT_2 = "r" + revision(2).hex()
REFUSED = {
    "a wrong sum": (
        STORE.file()[:-1] + b"\0",
        "is damaged: the SHA-256 at its end is not that of its content; save the snapshot again",
    ),
    "a truncated snapshot": (STORE.file()[:-600], "is truncated or damaged: it has "),
    "a truncated sum": (STORE.file()[: -32 - 512] + bytes(32), "is damaged: the SHA-256 at its end is not that of"),
    "another file": (b"apiVersion: v1\n", "is not a file of etcd: it doesn't begin with a page of bbolt"),
    "no bytes": (b"", "is not a file of etcd: it doesn't begin with a page of bbolt"),
    "another file of bbolt": (
        Builder().build({b"consul": {}}),
        'is a file of bbolt, but not of etcd: it has no bucket "key"',
    ),
    "no revision": (damaged(r6162=b""), "is truncated or damaged: the key 6162 in the bucket key is not a revision"),
    "a revision without its separator": (
        damaged(**{AT_2.replace("5f", "60"): b""}),
        "is truncated or damaged: the key 0000000000000002600000000000000000 in the bucket key is not a revision",
    ),
    "another revision in the value": (
        damaged(**{AT_2: key_value(b"/a", b"", 3, 3, 1)}),
        "is truncated or damaged: the value of revision 2/0 has other revisions than its key",
    ),
    "half a value": (
        damaged(**{AT_2: key_value(b"/a", b"value", 2, 2, 1)[:-1]}),
        "is truncated or damaged: the value of revision 2/0 ends within a field",
    ),
    "half a number": (
        damaged(**{AT_2: b"\x10\x80"}),
        "is truncated or damaged: the value of revision 2/0 ends within a",
    ),
    "a long number": (
        damaged(**{AT_2: b"\x10" + b"\x80" * 11}),
        "is truncated or damaged: the value of revision 2/0 has a number of more than ten bytes",
    ),
    "a group": (
        damaged(**{AT_2: b"\x0b"}),
        "is truncated or damaged: the value of revision 2/0 has a field of the wire type 3",
    ),
    "a compaction that is no revision": (
        Builder().build({b"key": {}, b"meta": {b"finishedCompactRev": b"abc"}}),
        "is truncated or damaged: 616263 in the bucket meta is not a revision",
    ),
}


@pytest.mark.parametrize("damage", REFUSED)
def test_what_is_refused_and_why(damage: str) -> None:
    data, sentence = REFUSED[damage]
    with pytest.raises(ValueError, match="^x.db " + re.escape(sentence)):
        read(data, "x.db")


def test_files_are_named_in_messages(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(ValueError, match=r"empty\.db is not a file of etcd: it is empty$"):
        read(tmp_path / "empty.db")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing.db")


MEMBER = STORE.file(checksum=False, page_size=1024)
SNAPSHOT = STORE.file(page_size=1024)


@settings(max_examples=1000)
@given(st.lists(st.tuples(st.integers(0, len(MEMBER) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_of_a_member_give_keys_or_a_sentence(changes: list[tuple[int, int]]) -> None:
    """Without a sum, a changed value can't be recognised."""
    assert "\n" not in outcome(changed(MEMBER, changes))


@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(0, len(SNAPSHOT) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_of_a_snapshot_are_refused(changes: list[tuple[int, int]]) -> None:
    data = changed(SNAPSHOT, changes)
    assert outcome(data).startswith("x.db is ") == (data != SNAPSHOT)


def changed(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    content = bytearray(data)
    for at, byte in changes:
        content[at] = byte
    return bytes(content)


def outcome(data: bytes) -> str:
    """The sentence that refuses a file, "" if it is read."""
    try:
        read(data, "x.db")
    except ValueError as error:
        return str(error)
    return ""
