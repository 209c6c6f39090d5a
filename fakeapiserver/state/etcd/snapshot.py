"""The keys of an etcd, as a snapshot or a member's database has them: their newest values, and the revisions of the store.

`etcdctl snapshot save` writes a file of bbolt and behind it the SHA-256 of all before. A member's file, `member/snap/db`, has no sum; it
may lack the last writes, which a running etcd commits some milliseconds later. The bucket `key` has each write below its revision.

Upstream: go.etcd.io/etcd/server/v3/storage/mvcc/{revision,kvstore}.go, api/v3/mvccpb/kv.proto, etcdutl/v3/snapshot/v3_snapshot.go.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.state.etcd.bolt import Bolt, Bucket, is_bolt

_SUM_SIZE: Final = hashlib.sha256().digest_size
_SECTOR: Final = 512  # pages are multiples of it, so that a sum behind them is recognised by the file's size
_REVISION: Final = struct.Struct(">Q1sQ")  # main, "_", sub
_TOMBSTONE: Final = b"t"
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


class KeyValue(Struct, frozen=True):
    """A key's newest value. `version` counts the writes since the key was created; `lease` is 0 for a key that doesn't expire."""

    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int = 0


class Keyspace(Struct, frozen=True):
    """All keys that exist, in their order.

    - `revision`: the store's, which is that of the last write unless that was compacted.
    - `compacted`: the revision up to which the history is gone, 0 if it was never compacted.
    - `consistent_index`: the index of the last entry of Raft's log that is contained, 0 if the file doesn't have it.
    - `storage_version`: of etcd's storage, such as `3.6.0`; "" before etcd 3.6.
    """

    revision: int
    compacted: int
    keys: Mapping[bytes, KeyValue]
    consistent_index: int = 0
    storage_version: str = ""


def is_etcd_file(data: bytes) -> bool:
    """Returns whether a file that begins with `data` is one of etcd. The second root of a file is found only in 32 KiB or more."""
    return is_bolt(data)


def read(source: str | os.PathLike[str] | bytes, name: str = "") -> Keyspace:
    """The keys in a file, or in a file's bytes; messages begin with `name`, by default the file's.

    Raises OSError, and ValueError with one sentence if the content is damaged or not from etcd.
    """
    if isinstance(source, bytes):
        return _keyspace(source, name or "the snapshot")
    with _mapped(Path(source), name or str(source)) as data:
        return _keyspace(data, name or str(source))


@contextmanager
def _mapped(path: Path, name: str) -> Iterator[mmap]:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise ValueError(f"{name} is not a file of etcd: it is empty")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield data


def _keyspace(data: bytes | mmap, name: str) -> Keyspace:
    file = Bolt(data, name, _size_without_sum(data, name))
    keys = file.root.bucket(b"key")
    if keys is None:
        raise ValueError(f'{name} is a file of bbolt, but not of etcd: it has no bucket "key"')
    newest, revision = _newest(keys, file.damaged)
    meta = _meta(file)
    compacted = max(_main_of(meta.get(key), file.damaged) for key in (b"finishedCompactRev", b"scheduledCompactRev"))
    return Keyspace(
        max(revision, compacted, 1),
        compacted,
        {key: newest[key] for key in sorted(newest)},
        int.from_bytes(meta.get(b"consistent_index", b"")[:8], "big"),
        meta.get(b"storageVersion", b"").decode(errors="backslashreplace"),
    )


def _size_without_sum(data: bytes | mmap, name: str) -> int:
    """Returns the size of the pages. Raises ValueError if the sum behind them is wrong."""
    size = len(data)
    if size % _SECTOR != _SUM_SIZE or not is_bolt(data):
        return size
    size -= _SUM_SIZE
    with memoryview(data) as content, content[:size] as pages:
        actual = hashlib.sha256(pages).digest()
    if actual != data[size:]:
        raise ValueError(
            f"{name} is damaged: the SHA-256 at its end is not that of its content; save the snapshot again"
        )
    return size


def _newest(keys: Bucket, damaged: Callable[[str], ValueError]) -> tuple[dict[bytes, KeyValue], int]:
    """The keys that aren't deleted, and the revision of the last write."""
    newest: dict[bytes, KeyValue] = {}
    main = 0
    for revision, data in keys.items():
        is_tombstone = len(revision) == _REVISION.size + 1 and revision.endswith(_TOMBSTONE)
        if len(revision) != _REVISION.size + is_tombstone:
            raise damaged(f"the key {revision[:32].hex()} in the bucket key is not a revision")
        main, separator, sub = _REVISION.unpack_from(revision)
        if separator != b"_" or main >> 63:
            raise damaged(f"the key {revision.hex()} in the bucket key is not a revision")
        try:
            key, stored = _key_value(data)
        except ValueError as error:
            raise damaged(f"the value of revision {main}/{sub} {error}") from None
        if is_tombstone:
            newest.pop(key, None)
        elif stored.mod_revision != main or not 0 < stored.create_revision <= main or stored.version < 1:
            raise damaged(f"the value of revision {main}/{sub} has other revisions than its key")
        else:
            newest[key] = stored
    return newest, main


def _meta(file: Bolt) -> dict[bytes, bytes]:
    """etcd's own numbers. Other values, such as the members of the cluster, aren't kept."""
    bucket = file.root.bucket(b"meta")
    known = (b"consistent_index", b"storageVersion", b"finishedCompactRev", b"scheduledCompactRev")
    return {key: value for key, value in bucket.items() if key in known} if bucket else {}


def _main_of(revision: bytes | None, damaged: Callable[[str], ValueError]) -> int:
    """Returns the main part of a stored revision, 0 for None."""
    if revision is None:
        return 0
    if len(revision) != _REVISION.size or revision[0] & 0x80:
        raise damaged(f"{revision[:32].hex()} in the bucket meta is not a revision")
    main: int = _REVISION.unpack(revision)[0]
    return main


def _key_value(data: bytes) -> tuple[bytes, KeyValue]:
    """mvccpb.KeyValue. Raises ValueError with the rest of a sentence."""
    key = value = b""
    numbers = [0] * 7
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            amount, at = _varint(data, at)
            if number < len(numbers):
                numbers[number] = amount
            continue
        start = at
        if wire == _DELIMITED:
            size, start = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"has a field of the wire type {wire}")
        at = start + size
        if at > end:
            raise ValueError("ends within a field")
        if wire == _DELIMITED and number == 1:
            key = data[start:at]
        elif wire == _DELIMITED and number == 5:
            value = data[start:at]
    return key, KeyValue(value, numbers[2], numbers[3], numbers[4], numbers[6])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    amount = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("ends within a number")
        if shift > 63:
            raise ValueError("has a number of more than ten bytes")
        byte = data[at]
        amount |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return amount & 0xFFFFFFFFFFFFFFFF, at
