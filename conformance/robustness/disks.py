"""Disks that are slow, full, or have lost the end of a write.

A slow disk is made by `strace`, which delays each fsync; a small one by mounting a tmpfs, for which the harness starts itself again in a
mount namespace of its own. Both need Linux, and the latter root.
"""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# In a namespace of its own the harness finds this variable.
_VARIABLE: Final = "FAKEAPISERVER_ROBUSTNESS_MOUNTS"
_CHUNK: Final = 1 << 20
# SQLite's write-ahead log: https://sqlite.org/fileformat2.html#the_write_ahead_log.
_WAL_HEADER: Final = 32
_FRAME_HEADER: Final = 24
# etcd's: go.etcd.io/etcd/server/v3/storage/wal (decoder.go, encoder.go).
_LENGTH: Final = struct.Struct("<Q")
_SECTOR: Final = 512


def slow(process: int, seconds: float, delay: float) -> None:
    """Delays each fsync of a process by `delay` seconds, for so long. Raises FileNotFoundError without strace."""
    inject = f"inject=fsync,fdatasync:delay_exit={int(delay * 1e6)}"
    with subprocess.Popen(
        ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fsync,fdatasync", "-e", inject, "-p", str(process)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as tracer:
        time.sleep(seconds)
        tracer.send_signal(signal.SIGINT)  # it detaches


def has_strace() -> bool:
    return shutil.which("strace") is not None


def in_own_namespace(arguments: Sequence[str]) -> None:
    """Starts the harness again with these arguments where it may mount, unless it is there; mounts end with it. Raises OSError."""
    if _VARIABLE not in os.environ:
        words = ["unshare", "--mount", sys.executable, "-m", "conformance.robustness", *arguments]
        os.execvpe(words[0], words, {**os.environ, _VARIABLE: "1"})


def mount(folder: Path, size: int) -> None:
    """Makes a disk of so many bytes. Raises OSError if that isn't allowed."""
    folder.mkdir(exist_ok=True)
    options = f"size={size},mode=700"
    result = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if result.returncode:
        raise OSError(f"no small disk can be mounted: {result.stderr.decode().strip()}")


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """Fills what is left of a disk, and returns the file that does."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (_CHUNK, 4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    return ballast


def tear_sqlite(log: Path, chance: random.Random) -> str:
    """Leaves the beginning of a transaction, or garbage, behind the last whole transaction of a write-ahead log, as a loss of power does
    while a transaction is written. What was acknowledged is before that. Returns what it did."""
    data = log.read_bytes() if log.exists() else b""
    end = _end_of_sqlite(data)
    if end <= _WAL_HEADER:
        return "no log"
    size = struct.unpack_from(">I", data, 8)[0] + _FRAME_HEADER
    frames = data[_WAL_HEADER:end]
    last = frames[-size:]
    torn = {
        "cut": b"",
        "garbage": chance.randbytes(chance.randrange(1, 2 * size)),
        "a part of a frame": last[: chance.randrange(1, size)],
        "a frame with a wrong checksum": last[:4] + bytes(4) + last[8:],
    }
    what = chance.choice([*torn])
    log.write_bytes(data[:end] + torn[what])
    return what


def _end_of_sqlite(data: bytes) -> int:
    """Returns the place at which the last committed transaction of a write-ahead log ends. Frames of an earlier use of the file may
    follow."""
    if len(data) < _WAL_HEADER:
        return 0
    magic, _, page, _, *salts = struct.unpack_from(">6I", data)
    order = ">" if magic & 1 else "<"
    sums = _sums(data[:24], (0, 0), order)
    end = at = _WAL_HEADER
    while at + _FRAME_HEADER + page <= len(data):
        _, commit, *rest = struct.unpack_from(">6I", data, at)
        sums = _sums(data[at : at + 8], sums, order)
        sums = _sums(data[at + _FRAME_HEADER : at + _FRAME_HEADER + page], sums, order)
        if rest != [*salts, *sums]:
            break
        at += _FRAME_HEADER + page
        end = at if commit else end
    return end


def _sums(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    for left, right in struct.iter_unpack(f"{order}2I", data):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return first, second


def tear_etcd(folder: Path, chance: random.Random) -> str:
    """Leaves the beginning of a record behind the last record of etcd's write-ahead log, whose other sectors were not written. Returns
    what it did."""
    log = max((folder / "member" / "wal").glob("*.wal"))
    with log.open("r+b") as file:
        data = file.read()
        at = 0
        while at + _LENGTH.size <= len(data) and (length := _LENGTH.unpack_from(data, at)[0]):
            padding = (length >> 56) & 7 if length >> 63 else 0
            at += _LENGTH.size + (length & ((1 << 56) - 1)) + padding
        size = chance.randrange(3 * _SECTOR, 8 * _SECTOR)
        written = chance.randrange(1, _SECTOR)
        if at + size > len(data):
            return "the log is full"
        file.seek(at)
        file.write(_LENGTH.pack(size - size % 8) + chance.randbytes(written))
    return f"{written} of {size} bytes of a record"
