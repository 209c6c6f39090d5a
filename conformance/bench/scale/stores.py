"""The servers that are compared: ours with its objects in memory, in a file and in etcd, and kube-apiserver on etcd."""

import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.bench.scale import filling
from conformance.bench.servers import (
    TOKEN,
    Ours,
    Reference,
    cpu_seconds_of,
    end,
    etcd_command,
    free_port,
    rss_of,
)
from conformance.exchange import Client

MEMORY: Final = "in memory"
FILE: Final = "in a file"
ETCD: Final = "in etcd"
REAL: Final = "kube-apiserver on etcd"
# Opening a hundred thousand objects takes a while.
_READY_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Programs:
    """`etcd` is a program, `assets` a folder with kube-apiserver and etcd."""

    etcd: Path | None
    assets: Path | None


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is ready. `etcd`: its etcd's process, if it has one."""

    name: str
    server: Ours | Reference
    etcd: list[subprocess.Popen[bytes]]

    def rss(self) -> float:
        """MiB of the API server alone."""
        return rss_of(self.server.processes) / 2**20

    def seconds(self) -> float:
        """Processor time of the API server and of its etcd."""
        return cpu_seconds_of([*self.server.processes, *self.etcd])


# Starts a server, empty or with what a filled etcd has left in a folder.
Start = Callable[[Programs, Path | None], AbstractContextManager[Running]]


def starts(programs: Programs) -> dict[str, Start]:
    """The servers for which there are programs, by their names."""
    found: dict[str, Start] = {MEMORY: _in_memory, FILE: _in_file}
    if programs.etcd is not None:
        found[ETCD] = _in_etcd
    if programs.assets is not None:
        found[REAL] = _real
    return found


def filled(programs: Programs, folder: Path, pods: int, nodes: int) -> None:
    """Leaves the data of an etcd with so many objects in a folder."""
    with etcd_running(programs, folder) as (url, _), _running(Ours(flags=[f"--etcd-servers={url}"])) as server:
        filling.fill(Client(server.url, TOKEN), url, pods, nodes)


@contextmanager
def etcd_running(programs: Programs, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Runs etcd on the data in a folder. Yields its URL and its process once it serves."""
    program = programs.etcd
    assert program is not None
    port = free_port()
    url, command = f"http://127.0.0.1:{port}", etcd_command(program, port, str(folder))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for_etcd(url, process)
            yield url, process
        finally:
            end([process])


def _wait_for_etcd(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"etcd at {url} does not serve: it ended with status {process.poll()}")


@contextmanager
def _running(server: Ours | Reference) -> Iterator[Ours | Reference]:
    server.ready_within = _READY_SECONDS
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _snapshot(data: Path) -> str:
    return f"--load={data / 'member' / 'snap' / 'db'}"


@contextmanager
def _in_memory(programs: Programs, data: Path | None) -> Iterator[Running]:
    with _running(Ours(flags=[_snapshot(data)] if data else [])) as server:
        yield Running(MEMORY, server, [])


@contextmanager
def _in_file(programs: Programs, data: Path | None) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        flag = f"--data-dir={folder}/data"
        if data:
            with _running(Ours(flags=[flag, _snapshot(data)])):
                pass
        with _running(Ours(flags=[flag])) as server:
            yield Running(FILE, server, [])


@contextmanager
def _copied_etcd(programs: Programs, data: Path | None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "etcd"
        if data:
            shutil.copytree(data, copy)
        with etcd_running(programs, copy) as etcd:
            yield etcd


@contextmanager
def _in_etcd(programs: Programs, data: Path | None) -> Iterator[Running]:
    with (
        _copied_etcd(programs, data) as (url, process),
        _running(Ours(flags=[f"--etcd-servers={url}"])) as server,
    ):
        yield Running(ETCD, server, [process])


@contextmanager
def _real(programs: Programs, data: Path | None) -> Iterator[Running]:
    assert programs.assets is not None
    with (
        _copied_etcd(programs, data) as (url, process),
        _running(Reference(programs.assets, etcd=url)) as server,
    ):
        yield Running(REAL, server, [process])


@contextmanager
def farm(programs: Programs, count: int) -> Iterator[list[Running]]:
    """Runs `count` servers of ours on one empty etcd, with one authority."""
    with tempfile.TemporaryDirectory() as folder, etcd_running(programs, Path(folder) / "etcd") as (url, process):
        flags = [f"--etcd-servers={url}", f"--cert-dir={folder}/certificates"]
        servers: list[Running] = []
        try:
            for _ in range(count):
                server = Ours(flags=flags)
                servers.append(Running(ETCD, server, [process]))
                server.start()
            yield servers
        finally:
            for each in servers:
                each.server.stop()
