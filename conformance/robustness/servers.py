"""The processes that are disturbed: API servers, of this project or a real kube-apiserver."""

import http.client
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import yaml

from conformance.bench.servers import make_keys
from conformance.robustness.client import Credentials
from fakeapiserver.cluster.processes.process import CommandLine, Process

# Seconds within which a server is ready, and between two looks at it.
_START: Final = 180.0
_LOOK: Final = 0.02
_TOKEN: Final = "robustness"
_HOST: Final = "127.0.0.1"
_LAST_LINES: Final = 3


class Server(Protocol):
    """A process that serves the API."""

    @property
    def group(self) -> int | None:
        """The number of its process, or None if it doesn't run."""

    def start(self) -> Credentials:
        """Returns when it is ready, at the same address after a restart. Raises RuntimeError with its complaint if it doesn't start."""

    def kill(self) -> None:
        """Kills it at once."""

    def pause(self) -> None:
        """Stops it where it is."""

    def resume(self) -> None:
        """Lets it go on."""

    def close(self) -> None:
        """Kills it, and leaves nothing behind."""


class _Program(Process):
    """A program whose last lines explain its end."""

    def _last_words(self) -> str:
        return " / ".join(self.output().splitlines()[-_LAST_LINES:])


class OurServer(_Program):
    """`fakeapiserver serve` with these flags, which ends with this process; `bug`: one of planted.BUGS, which it has then."""

    def __init__(self, kubeconfig: Path, flags: Sequence[str], bug: str = "") -> None:
        self._kubeconfig = kubeconfig
        module = ["conformance.robustness.planted", bug] if bug else ["fakeapiserver"]
        common = ["serve", "--controllers=", f"--write-kubeconfig={kubeconfig}", "--secure-port={port}"]
        super().__init__(CommandLine([sys.executable, "-m", *module, *common, *flags]))

    def start(self) -> Credentials:
        self._kubeconfig.unlink(missing_ok=True)
        self.launch()
        deadline = time.monotonic() + _START
        while not self._kubeconfig.exists():  # it is written when the server is ready
            if self.ended is not None or time.monotonic() > deadline:
                raise RuntimeError(self._last_words())
            time.sleep(_LOOK)
        return Credentials(self._kubeconfig)


class RealServer(_Program):
    """The kube-apiserver of a folder, with its files in `folder`. Needs openssl."""

    def __init__(self, assets: Path, folder: Path, etcd_servers: str, flags: Sequence[str] = ()) -> None:
        folder.mkdir()
        self._kubeconfig = folder / "kubeconfig"
        make_keys(folder)
        tokens = folder / "tokens.csv"
        tokens.write_text(f"{_TOKEN},admin,1,system:masters\n")
        super().__init__(
            CommandLine(
                [
                    str(assets / "kube-apiserver"),
                    f"--etcd-servers={etcd_servers}",
                    "--secure-port={port}",
                    f"--bind-address={_HOST}",
                    f"--advertise-address={_HOST}",
                    f"--cert-dir={folder}",
                    f"--token-auth-file={tokens}",
                    "--authorization-mode=RBAC",
                    "--service-cluster-ip-range=10.96.0.0/16",
                    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                    f"--service-account-signing-key-file={folder / 'sa.key'}",
                    f"--service-account-key-file={folder / 'sa.pub'}",
                    *flags,
                ]
            )
        )

    def start(self) -> Credentials:
        self.launch()
        deadline = time.monotonic() + _START
        while not self._is_ready():
            if self.ended is not None or time.monotonic() > deadline:
                raise RuntimeError(self._last_words())
            time.sleep(5 * _LOOK)
        config = {
            "clusters": [{"cluster": {"server": f"https://{_HOST}:{self.ports['']}"}}],
            "users": [{"user": {"token": _TOKEN}}],
        }
        self._kubeconfig.write_text(yaml.safe_dump(config))
        return Credentials(self._kubeconfig)

    def _is_ready(self) -> bool:
        connection = http.client.HTTPSConnection(
            _HOST, self.ports[""], timeout=1, context=ssl._create_unverified_context()
        )
        try:
            connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {_TOKEN}"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
