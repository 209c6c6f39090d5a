"""An informer, a server in a process of its own, and a network between them that breaks everything that can break.

The server is killed, stopped, compacted, restarted with another state; the proxy cuts, stalls, resets and lies. After every storm the
informer has what the server has, and its handlers have received all changes. FAKEAPISERVER_STORMS=100 makes as many seeds of one, and
FAKEAPISERVER_FIRST_STORM begins with another. With FAKEAPISERVER_REFERENCE_STATE (the STATE folder of a private real server, whose
programs' process ids are in `pids`), the proxy's storms blow between the informer and that one.
"""

import asyncio
import json
import logging
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from signal import Signals
from typing import Any, Final

import pytest

from conformance.bench.servers import free_port
from fakeapiserver.apimachinery.errors import new_resource_expired, status_error
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.cache.indexer import (
    NAMESPACE_INDEX,
    Indexer,
    IndexFunc,
    deletion_handling_key,
    meta_namespace_key,
    namespace_index,
)
from fakeapiserver.client.cache.shared_informer import SharedInformer, Tombstone
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.dynamic import DynamicClient, ResourceClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.pager import decode_items, whole
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.wait import poll_until

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
NAMESPACES: Final = ("storm-a", "storm-b")
INDEXERS: Final[dict[str, IndexFunc]] = {
    NAMESPACE_INDEX: namespace_index,
    "color": lambda obj: ((obj["metadata"].get("labels") or {}).get("color", ""),),
}
STORMS: Final = int(os.environ.get("FAKEAPISERVER_STORMS", "1"))
FIRST: Final = int(os.environ.get("FAKEAPISERVER_FIRST_STORM", "0"))
LOSSES: Final = 1000 if STORMS > 1 else 50
REFERENCE: Final = os.environ.get("FAKEAPISERVER_REFERENCE_STATE", "")
pytestmark = pytest.mark.timeout(240 + 60 * STORMS)


# ------------------------------------------------------------------------------------------- the servers


