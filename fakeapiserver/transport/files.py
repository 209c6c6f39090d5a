"""Files that a configuration names: read with Go's words for unreadable ones, cached while they don't change, replaced atomically."""

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Generic, TypeVar

from fakeapiserver.clock import Clock

T = TypeVar("T")
_SECONDS: Final = 1.0


class Reread(Generic[T]):
    """Caches what `make` makes of files that may change, and checks them again at most once a second.

    While they can't be read or contradict each other, the last good result stays. Upstream:
    k8s.io/client-go/transport/transport.go.
    """

    def __init__(self, paths: Sequence[Path], make: Callable[[], T], clock: Clock) -> None:
        """OSError, ValueError: what `make` raises."""
        self._paths = paths
        self._make = make
        self._clock = clock
        self._contents: Sequence[bytes] = ()
        self._next = clock.monotonic() + _SECONDS
        self._known = make()
        with suppress(OSError):
            self._contents = self._read()

    def current(self) -> T:
        now = self._clock.monotonic()
        if self._paths and now >= self._next:
            self._next = now + _SECONDS
            with suppress(OSError, ValueError):
                contents = self._read()
                if contents != self._contents:
                    self._known = self._make()
                    self._contents = contents
        return self._known

    def _read(self) -> Sequence[bytes]:
        return [path.read_bytes() for path in self._paths]


def read_file(path: Path) -> bytes:
    """OSError as os.ReadFile has it: `open /no/file: no such file or directory`."""
    try:
        return path.read_bytes()
    except IsADirectoryError as error:
        raise OSError(f"read {path}: {_reason(error)}") from None
    except OSError as error:
        raise OSError(f"open {path}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def write_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace a file atomically; it never exists with wider rights than `mode`, nor half written. Raises OSError."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
