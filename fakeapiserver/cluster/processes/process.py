"""Programs outside of this process, which are started, killed and started again, each with ports and temporary files of its own."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final

from msgspec import Struct, field

from fakeapiserver.cluster.processes import reaper as reaper_module
from fakeapiserver.cluster.processes.pod import Pod
from fakeapiserver.cluster.webhooks import WebhookAddress
from fakeapiserver.transport.free_ports import free_port

_PLACEHOLDER: Final = re.compile(r"\{(kubeconfig|folder|port(?::[a-z-]+)?|webhook-port|webhook-cert-dir)\}")
# Where controller-runtime looks for the certificate of webhooks by default, below the folder for temporary files.
_CERTIFICATES: Final = Path("k8s-webhook-server/serving-certs")
# Nothing is begun before the reaper knows of it: if this process is killed until then, the gate stays closed.
_GATE: Final = 'read -r _ && exec "$@" </dev/null'
_GRACE: Final = 5.0
_PAUSE: Final = 0.01
# Variables that lead clients to the cluster of the pod in which this process runs.
_OF_A_POD: Final = frozenset(("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"))
# The end of the output is kept.
_KEPT: Final = 4 * 1024 * 1024


class CommandLine(Struct, frozen=True):
    """The command line of a program: `./bin/manager --metrics-bind-address=:{port:metrics}`, with variables of its environment.

    `{kubeconfig}` is the path of the kubeconfig, which KUBECONFIG also names; `{folder}` a folder that is there from its first start until
    it is closed; `{port}`, `{port:NAME}` a free port, which is the same for the same name; `{webhook-port}` the port on which the cluster
    calls webhooks, and `{webhook-cert-dir}` the folder with their server's `tls.crt` and `tls.key`. The values in `env` have the same
    placeholders.
    """

    words: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    @classmethod
    def of(
        cls, text: str | Sequence[str], env: Mapping[str, str] = {}, folder: str | os.PathLike[str] | None = None
    ) -> "CommandLine":
        """Raises ValueError if the text is no command line."""
        try:
            words = shlex.split(text) if isinstance(text, str) else [*text]
        except ValueError as error:
            raise ValueError(f"the operator's command can't be read: {error}") from None
        if not words:
            raise ValueError("the operator's command is empty: name a program")
        return cls(words, env, None if folder is None else Path(folder))

    @property
    def serves_webhooks(self) -> bool:
        """Reports whether the command line or `env` has a placeholder of webhooks."""
        return any("{webhook-" in text for text in (*self.words, *self.env.values()))


class Process:
    """A program that may run. Its output and its temporary files are in places of its own, which `close` removes."""

    def __init__(self, command: CommandLine) -> None:
        self.command = command
        self._values: dict[str, str] = {}  # of placeholders
        self._folder = Path(tempfile.mkdtemp(prefix="fakeapiserver-operator-"))
        _reaper().tell("+", str(self._folder))
        self._output: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by close()
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def launch(self, kubeconfig: str = "", webhooks: WebhookAddress | None = None, pod: Pod | None = None) -> None:
        """Starts the program with these credentials, which an operator needs, by itself or in a pod. Raises OSError if there is no such
        program, and ValueError if it needs the port of webhooks and the cluster has none."""
        if self.ended is not None:
            self.kill()
        assert self._process is None
        if webhooks is not None:
            port = webhooks.port if pod is None else pod.webhook_port_of(webhooks)
            self._values |= {"webhook-port": str(port), "webhook-cert-dir": webhooks.cert_dir}
            self._offer(webhooks.cert_dir)
        self._values |= {"kubeconfig": kubeconfig, "folder": str(self._folder)}
        words = [self.filled(word) for word in self.command.words]
        given = {name: self.filled(value) for name, value in self.command.env.items()}
        own = {name: value for name, value in os.environ.items() if name not in _OF_A_POD}
        of_pod = pod.env if pod is not None else {}
        env = {**own, **of_pod, "TMPDIR": str(self._folder), **given, "KUBECONFIG": kubeconfig}
        if (
            shutil.which(words[0], path=env.get("PATH")) is None
            and not Path(self.command.folder or "", words[0]).is_file()
        ):
            raise FileNotFoundError(f"there is no program {words[0]!r}")
        around = pod.words(self._folder, webhooks) if pod is not None else ()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GATE, "sh", *around, *words],
            env=env,
            cwd=self.command.folder,
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

    def _offer(self, certificates: str) -> None:
        """Puts the certificate of webhooks where controller-runtime looks for one by default."""
        place = self._folder / _CERTIFICATES
        if not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(certificates)

    @property
    def group(self) -> int | None:
        """The number of its process group, or None before its start and after its end by `kill` or `stop`."""
        return self._process.pid if self._process is not None else None

    @property
    def is_running(self) -> bool:
        """Reports whether the program runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def ended(self) -> int | None:
        """The exit status if it has ended by itself, negative for a signal."""
        return self._process.poll() if self._process is not None else None

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

    def pause(self) -> None:
        """Stops it and its children where they are (SIGSTOP): connections stay open, and nothing is answered. Does nothing if it doesn't
        run."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGSTOP)
            # its threads stop a little later
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Lets it go on after `pause`."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGCONT)

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
        number = self._output.fileno()
        size = os.fstat(number).st_size
        return os.pread(number, _KEPT, max(0, size - _KEPT)).decode(errors="replace")

    def close(self) -> None:
        """Kills the process, and removes its output and its temporary files."""
        self.kill()
        self._output.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        _reaper().tell("-", str(self._folder))

    def wait(self, seconds: float) -> bool:
        """Reports whether it ends within so many seconds."""
        deadline = time.monotonic() + seconds
        while self.ended is None and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return self.ended is not None

    def filled(self, text: str) -> str:
        """The text with the values of its placeholders, which stay the same after a restart."""
        return _PLACEHOLDER.sub(lambda found: self._value(found[1]), text)

    @property
    def ports(self) -> Mapping[str, int]:
        """The ports that it was given, by the names in their placeholders; "" for `{port}`."""
        numbers = {name: value for name, value in self._values.items() if name.split(":")[0] == "port"}
        return {name.partition(":")[2]: int(value) for name, value in numbers.items()}

    def _value(self, name: str) -> str:
        if name not in self._values:
            if name.startswith("webhook"):
                raise ValueError(f"{{{name}}} needs webhooks: name the files with their configurations as `webhooks`")
            self._values[name] = str(free_port())
        return self._values[name]


class _Reaper:
    """The process that ends operators if this one is killed."""

    def __init__(self) -> None:
        script = Path(reaper_module.__file__)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)], stdin=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        self._lock = threading.Lock()

    def tell(self, sign: str, subject: int | str) -> None:
        """`sign`: + for a process group or a folder that is there now, and - when it is gone."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(f"{sign}{subject}\n".encode())
            self._process.stdin.flush()


@contextlib.contextmanager
def own_temporary_folder() -> Iterator[None]:
    """A folder for all temporary files of this process, which is removed in the end, even if the process is killed."""
    folder, former = tempfile.mkdtemp(prefix="fakeapiserver-"), tempfile.tempdir
    _reaper().tell("+", folder)
    tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = former
        shutil.rmtree(folder, ignore_errors=True)
        _reaper().tell("-", folder)


@cache
def _reaper() -> _Reaper:
    if sys.platform == "win32":
        raise OSError("programs can be started, killed and cleaned up on POSIX systems only: start yours yourself")
    return _Reaper()
