"""Several servers on one etcd, of one member or three."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from conformance.robustness import disks
from conformance.robustness.client import Credentials
from conformance.robustness.etcd_log import EtcdLog
from conformance.robustness.history import Logged
from conformance.robustness.members import Members
from conformance.robustness.proxy import Proxy
from conformance.robustness.servers import OurServer, RealServer, Server

# Seconds for which a process is stopped where it is, or a network is cut or slow; a leader is missed after a little more than one second.
_PAUSE: Final = 1.0
_ELECTION: Final = 4.0
# Seconds for which a slow network holds each piece back, and a slow disk each fsync.
_DELAYS: Final = (0.02, 0.3)
_DISK_DELAYS: Final = (0.02, 0.2)
# Seconds for which requests arrive whose answers don't.
_DEAF: Final = 0.05
_DEAF_TIMES: Final = 8
# More revisions than etcd sends at once to a watch that is behind.
_BURST: Final = 2500
_EVENT_TTL: Final = 20
_SMALL: Final = 400 << 20
_COMMON: Final = ("--storage-media-type=application/json", "--etcd-compaction-interval=0", f"--event-ttl={_EVENT_TTL}s")

_Disturbance = Callable[[random.Random], None]


class Options(Struct, frozen=True):
    """`servers` of this project, of which each has `bug`, and a real one whose program is in the folder `real`."""

    servers: int = 2
    members: int = 1
    bug: str = ""
    real: Path | None = None
    on_small_disk: bool = False


class EtcdServers:
    """Each server has a network of its own to each member of etcd."""

    expiry = float(_EVENT_TTL)

    def __init__(self, folder: Path, options: Options) -> None:
        self._folder = folder
        self._options = options
        self._disk = folder / "disk"
        self._disk.mkdir()
        if options.on_small_disk:
            disks.mount(self._disk, options.members * _SMALL)
        self._etcd = Members(self._disk, options.members)
        self._servers: list[Server] = []
        self._networks: list[list[Proxy]] = []
        self._log: EtcdLog | None = None

    def start(self) -> Sequence[Credentials]:
        self._etcd.start()
        ports = [int(url.rpartition(":")[2]) for url in self._etcd.urls]
        options = self._options
        for number in range(options.servers + (options.real is not None)):
            networks = [Proxy(port) for port in ports]
            self._networks.append(networks)
            urls = ",".join(network.url for network in networks)
            if number < options.servers:
                certificates = self._folder / f"certificates{number}"  # the same ones after a restart
                own = [f"--etcd-servers={urls}", f"--cert-dir={certificates}", *_COMMON]
                self._servers.append(OurServer(self._folder / f"kubeconfig{number}", own, options.bug))
            elif options.real is not None:
                self._servers.append(RealServer(options.real, self._folder / f"real{number}", urls, _COMMON))
        return [server.start() for server in self._servers]

    def follow(self, since: int) -> None:
        self._log = EtcdLog(self._etcd.urls, since)

    def compact_every(self, seconds: float) -> None:
        assert self._log is not None
        self._log.compact_every(seconds)

    def log(self) -> list[Logged]:
        assert self._log is not None
        self._log.complete()
        return self._log.entries

    def stop(self) -> None:
        if self._log is not None:
            self._log.close()
        for server in self._servers:
            server.close()
        for networks in self._networks:
            for network in networks:
                network.close()
        self._etcd.close()
        if self._options.on_small_disk:
            disks.unmount(self._disk)

    # ----------------------------------------------------------- disturbances

    @property
    def disturbances(self) -> Mapping[str, _Disturbance]:
        possible: dict[str, _Disturbance] = {
            "a server is killed": self._kill_server,
            "a server is stopped": self._stop_server,
            "all servers and etcd are killed": self._kill_everything,
            "a network is cut": self._cut,
            "a network is cut while much is written": self._miss_much,
            "a network is slow": self._slow_network,
            "a network loses answers": self._lose_answers,
        }
        if self._options.members == 1:
            possible |= {
                "etcd is killed": self._member(is_leader=True, hinder=self._kill),
                "etcd is killed and the log's end is torn": self._member(is_leader=True, hinder=self._tear),
                "etcd is stopped": self._member(is_leader=True, hinder=self._stop),
            }
        else:
            for who, is_leader in (("the leader", True), ("a follower", False)):
                possible |= {
                    f"{who} is killed": self._member(is_leader=is_leader, hinder=self._kill),
                    f"{who} is stopped": self._member(is_leader=is_leader, hinder=self._stop_until_election),
                    f"{who} is parted": self._member(is_leader=is_leader, hinder=self._part),
                }
        if disks.has_strace():
            possible["a disk is slow"] = self._member(is_leader=True, hinder=self._slow_disk)
        if self._options.on_small_disk:
            possible["the disk is full"] = self._fill
        return possible

    def _member(self, *, is_leader: bool, hinder: Callable[[int, random.Random], None]) -> _Disturbance:
        return lambda chance: hinder(self._etcd.choose(chance, is_leader=is_leader), chance)

    def _kill_server(self, chance: random.Random) -> None:
        server = chance.choice(self._servers)
        server.kill()
        server.start()

    def _stop_server(self, chance: random.Random) -> None:
        server = chance.choice(self._servers)
        server.pause()
        time.sleep(_PAUSE)
        server.resume()

    def _kill_everything(self, _: random.Random) -> None:
        for process in self._etcd.processes:
            process.kill()
        for server in self._servers:
            server.kill()
        self._etcd.start()
        for server in self._servers:
            server.start()

    def _kill(self, number: int, _: random.Random) -> None:
        self._etcd.processes[number].kill()
        if len(self._etcd.processes) > 1:
            time.sleep(_PAUSE)  # the others go on
        self._etcd.restart(number)

    def _tear(self, number: int, chance: random.Random) -> None:
        self._etcd.processes[number].kill()
        disks.tear_etcd(self._etcd.folders[number], chance)
        self._etcd.restart(number)

    def _stop(self, number: int, _: random.Random, seconds: float = _PAUSE) -> None:
        self._etcd.processes[number].pause()
        time.sleep(seconds)
        self._etcd.processes[number].resume()

    def _stop_until_election(self, number: int, chance: random.Random) -> None:
        self._stop(number, chance, _ELECTION)

    def _part(self, number: int, _: random.Random) -> None:
        self._etcd.part(number)
        time.sleep(_ELECTION)
        self._etcd.join()

    def _cut(self, chance: random.Random) -> None:
        networks = chance.choice(self._networks)
        for network in networks:
            network.cut()
        time.sleep(_PAUSE)
        for network in networks:
            network.mend()

    def _miss_much(self, chance: random.Random) -> None:
        assert self._log is not None
        networks = chance.choice(self._networks)
        for network in networks:
            network.cut()
        self._log.burst(_BURST)
        for network in networks:
            network.mend()

    def _slow_network(self, chance: random.Random) -> None:
        networks = chance.choice(self._networks)
        for network in networks:
            network.delay = chance.uniform(*_DELAYS)
        time.sleep(_PAUSE)
        for network in networks:
            network.mend()

    def _lose_answers(self, chance: random.Random) -> None:
        networks = chance.choice(self._networks)
        for _ in range(_DEAF_TIMES):  # only transactions that are just on their way are hit
            for network in networks:
                network.is_deaf = True
            time.sleep(_DEAF)
            for network in networks:
                network.cut()
                network.mend()
            time.sleep(_PAUSE / _DEAF_TIMES)

    def _slow_disk(self, number: int, chance: random.Random) -> None:
        process = self._etcd.processes[number].group
        if process is not None:
            disks.slow(process, _PAUSE, chance.uniform(*_DISK_DELAYS))

    def _fill(self, _: random.Random) -> None:
        """etcd ends when it can't write its log."""
        ballast = disks.fill(self._disk)
        time.sleep(_PAUSE)
        ballast.unlink()
        for number, process in enumerate(self._etcd.processes):
            if not process.is_running:
                self._etcd.restart(number)
