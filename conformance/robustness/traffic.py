"""Clients with Kubernetes' mix of requests, each in a thread: writers, which read as well, and reflectors, which list and watch.

Upstream: etcd's tests/robustness/traffic/kubernetes.go.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from conformance.robustness.client import LOST, Client, Credentials
from conformance.robustness.history import Scope, Write
from conformance.robustness.kinds import CONFIG_MAPS, EVENTS, KINDS, LEASES, NAMESPACE, WIDGETS, definition
from conformance.robustness.reader import Reader
from conformance.robustness.reading import Reading, read_list, revision_of
from conformance.robustness.reflector import Reflector
from conformance.robustness.writer import Writer

# The objects that reflectors follow, each in turn: with and without selectors.
_SCOPES: Final = (
    Scope("configmaps"),
    Scope("widgets", color="red"),
    Scope("events"),
    Scope("leases"),
    Scope("configmaps", color="green"),
    Scope("widgets"),
    Scope("configmaps", name="c1"),
    Scope("leases", color="blue"),
)
# Seconds after the last write within which each client sees it.
_PATIENCE: Final = 30.0
_PAUSE: Final = 0.1


class Traffic:
    """`clients` are the numbers of writers, readers and reflectors, which share the servers. What they see is in `reading` and `writes`."""

    def __init__(
        self, credentials: Sequence[Credentials], clients: tuple[int, int, int], seed: int, *, with_events: bool
    ) -> None:
        writers, readers, reflectors = clients
        self.reading = Reading()
        self.failures: list[BaseException] = []
        self._credentials = credentials
        self._stopped = threading.Event()
        kinds = [CONFIG_MAPS, LEASES, WIDGETS]
        scopes = [scope for scope in _SCOPES if with_events or scope.resource != EVENTS.resource]
        self._writers = [
            Writer(*self._place(number), f"{seed}-{number}", self.reading, kinds, with_events=with_events)
            for number in range(writers)
        ]
        only_readers = [
            Reader(*self._place(number), f"{seed}-reader-{number}", self.reading, kinds) for number in range(readers)
        ]
        self._reflectors = [
            Reflector(*self._place(number), f"{seed}-reflector-{number}", self.reading, scopes[number % len(scopes)])
            for number in range(reflectors)
        ]
        self._asking = [self._thread(client.run) for client in (*self._writers, *only_readers)]
        self._reflecting = [self._thread(reflector.run) for reflector in self._reflectors]

    def _place(self, number: int) -> tuple[Client, int]:
        """A client with the number, and the number of its server."""
        server = number % len(self._credentials)
        return Client(self._credentials[server]), server

    @property
    def writes(self) -> list[Write]:
        return [write for writer in self._writers for write in writer.writes]

    @property
    def requests(self) -> int:
        """The writes and reads so far."""
        return sum(len(writer.writes) for writer in self._writers) + len(self.reading.reads)

    def start(self) -> None:
        for thread in (*self._asking, *self._reflecting):
            thread.start()

    def stop(self) -> list[str]:
        """Ends the writers, and the reflectors when each has seen the last write. Returns what was still missing at the end, as sentences.
        Raises what has ended a client other than this."""
        self._stopped.set()
        for thread in self._asking:
            thread.join()
        deadline = time.monotonic() + _PATIENCE
        late = self._read_everything(deadline)
        for reflector in self._reflectors:
            reflector.end(self.reading.newest, deadline)
        for thread in self._reflecting:
            thread.join()
        for failure in self.failures:
            raise failure
        return late + [reflector.missing for reflector in self._reflectors if reflector.missing]

    def _thread(self, work: Callable[[threading.Event], None]) -> threading.Thread:
        def run() -> None:
            try:
                work(self._stopped)
            except BaseException as error:
                self.failures.append(error)

        return threading.Thread(target=run, daemon=True)

    def _read_everything(self, deadline: float) -> list[str]:
        """Lists everything at each server: the newest state, and the one that it has in its copy. Returns what failed."""
        late = []
        for number, credentials in enumerate(self._credentials):
            client = Client(credentials)
            while not self._finish(client, number) and time.monotonic() < deadline:
                time.sleep(_PAUSE)
            if time.monotonic() >= deadline:
                late.append(f"server {number} serves no requests {_PATIENCE:.0f} seconds after the last disturbance")
            client.close()
        return late

    def _finish(self, client: Client, number: int) -> bool:
        try:
            for resource in KINDS:
                for promise in ("any", "newest"):
                    if read_list(self.reading, client, (f"last-{number}", number), Scope(resource), promise) is None:
                        return False
        except LOST:
            return False
        return True


def prepare(credentials: Sequence[Credentials]) -> int:
    """Makes the namespace of the traffic and the definition of its custom resource, and waits until each server has them. Returns the
    revision from which the history counts. Raises RuntimeError if a server doesn't have them in time."""
    namespace = CONFIG_MAPS.path.rsplit("/", 1)[0]
    client = Client(credentials[0])
    _made(client, namespace.rsplit("/", 1)[0], {"metadata": {"name": NAMESPACE}})
    _made(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    client.close()
    return max([_newest_of(Client(each)) for each in credentials])


def _made(client: Client, path: str, body: object) -> None:
    status, answer = client.ask("POST", path, body)
    if status != 201:
        raise RuntimeError(f"{path} was refused: {answer}")


def _newest_of(client: Client) -> int:
    """The revision of a server, once it serves all kinds."""
    deadline, answer = time.monotonic() + _PATIENCE, None
    while time.monotonic() < deadline:
        status, answer = client.ask("GET", WIDGETS.path)
        if status == 200:
            client.close()
            return revision_of(answer)
        time.sleep(_PAUSE)
    raise RuntimeError(f"a server doesn't serve widgets: {answer}")
