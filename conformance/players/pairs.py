"""API servers with a controller manager beside them: real ones and ours, in each combination."""

import os
import ssl
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from conformance.bench.clients.__main__ import write_kubeconfig
from conformance.bench.servers import Ours, Reference, Server, end, free_port, make_keys, rss_of

# What a script's pods, which no kubelet has, would fall victim to.
WITHOUT_NODES: Final = "--controllers=*,-nodelifecycle,-podgc"
# Servers need the gate too: with it they have the role of the controller's account.
# What all scripts of controllers need: those that are off by default, a gate, and JSON, as the migrations' API is a definition. On a
# machine that is too busy a manager that has to renew a lease loses it, the real one too.
GATES: Final = ("--feature-gates=StorageVersionMigrator=true",)
FOR_SCRIPTS: Final = (
    *GATES,
    "--leader-elect=false",
    "--controllers=*,selinux-warning-controller,bootstrap-signer-controller,token-cleaner-controller,-nodelifecycle",
    "--kube-api-content-type=application/json",
)


@dataclass
class Manager:
    """A kube-controller-manager of the server at `url`, `kind` "real" or "ours", with these flags.

    `folder` gets its kubeconfig, `kubeconfig`, and its log, `manager.log`. `key` signs service accounts' tokens; None: a new one does.
    """

    kind: str
    assets: Path
    folder: Path
    flags: Sequence[str] = ()
    key: Path | None = None
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, url: str) -> None:
        config = write_kubeconfig(self.folder, url)
        parts = urlsplit(url)
        authority = self.folder / "ca.crt"
        authority.write_text(ssl.get_server_certificate((str(parts.hostname), int(parts.port or 443))))
        if self.key is None:
            make_keys(self.folder)
        program = (
            [str(self.assets / "kube-controller-manager")]
            if self.kind == "real"
            else [sys.executable, "-m", "fakeapiserver", "controller-manager"]
        )
        flags = [
            f"--kubeconfig={config}",
            f"--secure-port={free_port()}",
            f"--root-ca-file={authority}",
            f"--service-account-private-key-file={self.key or self.folder / 'sa.key'}",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            *self.flags,
        ]
        with (self.folder / "manager.log").open("wb") as log:
            self.processes = [
                subprocess.Popen(
                    [*program, *flags], cwd=self.folder, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ)
                )
            ]

    def check(self) -> None:
        """RuntimeError with its last words, when it has ended."""
        if self.processes[0].poll() is not None:
            log = (self.folder / "manager.log").read_text(errors="replace")
            raise RuntimeError(f"the {self.kind} manager has ended:\n{log[-2000:]}")

    def stop(self) -> None:
        end(self.processes)


@dataclass
class Pair:
    """`server` and `manager`: "real" or "ours". `flags` are the manager's, which both have, `server_flags` the server's."""

    assets: Path
    server: str
    manager: str
    flags: Sequence[str] = (WITHOUT_NODES,)
    server_flags: Sequence[str] = ()
    _server: Server | None = None
    _manager: Manager | None = None
    _folder: TemporaryDirectory[str] | None = None

    @property
    def name(self) -> str:
        return f"{self.server} server, {self.manager} manager"

    @property
    def url(self) -> str:
        assert self._server is not None
        return self._server.url

    @property
    def folder(self) -> Path:
        """Has the manager's kubeconfig, `kubeconfig`, and its log, `manager.log`."""
        assert self._folder is not None
        return Path(self._folder.name)

    def start(self) -> None:
        self._folder = TemporaryDirectory()
        found: Server = (
            Reference(self.assets, flags=self.server_flags)
            if self.server == "real"
            else Ours(flags=["--controllers=none", *self.server_flags])
        )
        self._server = found
        found.start()
        self._manager = Manager(self.manager, self.assets, self.folder, self.flags)
        self._manager.start(found.url)

    def check(self) -> None:
        """RuntimeError with its last words, when the manager has ended."""
        assert self._manager is not None
        self._manager.check()

    def refusals(self) -> list[str]:
        """Lines of the manager's log about what it mayn't do."""
        log = (self.folder / "manager.log").read_text(errors="replace")
        return [line for line in log.splitlines() if "forbidden: User" in line]

    def stop(self) -> None:
        if self._manager is not None:
            self._manager.stop()
        if self._server is not None:
            self._server.stop()
        if self._folder is not None:
            self._folder.cleanup()

    def rss_bytes(self) -> int:
        """Returns the resident memory of both processes."""
        assert self._server is not None
        assert self._manager is not None
        return self._server.rss_bytes() + rss_of(self._manager.processes)
