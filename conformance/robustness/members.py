"""An etcd of one member or several, each behind a network of its own, so that a member can be parted from the others."""

import http.client
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from conformance.robustness.proxy import Proxy, has_socket
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess, find_etcd
from fakeapiserver.transport.free_ports import free_port

_LEADER: Final = "etcd_server_is_leader 1"
_LOOK: Final = 1.0
# Seconds within which a member is ready.
_START: Final = 120.0


class Members:
    """`folder` holds their data. With one member there are no networks between them."""

    def __init__(self, folder: Path, count: int, flags: Sequence[str] = ()) -> None:
        self._parted: int | None = None
        self._networks: list[Proxy] = []
        binary = find_etcd()
        self.folders = [folder / f"etcd{number}" for number in range(count)]
        own: list[tuple[str, ...]] = [()] * count
        if count > 1:
            own = self._connect(count)
        self.processes = [
            EtcdProcess(binary, data_dir=data, flags=(*flags, *more))
            for data, more in zip(self.folders, own, strict=True)
        ]

    def _connect(self, count: int) -> list[tuple[str, ...]]:
        """Makes the networks of the members, and returns their flags."""
        ports = [free_port() for _ in range(count)]
        self._networks = [Proxy(port, self._admitted_at(number)) for number, port in enumerate(ports)]
        cluster = ",".join(f"m{number}={network.url}" for number, network in enumerate(self._networks))
        return [
            (
                f"--name=m{number}",
                f"--initial-cluster={cluster}",
                f"--listen-peer-urls=http://127.0.0.1:{port}",
                f"--initial-advertise-peer-urls={self._networks[number].url}",
            )
            for number, port in enumerate(ports)
        ]

    def _admitted_at(self, number: int) -> Callable[[int], bool]:
        """Whether a connection to a member comes from one that isn't parted from it."""

        def admits(port: int) -> bool:
            if self._parted is None:
                return True
            process = self.processes[self._parted].group
            return number != self._parted and (process is None or not has_socket(process, port))

        return admits

    @property
    def urls(self) -> list[str]:
        return [process.url for process in self.processes]

    def start(self) -> None:
        for process in self.processes:
            process.launch()
        for process in self.processes:
            process.wait_until_ready(_START)

    def restart(self, number: int) -> None:
        """Starts a member that was killed."""
        self.processes[number].start(_START)

    def leader(self) -> int | None:
        """The number of the leader, or None while they have no leader."""
        return next((number for number, url in enumerate(self.urls) if _is_leader(url)), None)

    def choose(self, chance: random.Random, *, is_leader: bool) -> int:
        """The leader, or another member."""
        leader = self.leader()
        leader = chance.randrange(len(self.processes)) if leader is None else leader
        others = [number for number in range(len(self.processes)) if number != leader]
        return leader if is_leader or not others else chance.choice(others)

    def part(self, number: int) -> None:
        """Cuts a member from the others, in both directions. Clients still reach it."""
        self._parted = number
        for network in self._networks:
            network.part()

    def join(self) -> None:
        self._parted = None

    def close(self) -> None:
        for process in self.processes:
            process.close()
        for network in self._networks:
            network.close()


def _is_leader(url: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_LOOK)
    try:
        connection.request("GET", "/metrics")
        return _LEADER in connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
