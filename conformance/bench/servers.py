"""Starts and stops the servers that are compared, and measures what they cost."""

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from socket import socket
from typing import Any, Final, Protocol

TOKEN: Final = "bench-admin"
_TOKENS: Final = f'{TOKEN},admin,1,"system:masters"\n'
_ENABLES_ACCOUNTS: Final = "--enable-admission-plugins=ServiceAccount"
_READY_SECONDS: Final = 60.0
_REPOSITORY: Final = Path(__file__).parents[2]


class Server(Protocol):
    """`ready_seconds`: from the start of the command to the first 200 of /readyz."""

    name: str
    url: str
    ready_seconds: float

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def rss_bytes(self) -> int: ...


# below the ports that a system gives to connections and to listeners on port 0, so that no other process takes a port between here and the
# program's start; processes that run at the same time begin at different ports
_PORTS: Final = range(12_000, 20_000)
_given: Final = count()


def free_port() -> int:
    """Returns a port that nothing listens on, a different one each time. Raises OSError if all are taken."""
    for _ in _PORTS:
        port = _PORTS[(os.getpid() * 97 + next(_given)) % len(_PORTS)]
        with socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise OSError(f"none of the ports {_PORTS[0]} to {_PORTS[-1]} is free")


def wait_ready(
    url: str, process: subprocess.Popen[bytes], seconds: float = _READY_SECONDS, *, path: str = "/readyz"
) -> None:
    """Polls the path; RuntimeError when the process ends first, or after so many seconds (default 60)."""
    context = ssl._create_unverified_context()
    deadline = time.monotonic() + seconds
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {TOKEN}"})
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.005)
    raise RuntimeError(f"{url} was not ready within {seconds:.0f} s")


def _as_installed() -> dict[str, str]:
    """pip compiles what it installs: a machine that forbids bytecode would time Python's compiler instead of the start."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def rss_of(processes: Sequence[subprocess.Popen[bytes] | subprocess.Popen[str]]) -> int:
    """Resident bytes of processes together."""
    return sum(resident_bytes(process.pid) for process in processes)


def resident_bytes(process: int) -> int:
    """Resident bytes of the process with this number (Linux)."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds_of(processes: Sequence[subprocess.Popen[bytes]]) -> float:
    """Processor seconds, of user and system, that processes have used together."""
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """The last started first: an API server without its etcd would wait for it."""
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    processes.clear()


@dataclass
class Ours:
    """`fakeapiserver serve`; without controllers, as what it is compared with has none, unless `flags` say which."""

    name: str = "fakeapiserver"
    flags: Sequence[str] = ()
    stderr: int | None = None
    ready_within: float = _READY_SECONDS
    url: str = ""
    ready_seconds: float = 0.0
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        tokens = Path(self._folder.name) / "tokens.csv"
        tokens.write_text(_TOKENS)
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        started = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "fakeapiserver",
            "serve",
            f"--secure-port={port}",
            f"--token-auth-file={tokens}",
            *([] if any(flag.startswith("--controllers=") for flag in self.flags) else ["--controllers=none"]),
            *self.flags,
        ]
        kubeconfig = f"--write-kubeconfig={self._folder.name}/kubeconfig"
        self.processes = [
            subprocess.Popen([*command, kubeconfig], stdout=subprocess.DEVNULL, stderr=self.stderr, env=_as_installed())
        ]
        wait_ready(self.url, self.processes[0], self.ready_within)
        self.ready_seconds = time.monotonic() - started

    def stop(self) -> None:
        end(self.processes)
        if self._folder is not None:
            self._folder.cleanup()

    def rss_bytes(self) -> int:
        return rss_of(self.processes)

    def cpu_seconds(self) -> float:
        return cpu_seconds_of(self.processes)


