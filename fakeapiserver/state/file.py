"""The file of a saved state: JSON lines, compressed with gzip if the file's name ends in .gz.

    {"format":"fakeapiserver/state","version":1,"kubernetes":"v1.36","revision":9,"compacted":4,"time":…,"objects":2,"changes":5,…}
    {"authority":…,"tokens":…}       the keys, if the first line has "keys":true
    {"key":"/registry/…",…}          each object as it was at the revision `compacted`
    {"key":"/registry/…",…}          each write since, in order; a deletion has "deleted":true and the object's last state
    {"t":"start",…}                  in version 2: "records" lines: the recording of a server with its page (evidence/timeline/saved.py)

The first line has the SHA-256 of all that follows. An object's `value` is what the server stores, values of Secrets included; its
`resourceVersion` is at the byte `offset`. A file is read as a whole: it is refused with one sentence, or all of it is loaded.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from fakeapiserver.apimachinery.timestamp import rfc3339_micro, seconds_of
from fakeapiserver.storage.interface import Index, StorageError, StoredObject
from fakeapiserver.storage.keys import ROOT
from fakeapiserver.storage.mvcc import MVCC, Change
from fakeapiserver.transport.files import write_file

FORMAT: Final = "fakeapiserver/state"
# The versions that are read. A file with a recording is of the second one.
VERSIONS: Final = (1, 2)
_GZIP: Final = b"\x1f\x8b"


class Keys(Struct, frozen=True):
    """Private keys, as PEM, and the admin's token: with them, credentials for the saved cluster are valid for the loaded one."""

    authority_certificate: str
    authority_key: str
    admin_token: str
    tokens: str


class Header(Struct, frozen=True, omit_defaults=True):
    """The first line. `time` is that of the cluster's clock; `metrics` are the metrics APIs that are served."""

    format: str
    version: int
    kubernetes: str
    revision: int
    compacted: int
    time: str
    objects: int
    changes: int
    sha256: str
    keys: bool = False
    metrics: tuple[str, ...] = ()
    records: int = 0


class Saved(Struct, frozen=True):
    """The contents of a file. `seconds` is the time of the saved cluster's clock, `recording` is that of its page, in lines."""

    kubernetes_version: str
    storage: MVCC
    seconds: float
    metrics: Collection[str] = ()
    keys: Keys | None = None
    recording: bytes = b""


class _Line(Struct, frozen=True, omit_defaults=True):
    """A state of an object."""

    key: str
    revision: int
    created: int
    offset: int
    value: msgspec.Raw
    uid: str = ""
    version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    deleted: bool = False


class _Format(Struct):
    """The part of the first line that each version of the format has."""

    format: str
    version: int


_encoder: Final = msgspec.json.Encoder()
_lines: Final = msgspec.json.Decoder(_Line)


def encode(saved: Saved) -> bytes:
    """Returns the bytes of a file, not compressed."""
    history = [*saved.storage.changes_after(saved.storage.compacted)]
    base = saved.storage.base()
    lines = [_encoder.encode(saved.keys)] if saved.keys is not None else []
    lines += [_encoder.encode(_line(stored)) for stored in base]
    lines += [_encoder.encode(_change(change)) for change in history]
    body = b"".join(line + b"\n" for line in lines) + saved.recording
    header = Header(
        FORMAT,
        VERSIONS[bool(saved.recording)],
        saved.kubernetes_version,
        saved.storage.revision,
        saved.storage.compacted,
        rfc3339_micro(saved.seconds),
        len(base),
        len(history),
        hashlib.sha256(body).hexdigest(),
        saved.keys is not None,
        tuple(saved.metrics),
        saved.recording.count(b"\n"),
    )
    return _encoder.encode(header) + b"\n" + body


