"""The documents in folders and archives. Archives are read in memory and never unpacked, so their names reach no file."""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

# A file's name within its folder or archive, and its bytes.
Document = tuple[str, bytes]

SUFFIXES: Final = frozenset((".json", ".yaml", ".yml"))
# What is read into memory: more is refused, so that a small archive can't fill it.
MAX_BYTES: Final = 2 * 1024**3
_ZIP: Final = b"PK\x03\x04"


def in_folder(folder: Path) -> Iterator[Document]:
    """The documents in a folder and its folders, by name. Links that lead elsewhere are not followed. Raises OSError, ValueError."""
    read = 0
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and path.resolve().is_relative_to(root):
            read += path.stat().st_size
            _check_size(read, str(folder))
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def packed(path: Path) -> bytes:
    """A file's bytes, or an archive of the documents in a folder. Raises OSError, ValueError."""
    if not path.is_dir():
        return path.read_bytes()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in in_folder(path):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def is_archive(data: bytes) -> bool:
    """Reports whether the data is a zip or a tar archive, which may be compressed."""
    if data.startswith(_ZIP):
        return True
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*"):
            return True
    except (tarfile.TarError, EOFError, OSError, zlib.error):
        return False


def in_archive(data: bytes, name: str) -> Iterator[Document]:
    """The documents in an archive, in its order. Raises ValueError with a sentence that begins with `name`."""
    try:
        yield from _zipped(data, name) if data.startswith(_ZIP) else _tarred(data, name)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise ValueError(f"{name} is truncated or damaged: {error}") from None


def decompressed(data: bytes, name: str) -> bytes:
    """Data that may be compressed with gzip. Raises ValueError with a sentence that begins with `name`."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            content = stream.read(MAX_BYTES + 1)
    except (EOFError, OSError, zlib.error):
        raise ValueError(f"{name} is truncated or damaged: it can't be decompressed") from None
    _check_size(len(content), name)
    return content


def _tarred(data: bytes, name: str) -> Iterator[Document]:
    read = 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        for member in archive:
            if member.isreg() and PurePosixPath(member.name).suffix in SUFFIXES:
                read += member.size
                _check_size(read, name)
                stream = archive.extractfile(member)
                assert stream is not None
                yield member.name.removeprefix("./"), stream.read()


def _zipped(data: bytes, name: str) -> Iterator[Document]:
    read = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if not member.is_dir() and PurePosixPath(member.filename).suffix in SUFFIXES:
                read += member.file_size
                _check_size(read, name)
                yield member.filename, archive.read(member)


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"{name} holds more than {MAX_BYTES >> 30} GiB of documents: load a part of it")