class Serve:
    """`fakeapiserver serve`, whose state is gone when it is killed."""

    forgets = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kubeconfig = folder / "kubeconfig"
        (folder / "tokens.csv").write_text("storms,admin,1,system:masters\n")
        self.port = free_port()  # the server starts again on this port, which no other process may take meanwhile
        self.start()

    @property
    def config(self) -> RESTConfig:
        return kubeconfig.load(self._kubeconfig).with_(token="storms", cert_data=b"", key_data=b"")

    def start(self) -> None:
        """Returns when it is ready."""
        words = ["serve", f"--secure-port={self.port}", f"--write-kubeconfig={self._kubeconfig}", "--output=json"]
        words += [
            f"--cert-dir={self._folder}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--controllers=none",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fakeapiserver", *words], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline()

    def send(self, number: Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: Signals) -> None:
        """Returns when it is gone."""
        with self._process as process:
            process.send_signal(number)


class Reference:
    """A real kube-apiserver, which keeps its state."""

    forgets = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def config(self) -> RESTConfig:
        return kubeconfig.load(self._folder / "kubeconfig")

    def start(self) -> None:
        """Goes on with the words it was started with."""
        self._process = subprocess.Popen(self._words, cwd=self._folder, stderr=subprocess.DEVNULL)
        (self._folder / "pids").write_text(f"{self._etcd}\n{self._process.pid}\n")
        words = [
            "curl",
            "-skf",
            "--retry",
            "300",
            "--retry-delay",
            "0",
            "--retry-all-errors",
            "--retry-max-time",
            "60",
            "-o",
            "/dev/null",
        ]
        token = f"Authorization: Bearer {self.config.token}"
        subprocess.run([*words, "-H", token, f"{self.config.host}/readyz"], check=True)

    def send(self, number: Signals) -> None:
        os.kill(self._pid, number)

    def end(self, number: Signals) -> None:
        pid = self._pid
        self._etcd = int((self._folder / "pids").read_text().split()[0])
        self._words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        os.kill(pid, number)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            os.sched_yield()

    @property
    def _pid(self) -> int:
        return int((self._folder / "pids").read_text().split()[1])


Server = Serve | Reference


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if REFERENCE:
        yield Reference(Path(REFERENCE))
        return
    found = Serve(tmp_path_factory.mktemp("server"))
    yield found
    found.end(Signals.SIGKILL)


# --------------------------------------------------------------------------------------------- the network


class Cut(Exception):
    """The connection ends here."""


class Proxy:
    """Carries plain HTTP/1.1 to a server behind TLS, and, while `storm` lasts, breaks it by the dice."""

    def __init__(self, config: RESTConfig, dice: random.Random) -> None:
        parts = config.host.rpartition(":")
        self._address = (parts[0].rpartition("/")[2], int(parts[2]))
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._dice = dice
        self._tasks: set[asyncio.Task[None]] = set()
        self.storm = False
        self.open = asyncio.Event()
        self.open.set()
        self.seen: dict[str, int] = {}
        self.watched = asyncio.Event()

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        self.drop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        return len(self._tasks)

    def drop(self) -> None:
        """Every connection that is open breaks."""
        for task in self._tasks:
            task.cancel()

    def _happens(self, what: str, share: float) -> bool:
        happens = self.storm and self._dice.random() < share
        if happens:
            self.seen[what] = self.seen.get(what, 0) + 1
        return happens

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind: asyncio.StreamWriter | None = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self.open.wait()
                if self._happens("refused", 0.1):
                    writer.write(self._refusal())
                    continue
                if behind is None:
                    answers, behind = await asyncio.open_connection(*self._address, ssl=self._tls, limit=1 << 22)
                behind.write(head)
                # the client may disconnect while no data arrives
                gone = asyncio.ensure_future(reader.read(1)) if b"watch=true" in head else None
                answering = asyncio.ensure_future(self._answer(answers, writer))
                try:
                    await asyncio.wait([answering, *([gone] if gone else [])], return_when="FIRST_COMPLETED")
                    if not answering.done():
                        return
                    await answering
                finally:
                    answering.cancel()
                    if gone is not None:
                        gone.cancel()
                if gone is not None:
                    return
        except (OSError, EOFError, Cut):
            pass
        finally:
            if self._happens("reset", 0.5):
                with suppress(OSError):
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
            for one in (writer, behind):
                if one is not None:
                    one.close()

    def _refusal(self) -> bytes:
        error = self._dice.choice(
            (
                status_error(429, "TooManyRequests", "too many requests"),
                status_error(500, "InternalError", "etcd has a bad day"),
                status_error(503, "ServiceUnavailable", "not yet"),
                status_error(504, "Timeout", "too late"),
                new_resource_expired("too old resource version"),
            )
        )
        body = json.dumps(error.status).encode()
        if self._happens("no status", 0.3):
            body = b"<html>a gateway's page</html>"
        words = {429: "Retry-After: 0\r\n"} if self._dice.random() < 0.5 else {}
        head = f"HTTP/1.1 {error.code} No\r\nContent-Type: application/json\r\n{words.get(error.code, '')}"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def _answer(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await answers.readuntil(b"\r\n\r\n")
        if b"chunked" in head:
            self.watched.set()
        length = next(
            (line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")),
            b"",
        )
        await self._send(writer, head)
        if length:
            await self._send(writer, await answers.readexactly(int(length)))
            return
        while True:
            size = await answers.readuntil(b"\r\n")
            chunk = await answers.readexactly(int(size, 16) + 2)
            if self._happens("an ERROR event", 0.02):
                await self._send(writer, _chunk(self._error_event()))
            if self._happens("garbage", 0.01):
                await self._send(
                    writer, _chunk(self._dice.choice((b"{]\n", b"\xff\xfe\n", b"null\n", b'{"type":1}\n')))
                )
            if self._happens("an early end", 0.02):
                size, chunk = b"0\r\n", b"\r\n"
            await self._send(writer, size + chunk)
            if size == b"0\r\n":
                return

    def _error_event(self) -> bytes:
        error = self._dice.choice(
            (
                new_resource_expired("too old resource version"),
                status_error(500, "InternalError", "the watch cache is upset"),
                status_error(429, "TooManyRequests", "the storage is initializing"),
            )
        )
        return json.dumps({"type": "ERROR", "object": error.status}).encode() + b"\n"

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if self._happens("a cut", 0.02):
            writer.write(data[: self._dice.randrange(len(data))])
            raise Cut
        if self._happens("bytes that are no HTTP", 0.005):
            writer.write(self._dice.randbytes(20))
            raise Cut
        if self._happens("half an end", 0.01):
            writer.write(data[: self._dice.randrange(len(data))])
            writer.write_eof()
            await self._pause(0.2)
            raise Cut
        if self._happens("a stall", 0.02):
            await self._pause(0.1)
        writer.write(data)
        await writer.drain()

    async def _pause(self, longest: float) -> None:
        await asyncio.sleep(self._dice.random() * longest)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# ------------------------------------------------------------------------------------------- the handlers


class View:
    """A handler that records its events and checks each: no object is added twice, or changed or deleted before it was added.

    `fails`: it raises an error after each record. `dawdles`: it is slow.
    """

    def __init__(self, *, fails: bool = False, dawdles: bool = False) -> None:
        self.objects: dict[str, Object] = {}
        self.mistakes: list[str] = []
        self._fails = fails
        self._dawdles = dawdles

    async def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        key = meta_namespace_key(obj)
        self._check(key not in self.objects, f"{key} added twice")
        self.objects[key] = obj
        await self._end()

    async def on_update(self, old: Object, new: Object) -> None:
        key = meta_namespace_key(new)
        self._check(self.objects.get(key) == old, f"{key} changed from what it never was")
        self.objects[key] = new
        await self._end()

    async def on_delete(self, obj: Tombstone) -> None:
        key = deletion_handling_key(obj)
        self._check(key in self.objects, f"{key} deleted though it never was")
        self.objects.pop(key, None)
        await self._end()

    def _check(self, holds: bool, mistake: str) -> None:
        if not holds:
            self.mistakes.append(mistake)

    async def _end(self) -> None:
        if self._dawdles:
            await asyncio.sleep(0.001)
        if self._fails:
            raise RuntimeError("a handler with a mistake")


# ----------------------------------------------------------------------------------------------- storms


class Storm:
    """Writes, and things that happen to the server while it writes."""

    def __init__(self, server: Server, proxy: Proxy, dice: random.Random) -> None:
        self._server = server
        self._proxy = proxy
        self._dice = dice
        self._config = server.config

    async def blow(self, turns: int) -> None:
        happenings: list[Callable[[], Any]] = [self._kill, self._stop, self._freeze, self._proxy.drop]
        if self._server.forgets:
            happenings += [self._compact, self._lose_watches, self._restore]
        for _ in range(turns):
            async with RESTClient(self._config) as rest:
                await self._write(rest, self._dice.randrange(40))
                found = self._dice.choice(happenings)()
                if found is not None:
                    await found
            self._config = self._server.config

    async def state(self) -> list[Object]:
        async with RESTClient(self._config) as rest:
            return decode_items(await whole(self._maps(rest, ""), 0))

    @staticmethod
    def _maps(rest: RESTClient, namespace: str) -> ResourceClient:
        return DynamicClient(rest).resource(CONFIG_MAPS, namespace)

    async def _write(self, rest: RESTClient, count: int) -> None:
        for namespace in NAMESPACES:
            with suppress(StatusError):
                await rest.request("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}})
        for _ in range(count):
            maps = self._maps(rest, self._dice.choice(NAMESPACES))
            name = f"o{self._dice.randrange(12)}"
            color = self._dice.choice(("red", "green", "blue"))
            obj = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"color": color}},
                "data": {"n": str(self._dice.random()), "text": "x" * self._dice.choice((1, 10, 5000))},
            }
            with suppress(StatusError):
                if self._dice.random() < 0.3:
                    await maps.delete(name)
                else:
                    await maps.apply(obj, field_manager="storms", force=True)

    async def _kill(self) -> None:
        await self._restart(Signals.SIGKILL)

    async def _stop(self) -> None:
        await self._restart(Signals.SIGTERM)

    async def _restart(self, how: Signals) -> None:
        """Sometimes the way is shut until the new server has gone further than the old one had."""
        is_shut = self._dice.random() < 0.5
        if is_shut:
            self._proxy.open.clear()
        await asyncio.to_thread(self._server.end, how)
        await asyncio.to_thread(self._server.start)
        self._config = self._server.config
        async with RESTClient(self._config) as rest:
            await self._write(rest, self._dice.choice((0, 5, 200)) if is_shut else 0)
        self._proxy.open.set()

    async def _freeze(self) -> None:
        self._server.send(Signals.SIGSTOP)
        await asyncio.sleep(0.1)
        self._server.send(Signals.SIGCONT)

    async def _compact(self) -> None:
        async with RESTClient(self._config) as rest:
            await rest.request("POST", "/fakeapiserver/compact", body={})

    async def _lose_watches(self) -> None:
        async with RESTClient(self._config) as rest:
            await rest.request("POST", "/fakeapiserver/watches/lose")

    async def _restore(self) -> None:
        async with RESTClient(self._config) as rest:
            taken = (await rest.request("POST", "/fakeapiserver/snapshots")).json()
            await self._write(rest, 20)
            await rest.request("POST", f"/fakeapiserver/snapshots/{taken['id']}/restore")


async def no_time(seconds: float) -> None:
    """Waits are short here, that storms may be many."""
    await asyncio.sleep(min(seconds, 0.01))


@pytest.mark.parametrize("way", ["stream", "list", "pages"])
def test_after_every_storm_the_cache_is_the_servers_state(
    server: Server, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "fakeapiserver.client.cache")

    async def scenario(seed: int) -> None:
        dice = random.Random(seed)
        async with Proxy(server.config, dice) as proxy:
            config = RESTConfig(proxy.url, token=server.config.token)
            async with RESTClient(config, sleep=no_time) as rest:
                informer = SharedInformer(
                    DynamicClient(rest).resource(CONFIG_MAPS),
                    indexers={"color": INDEXERS["color"]},
                    use_watch_list=way == "stream",
                    page_size=10 if way == "pages" else 500,
                    sleep=no_time,
                )
                views = [View(), View(dawdles=True), View(fails=True)]
                for view in views:
                    informer.add_event_handler(view)
                running = asyncio.ensure_future(informer.run())
                storm = Storm(server, proxy, dice)
                try:
                    for _ in range(2):
                        proxy.storm = True
                        await storm.blow(2)
                        proxy.storm = False
                        await settled(informer, views, await storm.state())
                finally:
                    running.cancel()
                    await asyncio.wait([running])

    for seed in range(FIRST, FIRST + STORMS):
        asyncio.run(scenario(seed))


async def settled(informer: SharedInformer, views: list[View], expected: list[Object]) -> None:
    """Waits until informer and handlers have what is expected."""
    wanted = identities(expected)

    async def is_so() -> bool:
        return all(identities(found) == wanted for found in (informer.indexer.list(), *map(told, views)))

    with suppress(TimeoutError):
        await poll_until(is_so, interval=0.01, timeout=40)
    assert identities(informer.indexer.list()) == wanted
    for view in views:
        assert identities(told(view)) == wanted
        assert view.mistakes == []
    rebuilt = Indexer(INDEXERS)
    rebuilt.replace(expected)
    for name in INDEXERS:
        assert contents(informer.indexer, name) == contents(rebuilt, name)


def told(view: View) -> list[Object]:
    return [*view.objects.values()]


def identities(objects: Any) -> dict[str, tuple[str, str]]:
    """Returns the uid and revision of each object of the storms; a server also writes its own objects when it starts."""
    return {
        meta_namespace_key(obj): (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])
        for obj in objects
        if obj["metadata"]["namespace"] in NAMESPACES
    }


