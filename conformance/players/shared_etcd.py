"""API servers on one etcd, real ones and ours, and a client whose requests go to each in turn."""

import argparse
import os
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from conformance.bench.servers import Ours, Reference, Server, end, etcd_command, free_port, make_keys
from conformance.exchange import Answer, Client

REAL, OURS = "real", "ours"
# Names the folder with etcd and kube-apiserver.
ASSETS: Final = "KUBEBUILDER_ASSETS"
# Seconds within which etcd has to be ready, and between two looks at it.
_START: Final = 30.0
_LOOK: Final = 0.05
# Flags of the servers that the exchanges were recorded from, which are defaults of ours.
_AS_RECORDED: Final = ("--allow-privileged", "--authorization-mode=Node,RBAC")


def kinds(text: str) -> list[str]:
    """Reads `real,ours`. ArgumentTypeError for other words."""
    words = text.split(",")
    if not set(words) <= {REAL, OURS}:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of {REAL!r} and {OURS!r}, separated by commas")
    return words


@dataclass
class SharedEtcd:
    """`kinds`: REAL or OURS for each server. `flags` are those of all servers, `own_flags` those of ours alone.

    All of them sign and accept service accounts' tokens with the same key. `assets` has etcd and, for real servers, kube-apiserver.
    """

    kinds: Sequence[str]
    assets: Path
    flags: Sequence[str] = ()
    own_flags: Sequence[str] = ()
    servers: list[Server] = field(default_factory=list)
    etcd_url: str = ""
    _etcd: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _folder: TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Starts etcd, then each server once the one before is ready. Raises RuntimeError if one doesn't start."""
        self._folder = TemporaryDirectory()
        make_keys(self.keys)
        port = free_port()
        self.etcd_url = f"http://127.0.0.1:{port}"
        command = etcd_command(self.assets / "etcd", port)
        self._etcd.append(
            subprocess.Popen(
                command, cwd=self.keys, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
            )
        )
        _wait_healthy(self.etcd_url)
        for kind in self.kinds:
            server = self._new(kind)
            self.servers.append(server)
            server.start()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()
        self.servers.clear()
        end(self._etcd)
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def keys(self) -> Path:
        """The folder with `sa.key` and `sa.pub`."""
        assert self._folder is not None
        return Path(self._folder.name)

    def _new(self, kind: str) -> Server:
        if kind == REAL:
            flags = [*_unless_given(_AS_RECORDED, self.flags), *self.flags]
            return Reference(self.assets, flags=flags, etcd=self.etcd_url, keys=self.keys)
        keys = [
            f"--service-account-signing-key-file={self.keys / 'sa.key'}",
            f"--service-account-key-file={self.keys / 'sa.pub'}",
        ]
        return Ours(flags=[f"--etcd-servers={self.etcd_url}", *keys, *self.flags, *self.own_flags])


def _unless_given(flags: Sequence[str], given: Sequence[str]) -> list[str]:
    """The flags without those that are given."""
    names = {flag.partition("=")[0] for flag in given}
    return [flag for flag in flags if flag.partition("=")[0] not in names]


def _wait_healthy(url: str) -> None:
    deadline = time.monotonic() + _START
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=_START):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the etcd at {url} doesn't start") from None
            time.sleep(_LOOK)


@dataclass(slots=True, kw_only=True)
class Alternating(Client):
    """Sends the requests of a scenario to each of several servers in turn, beginning with the one at `first`.

    `pause`: seconds to wait before each request, for what servers learn from each other only by watching.
    """

    clients: Sequence[Client]
    first: int = 0
    pause: float = 0.0

    def send(self, request: Mapping[str, Any], answers: Sequence[Answer]) -> Answer:
        if self.pause:
            time.sleep(self.pause)
        return self.clients[(self.first + len(answers)) % len(self.clients)].send(request, answers)
