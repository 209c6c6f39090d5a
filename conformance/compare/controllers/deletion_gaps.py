"""Measures the time between the events of one deletion at a client that reads its watch promptly.

    python -m conformance.compare.controllers.deletion_gaps --server URL --token T [--pairs N] [--load N] [--watchers N] [--step NAME]

For each way in which an object is deleted in several writes, N objects are deleted one after the other, and once N together
(`deletecollection`), while a watch is read from a socket as its bytes come. Prints how many of the objects' last two events came in one
read, and the time between them in milliseconds (the smallest, the median). `--load` adds clients that write config maps meanwhile,
`--watchers` adds watches that are read as well. The steps `foreground` and `namespaces` need a controller manager beside the server.
"""

import argparse
import itertools
import json
import multiprocessing
import socket
import ssl
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from conformance.exchange import Client

_NAMESPACE: Final = "deletion-gaps"
_CORE: Final = f"/api/v1/namespaces/{_NAMESPACE}"
_MERGE: Final = "application/merge-patch+json"
_PATIENCE: Final = 30.0  # seconds until the last object of a step must be gone
_POD: Final = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}


@dataclass
class Watch:
    """A watch that a thread reads from a raw socket. `reads` has the time of each read of the socket and how much of the answer's body it
    made complete."""

    url: str
    token: str
    path: str
    body: bytearray = field(default_factory=bytearray)
    reads: list[tuple[float, int]] = field(default_factory=list)

    def start(self) -> None:
        parts = urlsplit(self.url)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 443))
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl._create_unverified_context()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=parts.hostname)
        self._call(self._tls.do_handshake)
        lines = (f"GET {self.path}?watch=true HTTP/1.1", f"Host: {parts.netloc}", f"Authorization: Bearer {self.token}")
        self._tls.write("\r\n".join((*lines, "", "")).encode())
        self._socket.sendall(self._outgoing.read())
        threading.Thread(target=self._read, daemon=True).start()
        while not self.reads:
            time.sleep(0.01)

    def _call(self, step: Callable[[], None]) -> None:
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                self._socket.sendall(self._outgoing.read())
                self._incoming.write(self._socket.recv(1 << 16))
            else:
                self._socket.sendall(self._outgoing.read())
                return

    def _read(self) -> None:
        """Reads the socket first and then decrypts its bytes, since a single read may complete several TLS records."""
        while data := self._received():
            now = time.perf_counter()
            self._incoming.write(data)
            try:
                while text := self._tls.read(1 << 16):
                    self.body += text
            except ssl.SSLWantReadError:
                self.reads.append((now, len(self.body)))

    def _received(self) -> bytes:
        with suppress(ConnectionError):
            return self._socket.recv(1 << 20)
        return b""

    def stop(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)

    def events(self) -> Iterator[tuple[dict[str, Any], int, float]]:
        """Each event with the index and the time of the read that completed it."""
        reads, at, read = list(self.reads), self.body.index(b"\r\n\r\n") + 4, 0
        rest = b""
        while (end := self.body.find(b"\r\n", at)) >= 0:
            size = int(self.body[at:end], 16)
            at = end + 2 + size + 2
            *lines, rest = (rest + self.body[end + 2 : at - 2]).split(b"\n")
            while read < len(reads) - 1 and reads[read][1] < at:
                read += 1
            yield from ((json.loads(line), read, reads[read][0]) for line in lines)


Delete = Callable[[str], object]


@dataclass
class Step:
    """A way of deleting objects: `path` is the collection, `body` makes an object, `delete` starts the deletion of an object."""

    path: str
    body: Callable[[str], dict[str, Any]]
    delete: Delete
    together: bool = False


