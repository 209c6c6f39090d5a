"""The entries of a running cluster in a kubeconfig that others use as well, for as long as the cluster runs.

Upstream: k8s.io/client-go/tools/clientcmd/config.go (ModifyConfig, lockFile); sigs.k8s.io/kind/pkg/cluster/internal/kubeconfig.
"""

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from fakeapiserver.transport import kubeconfig_text
from fakeapiserver.transport.files import write_file
from fakeapiserver.transport.kubeconfig_text import EMPTY, Entries

_LOCK_TIMEOUT: Final = 3.0  # seconds
_LOCK_POLL: Final = 0.02  # seconds
_MODE: Final = 0o600
_BYTE_ORDER_MARK: Final = "\ufeff"


class KubeconfigFile:
    """A kubeconfig file: `add` entries, then `remove` them. The rest of the file stays as it is then.

    All methods raise OSError or ValueError with a sentence, and then leave the file untouched.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._entries: Entries | None = None
        self._before: str | None = None
        self._written: str | None = None
        self._mark = ""

    def check(self, name: str) -> None:
        """Finds out, without writing, whether entries of that name can be added."""
        self._added(
            self._read(), Entries(name, {plural: {"name": name, "context": {}} for plural in kubeconfig_text.LISTS})
        )
        folder = next(parent for parent in self._file.parents if parent.exists())  # `add` makes those below it
        if folder != self._file.parent and self.path.is_symlink():
            raise OSError(f"can't write the kubeconfig {self.path}: it is a link to a folder that doesn't exist")
        if not os.access(folder, os.W_OK):
            raise OSError(f"can't write the kubeconfig {self.path}: {folder} is not writable")

    def add(self, config: Mapping[str, Any]) -> None:
        """Adds the entries of a kubeconfig that has one of each, or replaces those of their names, and makes its context current.

        A folder that isn't there is made, as kubectl makes ~/.kube."""
        entries = Entries.of(config)
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"can't write the kubeconfig {self.path}: {error.strerror}") from error
        with self._locked():
            text = self._read()
            before, written = self._added(text, entries)
            self._write(written)
        self._entries, self._before, self._written = entries, before, written

    def remove(self) -> None:
        """Takes the entries out, unless others have replaced them meanwhile. The file goes if it has nothing else. Does nothing if
        nothing was added."""
        if self._entries is None:
            return
        with self._locked():
            text = self._read()
            if text is not None:
                try:
                    left = self._before if text == self._written else kubeconfig_text.removed(text, self._entries)
                except ValueError as error:
                    raise ValueError(f"{self.path} {error}") from None
                if left != text:
                    self._write(left)
        self._entries = None

    @property
    def _file(self) -> Path:
        """Returns the file itself, not a link to it."""
        return Path(os.path.realpath(self.path))

    def _added(self, text: str | None, entries: Entries) -> tuple[str | None, str]:
        """The text without what killed processes left, and the text with the entries."""
        try:
            before = kubeconfig_text.without_leftovers(text, entries.name) if text is not None else None
            return before, kubeconfig_text.added(EMPTY if before is None else before, entries)
        except ValueError as error:
            raise ValueError(f"{self.path} {error}; it is left as it is, name another file") from None

    def _read(self) -> str | None:
        """The content, or None if there is no such file."""
        try:
            if not stat.S_ISREG(self._file.stat().st_mode):
                kind = "a folder" if self._file.is_dir() else "not a regular file"
                raise ValueError(f"{self.path} is {kind}, where the path of a kubeconfig is needed")
            text = self._file.read_bytes().decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise ValueError(f"{self.path} is not a kubeconfig: it isn't text in UTF-8; name another file") from None
        except OSError as error:
            raise OSError(f"can't read the kubeconfig {self.path}: {error.strerror}") from error
        self._mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
        return text.removeprefix(_BYTE_ORDER_MARK)

    def _write(self, text: str | None) -> None:
        """Removes the file if the text is None or that of a kubeconfig which was made here and has nothing in it."""
        file = self._file
        try:
            if text is None or text == EMPTY:
                file.unlink()
                return
            old = file.stat() if file.exists() else None
            if old is not None and not os.access(file, os.W_OK):
                raise PermissionError(0, "it is not writable")
            write_file(file, (self._mark + text).encode(), _MODE if old is None else stat.S_IMODE(old.st_mode))
            if old is not None and hasattr(os, "geteuid") and old.st_uid != os.geteuid():
                with suppress(OSError):
                    os.chown(file, old.st_uid, old.st_gid)
        except OSError as error:
            raise OSError(f"can't write the kubeconfig {self.path}: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock files that client-go makes: beside the path, and beside the file that the path is a link to."""
        locks = [Path(f"{path}.lock") for path in dict.fromkeys((self.path, self._file))]
        held: list[Path] = []
        try:
            for lock in locks:
                self._lock(lock)
                held.append(lock)
            yield
        finally:
            for lock in held:
                lock.unlink(missing_ok=True)

    def _lock(self, lock: Path) -> None:
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return
            except FileExistsError:
                if time.monotonic() >= deadline:
                    raise OSError(
                        f"can't write the kubeconfig {self.path}: another program has locked it; if none is running, remove {lock}"
                    ) from None
                time.sleep(_LOCK_POLL)
            except OSError as error:
                raise OSError(f"can't write the kubeconfig {self.path}: {error.strerror}") from error
