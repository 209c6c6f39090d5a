"""The servers that are disturbed: processes of `fakeapiserver serve`, and what their stores contain afterwards."""

import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from conformance.robustness.client import NAMESPACE, Client, Credentials
from conformance.robustness.history import Logged
from conformance.robustness.proxy import Proxy
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess, find_etcd
from fakeapiserver.cluster.processes.process import CommandLine, Process
from fakeapiserver.storage.etcd.client import Client as EtcdClient
from fakeapiserver.storage.etcd.messages import DELETE, Event, RangeRequest, WatchCreateRequest
from fakeapiserver.storage.file.database import NAME, Database

_PREFIX: Final = f"/registry/configmaps/{NAMESPACE}/"
# Seconds within which a server is ready, and between two looks at it.
_START: Final = 60.0
_LOOK: Final = 0.02
# Seconds for which a process is stopped where it is, or a network is cut or slow.
_PAUSE: Final = 1.0
# Seconds for which a slow network holds each piece back.
_DELAYS: Final = (0.02, 0.3)
_DISTURBANCES: Final = (
    "a server is killed",
    "a server is stopped",
    "etcd is killed",
    "etcd is stopped",
    "a network is cut",
    "a network is slow",
)


class Target(Protocol):
    """Servers with one store."""

    def start(self) -> Sequence[Credentials]:
        """Returns when all of them are ready. Raises RuntimeError with a complaint if one doesn't start."""

    def disturb(self, chance: random.Random) -> str:
        """Kills or stops something, starts it again, and says what it was. Raises RuntimeError as `start` does."""

    def log(self, after: int) -> list[Logged]:
        """The revisions of the store after one, in order."""

    def compact(self, revision: int) -> None:
        """Forgets the history up to a revision."""

    def stop(self) -> None:
        """Kills everything, and leaves nothing behind."""


class ServerProcess:
    """A server with these flags, which ends with this process; `bug`: one of planted.BUGS, which it has then."""

    def __init__(self, kubeconfig: Path, flags: Sequence[str], bug: str = "") -> None:
        self._kubeconfig = kubeconfig
        module = ["conformance.robustness.planted", bug] if bug else ["fakeapiserver"]
        common = ["serve", "--controllers=", f"--write-kubeconfig={kubeconfig}", "--secure-port={port}"]
        self._process = Process(CommandLine([sys.executable, "-m", *module, *common, *flags]))

    def start(self) -> Credentials:
        """Returns when it is ready. Raises RuntimeError with its complaint if it doesn't start."""
        self._kubeconfig.unlink(missing_ok=True)
        self._process.launch()
        deadline = time.monotonic() + _START
        while not self._kubeconfig.exists():  # it is written when the server is ready
            if self._process.ended is not None or time.monotonic() > deadline:
                raise RuntimeError(self._process.output().strip())
            time.sleep(_LOOK)
        return Credentials(self._kubeconfig)

    def kill(self) -> None:
        self._process.kill()

    def pause(self) -> None:
        """Stops it where it is for a while."""
        self._process.pause()
        time.sleep(_PAUSE)
        self._process.resume()

    def close(self) -> None:
        """Kills it, and leaves nothing behind."""
        self._process.close()


class FileServer:
    """A server with a data directory in `folder`, which is killed."""

    def __init__(self, folder: Path, sync: str = "full", bug: str = "") -> None:
        self._data = folder / "data"
        self._server = ServerProcess(folder / "kubeconfig", [f"--data-dir={self._data}", f"--sync={sync}"], bug)
        self._credentials: Credentials | None = None
        self._log: list[Logged] = []

    def start(self) -> Sequence[Credentials]:
        self._credentials = self._server.start()
        return [self._credentials]

    def disturb(self, chance: random.Random) -> str:
        self._server.kill()
        self._log += self._read(self._log[-1].revision if self._log else 0)
        self.start()
        return "the server is killed"

    def log(self, after: int) -> list[Logged]:
        return [logged for logged in self._log if logged.revision > after]

    def compact(self, revision: int) -> None:
        assert self._credentials is not None
        client = Client(self._credentials)
        client.ask("POST", "/fakeapiserver/compact", {"revision": revision})
        client.close()

    def stop(self) -> None:
        self._server.close()

    def _read(self, after: int) -> list[Logged]:
        """The revisions in a copy of the file, so that the next start recovers the file itself."""
        with tempfile.TemporaryDirectory() as copy:
            for path in self._data.glob(f"{NAME}*"):
                shutil.copy(path, copy)
            with Database(Path(copy), "off") as database:
                return [*_logged(database, after)]