def decode(data: bytes, name: str) -> Saved:
    """The state that `encode` has written, compressed or not. Raises ValueError with a sentence that begins with `name`."""
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error):
            raise ValueError(
                f"{name} is truncated or damaged: it can't be decompressed; save the state again"
            ) from None
    first, _, body = data.partition(b"\n")
    header = _header(first, name)
    if hashlib.sha256(body).hexdigest() != header.sha256:
        raise ValueError(f"{name} is truncated or was changed: its checksum is wrong; save the state again")
    try:
        lines = body.splitlines(keepends=True)
        keys = msgspec.json.decode(lines.pop(0), type=Keys) if header.keys else None
        recording = lines[len(lines) - header.records :]
        storage = _replayed(header, [_lines.decode(line) for line in lines[: len(lines) - len(recording)]])
    except (msgspec.DecodeError, IndexError, StorageError, ValueError) as error:
        raise ValueError(f"{name} holds no valid state: {error}") from None
    return Saved(header.kubernetes, storage, seconds_of(header.time) or 0.0, header.metrics, keys, b"".join(recording))


def is_saved(data: bytes) -> bool:
    """Reports whether decompressed bytes claim to be a saved state."""
    return data.startswith(b'{"format"')


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes the bytes of `encode` with mode 0600: the file appears, or is replaced, as a whole. Raises OSError."""
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: name a file to save to")
    try:
        write_file(file, gzip.compress(data, 6, mtime=0) if file.suffix == ".gz" else data, 0o600)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no folder {file.parent} to save {file.name} in: create it first") from None


def read(path: str | os.PathLike[str]) -> Saved:
    """The state in a file. Raises OSError, and ValueError for a file that is damaged or isn't a saved state."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    return decode(file.read_bytes(), str(file))


def _header(line: bytes, name: str) -> Header:
    try:
        form = msgspec.json.decode(line, type=_Format)
    except msgspec.DecodeError:
        form = None
    except UnicodeDecodeError:
        form = None
    if form is None or form.format != FORMAT:
        raise ValueError(f"{name} is not a saved state: `fakeapiserver state save` and cluster.save() write such files")
    if form.version not in VERSIONS:
        raise ValueError(
            f"{name} has the format version {form.version}, but this fakeapiserver reads up to version {VERSIONS[-1]}: "
            "use a newer fakeapiserver"
        )
    try:
        return msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as error:
        raise ValueError(f"the first line of {name} is invalid: {error}") from None


def _line(stored: StoredObject, *, deleted: bool = False) -> _Line:
    index = stored.index
    return _Line(
        stored.key,
        stored.mod_revision,
        stored.create_revision,
        stored.offset,
        msgspec.Raw(stored.value),
        index.uid,
        index.version,
        dict(index.labels),
        dict(index.fields),
        deleted,
    )


def _change(change: Change) -> _Line:
    if change.tombstone is not None:
        return _line(change.tombstone, deleted=True)
    assert change.current is not None
    return _line(change.current)


def _replayed(header: Header, lines: list[_Line]) -> MVCC:
    """The storage: the objects at the beginning of the history, and then each change. Raises ValueError."""
    if len(lines) != header.objects + header.changes:
        raise ValueError(f"it has {len(lines)} lines of objects in place of {header.objects + header.changes}")
    storage = MVCC()
    storage.load(
        [_stored(line) for line in lines[: header.objects]],
        header.compacted,
        _changes(lines[header.objects :]),
        header.revision,
    )
    return storage


def _changes(lines: list[_Line]) -> Iterator[tuple[StoredObject, bool]]:
    return ((_stored(line), line.deleted) for line in lines)


def _stored(line: _Line) -> StoredObject:
    value = bytes(line.value)
    if not line.key.startswith(f"{ROOT}/"):
        raise ValueError(f"{line.key!r} is not a key of an object")
    if not value.startswith(b'"resourceVersion":"', line.offset):
        raise ValueError(f"there is no resourceVersion at byte {line.offset} of {line.key}")
    index = Index(line.labels, line.fields, line.uid, line.version)
    return StoredObject(line.key, value, line.revision, line.created, index, line.offset)
