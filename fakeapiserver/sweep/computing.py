"""Finds out whether the processes of an operator are computing. Such an operator sends no requests, and isn't at rest all the same."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_PROCESSES: Final = Path("/proc")
_LOOKS: Final = 5
_PAUSE: Final = 0.01
_RUNNABLE: Final = "R"


def computes(group: int) -> bool:
    """Reports whether a thread of this process group is runnable at each of several looks, however little of the processor it gets. False
    where the system doesn't say that."""
    if not any(_is_runnable(process) for process in _members(group)):
        return False
    for _ in range(_LOOKS - 1):
        time.sleep(_PAUSE)
        if not any(_is_runnable(process) for process in _members(group)):
            return False
    return True


def _members(group: int) -> Iterator[Path]:
    for process in _PROCESSES.glob("[0-9]*"):
        fields = _fields(process / "stat")
        if len(fields) > 2 and fields[2] == str(group):
            yield process


def _is_runnable(process: Path) -> bool:
    return any(_fields(thread)[:1] == [_RUNNABLE] for thread in process.glob("task/*/stat"))


def _fields(path: Path) -> list[str]:
    """The fields after the name, which may have spaces: the state, the parent, the process group."""
    with suppress(OSError):
        return path.read_text(errors="replace").rpartition(")")[2].split()
    return []