@dataclass
class Reference:
    """kube-apiserver and etcd from a folder of envtest assets; `flags` are kube-apiserver's.

    `etcd`: the URL of an etcd that runs already, instead of its own. `keys` has `sa.key` and `sa.pub`; None: new ones are made.
    `etcd_url`: the URL of the etcd that it uses, once it has started.
    """

    assets: Path
    name: str = "kube-apiserver + etcd"
    flags: Sequence[str] = ()
    etcd: str = ""
    keys: Path | None = None
    url: str = ""
    etcd_url: str = ""
    ready_seconds: float = 0.0
    ready_within: float = _READY_SECONDS
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        state = Path(self._folder.name)
        (state / "tokens.csv").write_text(_TOKENS)
        if self.keys is None:
            make_keys(state)
        port, etcd_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{port}"
        started = time.monotonic()
        if not self.etcd:
            self.processes.append(self._run(state, *etcd_command(self.assets / "etcd", etcd_port)))
        self.etcd_url = self.etcd or f"http://127.0.0.1:{etcd_port}"
        command = _apiserver_command(self.assets, port, self.etcd_url, self.keys or state)
        given = {flag.partition("=")[0] for flag in self.flags}  # a list that is given twice would have both's items
        if _ENABLES_ACCOUNTS in self.flags:
            given.add("--disable-admission-plugins")
        command = [flag for flag in command if flag.partition("=")[0] not in given]
        self.processes.append(self._run(state, *command, *self.flags))
        wait_ready(self.url, self.processes[-1], self.ready_within)
        self.ready_seconds = time.monotonic() - started

    @property
    def folder(self) -> Path:
        """The working folder of the running processes, which has the service accounts' keys unless `keys` has them."""
        assert self._folder is not None, "the reference has not started"
        return Path(self._folder.name)

    def _run(self, state: Path, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, cwd=state, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
        )

    def stop(self) -> None:
        end(self.processes)
        if self._folder is not None:
            self._folder.cleanup()

    def rss_bytes(self) -> int:
        return rss_of(self.processes)


def make_keys(folder: Path) -> None:
    """Makes the keys of service accounts: `sa.key` and `sa.pub`."""
    for command in (["genrsa", "-out", "sa.key", "2048"], ["rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"]):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)


def etcd_command(program: Path, port: int, folder: str = "etcd") -> list[str]:
    """An etcd whose data are in `folder`, and that doesn't wait for the disk."""
    client = f"http://127.0.0.1:{port}"
    return [
        str(program),
        f"--data-dir={folder}",
        "--unsafe-no-fsync",
        "--listen-peer-urls=http://127.0.0.1:0",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
    ]


def _apiserver_command(assets: Path, port: int, etcd: str, keys: Path) -> list[str]:
    return [
        str(assets / "kube-apiserver"),
        f"--etcd-servers={etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--cert-dir=certs",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--token-auth-file=tokens.csv",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-signing-key-file={keys / 'sa.key'}",
        f"--service-account-key-file={keys / 'sa.pub'}",
    ]


def fresh_cluster_seconds(repeats: int) -> list[float]:
    """Returns the seconds of starting a Cluster() in a process that has started some before."""
    seconds: list[float] = _printed("fresh_cluster", str(repeats))
    return seconds


def admission_seconds() -> float:
    """Returns the processor time of the default chain of admission plugins for the creation of a pod."""
    seconds: float = _printed("admission")
    return seconds


def authorization_seconds(folder: Path, roles: int = 500, bindings: int = 5000) -> dict[str, float]:
    """Measures the processor time of warm requests by 50 users for 5,000 objects, with many roles and bindings.

    `authorize` is authentication and authorization alone; `whole_get`, `refuse` and `review` are a GET, a 403 and a SubjectAccessReview
    from headers to answer. Returns the median seconds.
    """
    tokens = folder / "bench-tokens.csv"
    tokens.write_text("admin,admin,1,system:masters\n" + "".join(f"user-{i},user-{i},{i}\n" for i in range(50)))
    seconds: dict[str, float] = _printed("authorization", str(tokens), str(roles), str(bindings))
    return seconds


def _printed(program: str, *arguments: str) -> Any:
    """Runs a module of `in_process` in a process of its own, and returns what it prints."""
    command = [sys.executable, "-m", f"conformance.bench.in_process.{program}", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_REPOSITORY)
    return json.loads(done.stdout)
