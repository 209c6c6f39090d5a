"""Clients with Kubernetes' mix of requests: most updates, some creates, deletes and lists, and watches that resume where they ended.

Upstream: etcd's tests/robustness/traffic/kubernetes.go.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from conformance.robustness.client import LOST, NAMESPACE, PATH, Client, Credentials
from conformance.robustness.history import Read, Seen, Verb, Watch, Write

_NAMES: Final = [f"c{number}" for number in range(12)]
_VERBS: Final[tuple[Verb, ...]] = ("update", "delete", "create")
_WEIGHTS: Final = (90, 5, 5)
_LISTS: Final = 0.15
_PAUSE: Final = 0.01  # seconds after a lost connection


class Traffic:
    """`writers` and `watchers` are numbers of threads, which share the servers. What they see is in `writes`, `reads` and `watches`."""

    def __init__(self, credentials: Sequence[Credentials], writers: int, watchers: int, seed: int) -> None:
        self.writes: list[Write] = []
        self.reads: list[Read] = []
        self.watches: list[Watch] = []
        self.failures: list[BaseException] = []
        self._stopped = threading.Event()
        work = [(self._write, number) for number in range(writers)] + [
            (self._watch, number) for number in range(watchers)
        ]
        self._threads = [
            threading.Thread(
                target=self._run, args=(run, f"{seed}-{number}", credentials[number % len(credentials)]), daemon=True
            )
            for run, number in work
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Raises what has ended a client other than this."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        for failure in self.failures:
            raise failure

    def _run(self, work: Callable[[str, Credentials], None], name: str, credentials: Credentials) -> None:
        try:
            work(name, credentials)
        except BaseException as error:
            self.failures.append(error)

    def _write(self, name: str, credentials: Credentials) -> None:
        client, chance, number = Client(credentials), random.Random(name), 0
        known: dict[str, tuple[int, str]] = {}
        while not self._stopped.is_set():
            number += 1
            try:
                if not known or chance.random() < _LISTS:
                    known = self._list(client)
                self._write_once(client, chance, known, f"{name}-{number}")
            except LOST:
                known = {}
                self._stopped.wait(_PAUSE)
        client.close()

    def _list(self, client: Client) -> dict[str, tuple[int, str]]:
        began = time.monotonic()
        status, found = client.ask("GET", PATH)
        if status != 200:
            return {}
        objects = {item["metadata"]["name"]: (revision_of(item), value_of(item)) for item in found["items"]}
        self.reads.append(Read(began, time.monotonic(), revision_of(found), objects))
        return {**objects}

    def _write_once(self, client: Client, chance: random.Random, known: dict[str, tuple[int, str]], value: str) -> None:
        """Sends one write, of an object as this client knows it. Raises what LOST lists if the answer doesn't come."""
        [verb] = chance.choices(_VERBS, _WEIGHTS)
        absent = [name for name in _NAMES if name not in known]
        if verb == "create" or not known:
            verb = "create"
            name = chance.choice(absent or _NAMES)
            revision, last = 0, ""
        else:
            name = chance.choice([*known])
            revision, last = known[name]
        write = Write(verb, name, last if verb == "delete" else value, revision, time.monotonic())
        self.writes.append(write)
        status, answer = _send(client, write)
        write.ended = time.monotonic()
        if status in (200, 201):
            write.outcome = "done"
            write.revision = _written(answer, verb)
        elif status < 500:
            write.outcome = "refused"
        known.pop(name, None)
        if write.outcome == "done" and verb != "delete":
            known[name] = (write.revision, value)

    def _watch(self, name: str, credentials: Credentials) -> None:
        client, revision = Client(credentials), 0
        while not self._stopped.is_set():
            try:
                if not revision:
                    status, found = client.ask("GET", f"{PATH}?resourceVersion=0")
                    revision = revision_of(found) if status == 200 else 0
                revision = self._watch_once(client, revision)
            except LOST:
                self._stopped.wait(_PAUSE)
        client.close()

    def _watch_once(self, client: Client, start: int) -> int:
        """Follows one watch. Returns the revision for the next one, or 0 if it has to list again."""
        watch = Watch(start)
        revision = start
        try:
            for kind, obj in client.watch(start):
                if kind == "ERROR":
                    return 0
                revision = revision_of(obj)
                name = "" if kind == "BOOKMARK" else obj["metadata"]["name"]
                watch.events.append(Seen(kind, revision, name, value_of(obj)))
                if self._stopped.is_set():
                    break
        except (*LOST, ValueError):  # a line that ends in the middle
            self._stopped.wait(_PAUSE)
        finally:
            if watch.events:
                self.watches.append(watch)
        return revision


def _send(client: Client, write: Write) -> tuple[int, Any]:
    meta: dict[str, object] = {"name": write.name, "namespace": NAMESPACE}
    if write.verb == "delete":
        preconditions = {"resourceVersion": str(write.expected)}
        return client.ask("DELETE", f"{PATH}/{write.name}", {"preconditions": preconditions})
    if write.verb == "update":
        meta["resourceVersion"] = str(write.expected)
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": write.value}}
    return client.ask("POST", PATH, obj) if write.verb == "create" else client.ask("PUT", f"{PATH}/{write.name}", obj)


def _written(answer: Any, verb: Verb) -> int:
    """The revision in an answer; that of a deletion, which has none, is 0."""
    return 0 if verb == "delete" else revision_of(answer)


def revision_of(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


def value_of(obj: Any) -> str:
    return str(obj.get("data", {}).get("value", ""))