def contents(indexer: Indexer, name: str) -> set[tuple[str, str]]:
    return {
        (value, key)
        for value in indexer.index_values(name)
        for key in indexer.index_keys(name, value)
        if key.startswith(NAMESPACES)
    }


def test_many_lost_watches_leave_nothing_behind(server: Server) -> None:
    """No task, no connection, no file; and the handler's queue is as short as before."""

    async def scenario() -> None:
        proxy = Proxy(server.config, random.Random(0))
        config = server.config
        async with proxy, RESTClient(RESTConfig(proxy.url, token=config.token), sleep=no_time) as rest:
            informer = SharedInformer(DynamicClient(rest).resource(CONFIG_MAPS), sleep=no_time)
            informer.add_event_handler(View())
            running = asyncio.ensure_future(informer.run())
            await informer.wait_for_sync()

            def left() -> tuple[int, int, int]:
                return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd")), proxy.connections

            async def lose(count: int) -> None:
                for _ in range(count):
                    proxy.watched.clear()
                    proxy.drop()
                    await proxy.watched.wait()

            await lose(20)
            few = left()
            await lose(LOSSES)

            async def is_as_before() -> bool:  # what has just been dropped takes its time
                return all(later <= before + 4 for later, before in zip(left(), few, strict=True))

            await poll_until(is_as_before, interval=0.01, timeout=60)
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(scenario())