def _logged(database: Database, after: int) -> Iterator[Logged]:
    for row in database.rows(after):
        name, value = _read_object(row.key, row.value)
        yield Logged(row.revision, name, value, row.previous, bool(row.deleted))


class EtcdServers:
    """Servers on one etcd, each with a network of its own to it. A server or etcd is killed, or stopped for a second; a network is slow
    or cut for a second."""

    def __init__(self, folder: Path, servers: int, bug: str = "") -> None:
        self._etcd = EtcdProcess(find_etcd(), data_dir=folder / "etcd")
        self._folder = folder
        self._count = servers
        self._bug = bug
        self._servers: list[ServerProcess] = []
        self._networks: list[Proxy] = []

    def start(self) -> Sequence[Credentials]:
        self._etcd.start()
        port = int(self._etcd.url.rpartition(":")[2])
        self._networks = [Proxy(port) for _ in range(self._count)]
        flags = [
            "--storage-media-type=application/json",
            "--etcd-compaction-interval=0",
        ]
        for number, network in enumerate(self._networks):
            certificates = self._folder / f"certificates{number}"  # the same ones after a restart
            own = [f"--etcd-servers={network.url}", f"--cert-dir={certificates}", *flags]
            self._servers.append(ServerProcess(self._folder / f"kubeconfig{number}", own, self._bug))
        return [server.start() for server in self._servers]

    def disturb(self, chance: random.Random) -> str:
        number = chance.randrange(self._count)
        server, network = self._servers[number], self._networks[number]
        what = chance.choice(_DISTURBANCES)
        match what:
            case "a server is killed":
                server.kill()
                server.start()
            case "a server is stopped":
                server.pause()
            case "etcd is killed":
                self._etcd.kill()
                self._etcd.start()
            case "etcd is stopped":
                self._etcd.pause()
                time.sleep(_PAUSE)
                self._etcd.resume()
            case "a network is cut":
                network.cut()
                time.sleep(_PAUSE)
                network.mend()
            case "a network is slow":
                network.delay = chance.uniform(*_DELAYS)
                time.sleep(_PAUSE)
                network.delay = 0.0
        return what

    def log(self, after: int) -> list[Logged]:
        return asyncio.run(_log_of(self._etcd.url, after))

    def compact(self, revision: int) -> None:
        async def compacted() -> None:
            client = EtcdClient.of([self._etcd.url])
            await client.compact(revision)
            await client.close()

        asyncio.run(compacted())

    def stop(self) -> None:
        for server in self._servers:
            server.close()
        for network in self._networks:
            network.close()
        self._etcd.close()


async def _log_of(url: str, after: int) -> list[Logged]:
    """The revisions in etcd after one, by a watch of all keys."""
    client, log = EtcdClient.of([url]), list[Logged]()
    client.is_patient = True  # etcd may just have been started
    try:
        newest = (await client.range(RangeRequest(b"\0"))).header.revision
        if newest > after:
            stream = await client.watch(WatchCreateRequest(b"\0", b"\0", after + 1, prev_kv=True, fragment=True))
            while not log or log[-1].revision < newest:
                log += map(_of_event, (await stream.next()).events)
            stream.cancel()
    finally:
        await client.close()
    return log


def _of_event(event: Event) -> Logged:
    kv, before, deleted = event.kv, event.prev_kv, event.type == DELETE
    shown = kv if not deleted or before is None else before
    name, value = _read_object(kv.key.decode(), shown.value)
    return Logged(kv.mod_revision, name, value, before.mod_revision if before is not None else 0, deleted)


def _read_object(key: str, value: bytes) -> tuple[str, str]:
    """The name and value of one of the traffic's objects; empty for others."""
    if not key.startswith(_PREFIX):
        return "", ""
    return key.removeprefix(_PREFIX), json.loads(value).get("data", {}).get("value", "")


def prepare(credentials: Credentials) -> int:
    """Makes the namespace of the traffic. Returns the revision from which the history counts."""
    client = Client(credentials)
    status, made = client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    assert status == 201, made
    client.close()
    return int(made["metadata"]["resourceVersion"])