class Gaps:
    def __init__(self, url: str, token: str, pairs: int) -> None:
        self._url, self._token, self._pairs = url, token, pairs
        self._client = Client(url, token)

    def steps(self) -> dict[str, Step]:
        pods, config_maps = f"{_CORE}/pods", f"{_CORE}/configmaps"
        namespaces = "/api/v1/namespaces"

        def pod(name: str, **spec: Any) -> dict[str, Any]:
            return {"metadata": {"name": name}, "spec": {**_POD, **spec}}

        def held(name: str) -> dict[str, Any]:
            return {"metadata": {"name": name, "finalizers": ["example.com/f"]}}

        def bound_then_forced(name: str) -> None:
            self._ask("DELETE", f"{pods}/{name}")
            self._ask("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})

        def finalized(name: str) -> None:
            self._ask("DELETE", f"{config_maps}/{name}")
            self._ask("PATCH", f"{config_maps}/{name}", {"metadata": {"finalizers": None}}, _MERGE)

        def in_foreground(name: str) -> None:
            found = self._ask("GET", f"{config_maps}/{name}")
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": found["metadata"]["uid"]}
            child = {"metadata": {"name": f"of-{name}", "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}}
            self._ask("POST", f"{_CORE}/secrets", child)
            self._ask("DELETE", f"{config_maps}/{name}", {"propagationPolicy": "Foreground"})

        def one(path: str, body: dict[str, Any] | None = None) -> Delete:
            return lambda name: self._ask("DELETE", f"{path}/{name}", body)

        return {
            "pod without a node": Step(pods, pod, one(pods)),
            "pod with a node, at once": Step(
                pods, lambda name: pod(name, nodeName="n"), one(pods, {"gracePeriodSeconds": 0})
            ),
            "pod with a node, forced later": Step(pods, lambda name: pod(name, nodeName="n"), bound_then_forced),
            "pods without a node, together": Step(pods, pod, lambda name: self._ask("DELETE", pods), together=True),
            "last finalizer removed": Step(config_maps, held, finalized),
            "foreground": Step(config_maps, lambda name: {"metadata": {"name": name}}, in_foreground),
            "namespaces": Step(namespaces, lambda name: {"metadata": {"name": name}}, one(namespaces)),
        }

    def run(self, step: Step) -> tuple[int, list[float], float]:
        """Returns how often the last two events came in one read, the times between them, and the duration of the deletions, in seconds."""
        names = [f"gap-{int(time.time() * 1000) % 10**9}-{i}" for i in range(self._pairs)]
        for name in names:
            self._ask("POST", step.path, step.body(name))
        time.sleep(0.3)  # what controllers do with new objects
        watch = Watch(self._url, self._token, step.path)
        watch.start()
        begun = time.perf_counter()
        for name in names[:1] if step.together else names:
            step.delete(name)
        took = time.perf_counter() - begun
        deadline = time.monotonic() + _PATIENCE
        while (seen := last_two(watch, names)) is None and time.monotonic() < deadline:
            time.sleep(0.1)
        watch.stop()
        if seen is None:
            raise TimeoutError(f"after {_PATIENCE:.0f} s some objects of {step.path} are still there")
        return sum(left[0] == right[0] for left, right in seen), [right[1] - left[1] for left, right in seen], took

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        request = {"method": method, "path": path, "type": kind, **({} if body is None else {"body": body})}
        answer = self._client.send(request, [])
        if answer["status"] >= 300 and answer["status"] != 404:
            raise RuntimeError(f"{method} {path}: {json.dumps(answer)[:500]}")
        found: dict[str, Any] = answer["body"]
        return found

    @contextmanager
    def prepared(self, load: int, watchers: int) -> Iterator[None]:
        account = {"metadata": {"name": "default"}}
        for path, body in (
            ("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}}),
            (f"{_CORE}/serviceaccounts", account),
        ):
            self._client.send({"method": "POST", "path": path, "body": body}, [])
        # A fork would have the sockets, threads and signal handlers of this process.
        context = multiprocessing.get_context("spawn")
        others = context.Process(target=_trouble, args=(self._url, self._token, load, watchers), daemon=True)
        others.start()
        try:
            yield
        finally:
            others.kill()
            others.join()


def _trouble(url: str, token: str, load: int, watchers: int) -> None:
    """Other clients, in a process of their own: the measured watch must be read promptly."""
    for i in range(load):
        threading.Thread(target=_write, args=(Client(url, token), f"load-{i}"), daemon=True).start()
    for _ in range(watchers):
        Watch(url, token, f"{_CORE}/pods").start()
    threading.Event().wait()


def _write(client: Client, name: str) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    client.send({"method": "POST", "path": path, "body": {"metadata": {"name": name}}}, [])
    for i in itertools.count():
        body = {"data": {"count": str(i)}}
        client.send({"method": "PATCH", "path": f"{path}/{name}", "body": body, "type": _MERGE}, [])


def last_two(watch: Watch, names: list[str]) -> list[tuple[tuple[int, float], tuple[int, float]]] | None:
    """The read and the time of each object's last event before its DELETED, and of that; None while some are still to come."""
    found: dict[str, list[tuple[str, tuple[int, float]]]] = {name: [] for name in names}
    for event, read, at in watch.events():
        found.get(event["object"]["metadata"]["name"], []).append((event["type"], (read, at)))
    if any(not rows or rows[-1][0] != "DELETED" for rows in found.values()):
        return None
    return [[(left[1], right[1]) for left, right in pairwise(rows)][-1] for rows in found.values()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--watchers", type=int, default=0)
    parser.add_argument("--step", action="append", default=[])
    arguments = parser.parse_args()
    sys.setswitchinterval(0.0001)
    gaps = Gaps(arguments.server, arguments.token, arguments.pairs)
    with gaps.prepared(arguments.load, arguments.watchers):
        for name, step in gaps.steps().items():
            if arguments.step and not any(part in name for part in arguments.step):
                continue
            try:
                together, between, took = gaps.run(step)
            except TimeoutError as error:
                print(f"{name}: {error}")
                continue
            median, least = statistics.median(between) * 1000, min(between) * 1000
            print(
                f"{name}: {together} of {len(between)} in one read, {least:.2f} ms apart at least, "
                f"{median:.2f} ms in the middle; all took {took:.2f} s",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
