"""Servers in the background: `serve --background` starts one, `status` describes it and `stop` ends it.

A server holds the lock of its state file for as long as it lives, so that its process id is never taken for another process's.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.transport.file_lock import lock_file
from fakeapiserver.transport.files import write_file

DEFAULT_NAME: Final = "default"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_STOP_TIMEOUT: Final = 60.0  # seconds
_POLL: Final = 0.02  # seconds


class Server:
    """A server in the background, or the place for one. Raises UsageError for a name that no file may have."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"--name must be letters, digits, dots, dashes and underscores, not {name!r}")
        self.name = name
        self._file = folder() / f"{name}.json"
        self._lock = folder() / f"{name}.lock"
        self.log = folder() / f"{name}.log"

    def facts(self) -> dict[str, Any] | None:
        """Returns what `status` prints of a ready server:

        name, pid, url, kubeconfig, context, started, log. None if no server runs.
        """
        if not self._lock.exists():
            return None
        with self._locked() as lock:
            if lock is not None:
                return None
            try:
                facts: dict[str, Any] = json.loads(self._file.read_bytes())
            except (OSError, ValueError):
                return None
            return facts

    def start(self, arguments: Sequence[str]) -> int:
        """Runs `serve` with these arguments in the background and returns when it is ready: 0, or the server's own exit status,
        after its own message. Raises OSError if the server runs already or the state can't be written."""
        if sys.platform == "win32":
            raise OSError("--background needs a POSIX system: run `fakeapiserver serve` in a window of its own")
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked() as lock:
            if lock is None:
                raise OSError(f"{self.name!r} runs already; stop it with fakeapiserver stop --name={self.name}")
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, _end)  # so that the server ends, too
            command = [sys.executable, "-m", "fakeapiserver", "serve", *arguments, "--output=json"]
            with os.fdopen(os.open(self.log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as log:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(lock,),  # it stays locked for as long as the server lives
                )
            assert process.stdout is not None
            try:
                with process.stdout as output:
                    line = output.readline()
                if line:
                    self._write(process.pid, json.loads(line))
                    return 0
                status = process.wait()
            except BaseException:
                process.terminate()
                process.wait()
                self._forget()
                raise
            sys.stderr.write(self.log.read_text(errors="replace"))
            self._forget()
            return status

    def stop(self) -> bool:
        """Ends the server and returns when its process is gone. Returns whether there was one. Raises OSError if it doesn't end."""
        facts = self.facts()
        if facts is None:
            with self._locked() as lock:
                if lock is not None:  # it doesn't start just now
                    self._forget()
            return False
        os.kill(facts["pid"], signal.SIGTERM)
        deadline = time.monotonic() + _STOP_TIMEOUT
        while self.facts() is not None:
            if time.monotonic() > deadline:
                raise OSError(f"{self.name!r}, process {facts['pid']}, doesn't end within {_STOP_TIMEOUT:g} s")
            time.sleep(_POLL)
        self._forget()
        return True

    def _write(self, pid: int, ready: dict[str, Any]) -> None:
        started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        facts = {"name": self.name, "pid": pid, **ready, "started": started, "log": str(self.log)}
        write_file(self._file, json.dumps(facts).encode(), 0o600)

    def _forget(self) -> None:
        for path in (self._file, self.log, self._lock):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # another server's files are in it
            folder().rmdir()

    @contextmanager
    def _locked(self) -> Iterator[int | None]:
        """The descriptor of the lock, or None while a server holds it."""
        if not folder().is_dir():
            yield -1
            return
        descriptor = os.open(self._lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            lock_file(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def folder() -> Path:
    """The user's own folder for the state of servers."""
    for variable in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        if os.environ.get(variable):
            return Path(os.environ[variable]) / "fakeapiserver"
    return Path.home() / ".local/state/fakeapiserver"


def running() -> list[str]:
    """The names of all servers that run."""
    names = sorted(path.stem for path in folder().glob("*.json"))
    return [name for name in names if Server(name).facts() is not None]


def foreground(arguments: Sequence[str]) -> list[str]:
    """The arguments without --background and --name."""
    rest, words = [], iter(arguments)
    for word in words:
        flag = word.lstrip("-").partition("=")[0]
        if word == "--name":
            next(words, None)
        elif flag not in ("background", "name"):
            rest.append(word)
    return rest
