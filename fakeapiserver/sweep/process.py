"""The operator as a process of its own, which is started, killed and started again."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.sweep import computing
from fakeapiserver.sweep import reaper as reaper_module

_PLACEHOLDER: Final = re.compile(r"\{(kubeconfig|port(?::[a-z-]+)?)\}")
# Nothing is begun before the reaper knows of it: if this process is killed until then, the gate stays closed.
_GATE: Final = 'read -r _ && exec "$@" </dev/null'
_GRACE: Final = 5.0
# The end of the output is kept, and searched for the traces of a crash.
_KEPT: Final = 4 * 1024 * 1024
PANICS: Final = re.compile(
    r"^(panic: .*|fatal error: .*|.*[Oo]bserved a panic.*|Exception in thread .*|thread '.*' panicked at .*)$",
    re.MULTILINE,
)


class Command:
    """The command line of an operator: `./bin/manager --metrics-bind-address=:{port:metrics}`.

    `{kubeconfig}` is the path of the kubeconfig, which KUBECONFIG also names; `{port}`, `{port:NAME}` a free port, which is the
    same for the same name.
    """

    def __init__(self, text: str | Sequence[str], env: Mapping[str, str] = {}, folder: Path | None = None) -> None:
        """ValueError: the text is no command line."""
        try:
            self._words = shlex.split(text) if isinstance(text, str) else [*text]
        except ValueError as error:
            raise ValueError(f"the operator's command can't be read: {error}") from None
        if not self._words:
            raise ValueError("the operator's command is empty: name a program")
        self.env = env
        self.folder = folder

    @property
    def words(self) -> Sequence[str]:
        """The command line."""
        return self._words

    @property
    def options(self) -> ClusterOptions:
        """Its clusters have no options, since its time is real."""
        return {}

    def new(self, quiet: float) -> "OperatorProcess":
        """An operator that isn't running yet."""
        return OperatorProcess(self, quiet)


class OperatorProcess:
    """An operator in a cluster. Whatever it writes goes to a file of its own, which `close` removes."""

    def __init__(self, command: Command, quiet: float = 0.3) -> None:
        self._command = command
        self.quiet = quiet
        self._ports: dict[str, int] = {}
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self, cluster: Cluster, user: str, groups: Sequence[str]) -> None:
        """Starts the operator as a user of these groups. Raises OSError if there is no such program."""
        self.launch(cluster.user(user, groups=groups))

    def launch(self, kubeconfig: str) -> None:
        """Starts the operator with these credentials. Raises OSError if there is no such program."""
        assert self._process is None
        words = [
            _PLACEHOLDER.sub(lambda found: self._filled(found[1], kubeconfig), word) for word in self._command.words
        ]
        env = {**os.environ, **self._command.env, "KUBECONFIG": kubeconfig}
        env.pop("KUBERNETES_SERVICE_HOST", None)
        if (
            shutil.which(words[0], path=env.get("PATH")) is None
            and not Path(self._command.folder or "", words[0]).is_file()
        ):
            raise FileNotFoundError(f"there is no program {words[0]!r}")
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GATE, "sh", *words],
            env=env,
            cwd=self._command.folder,
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _reaper().tell("+", self._process.pid)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"go\n")
            self._process.stdin.close()
        self.starts += 1

    @property
    def ended(self) -> int | None:
        """The exit status if it has ended by itself, negative for a signal."""
        return self._process.poll() if self._process is not None else None

    @property
    def computes(self) -> bool:
        """Whether a thread of the operator's processes is runnable for a while."""
        return self._process is not None and computing.computes(self._process.pid)

    def kill(self) -> None:
        """Kills the process and its children at once, as a node that fails does. Does nothing if it doesn't run."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks the process to end, and kills it after five seconds."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        process.wait()
        _reaper().tell("-", process.pid)

    def output(self) -> str:
        """The end of the output of all its processes."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _KEPT))
        text = self._output.read().decode(errors="replace")
        self._output.seek(0, os.SEEK_END)
        return text

    def close(self) -> None:
        """Kills the process and forgets its output."""
        self.kill()
        self._output.close()

    def _filled(self, name: str, kubeconfig: str) -> str:
        if name == "kubeconfig":
            return kubeconfig
        if name not in self._ports:
            self._ports[name] = _free_port()
        return str(self._ports[name])


def panics(output: str) -> list[str]:
    """The first lines of the crashes that an operator has written."""
    return [found[0].strip()[:300] for found in PANICS.finditer(output)]


def wait_until_ended(process: OperatorProcess, seconds: float) -> bool:
    """Reports whether it ends within so many seconds."""
    deadline = time.monotonic() + seconds
    while process.ended is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return process.ended is not None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class _Reaper:
    """The process that ends operators if this one is killed."""

    def __init__(self) -> None:
        script = Path(reaper_module.__file__)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)], stdin=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        self._lock = threading.Lock()

    def tell(self, sign: str, number: int) -> None:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(f"{sign}{number}\n".encode())
            self._process.stdin.flush()


@cache
def _reaper() -> _Reaper:
    return _Reaper()
