"""An etcd of one member as a process of its own, on loopback, with its own data directory; for tests and for `fakeapiserver run --etcd`.

with EtcdProcess(find_etcd()) as etcd:
    client = Client.of([etcd.url])
    etcd.kill()   # as a power failure of the machine does, except that the page cache survives
    etcd.start()  # with the same data, at the same address
"""

import http.client
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fakeapiserver.cluster.processes.process import CommandLine, Process

# Names the program, unless an option does.
VARIABLE: Final = "FAKEAPISERVER_ETCD"
_HOST: Final = "127.0.0.1"
_VERSION: Final = re.compile(r"etcd Version: (\S+)")
# What `fakeapiserver envtest-assets` puts in the place of etcd.
_STAND_IN: Final = "fakeapiserver's stand-in"
_PAUSE: Final = 0.02
_LOOK: Final = 1.0
_LAST_LINES: Final = 5
# Another process may take the port between the choice and the start.
_ATTEMPTS: Final = 3


class NoEtcd(OSError):
    """There is no etcd to start, or it doesn't start. The text is one sentence."""


def find_etcd(binary: str = "") -> Path:
    """Returns the program `binary`, else what FAKEAPISERVER_ETCD names, else the `etcd` on the PATH. Raises NoEtcd."""
    named = binary or os.environ.get(VARIABLE, "")
    path = shutil.which(named or "etcd")
    if path is None and named:
        raise NoEtcd(f"there is no program {named!r}")
    if path is None:
        raise NoEtcd(
            f"there is no etcd on the PATH: install one (Debian's package is etcd-server), or name it by --etcd-binary or {VARIABLE}"
        )
    version_of(Path(path))
    return Path(path)


def version_of(binary: Path) -> str:
    """Returns the version of an etcd, e.g. 3.6.8. Raises NoEtcd if the program isn't one."""
    try:
        output = subprocess.run(
            [binary, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoEtcd(f"{binary} can't be run: {error}") from None
    match = _VERSION.search(output)
    if match is None:
        raise NoEtcd(f"{binary} is not an etcd: it doesn't report a version")
    if _STAND_IN in output:
        raise NoEtcd(f"{binary} is the stand-in of envtest-assets, which keeps nothing: name an etcd by {VARIABLE}")
    return match[1]


class EtcdProcess:
    """`data_dir` is kept, if it is named; else the data goes with `close`. Without `fsync`, which is much faster, acknowledged writes
    survive a kill but no power failure. `flags` are added to the command line."""

    def __init__(
        self, binary: Path, *, data_dir: Path | None = None, fsync: bool = True, flags: Sequence[str] = ()
    ) -> None:
        self.binary = binary
        client, peer = f"http://{_HOST}:{{port:client}}", f"http://{_HOST}:{{port:peer}}"
        words = [
            str(binary),
            f"--data-dir={data_dir or '{folder}/etcd'}",
            *(f"--{name}-client-urls={client}" for name in ("listen", "advertise")),
            *(f"--{name}-peer-urls={peer}" for name in ("listen", "initial-advertise")),
            f"--initial-cluster=default={peer}",
            f"--listen-metrics-urls=http://{_HOST}:{{port:metrics}}",
            *([] if fsync else ["--unsafe-no-fsync"]),
            *flags,
        ]
        # etcd takes options from the environment, which are meant for another one.
        others = {name: "" for name in os.environ if name.startswith("ETCD_") and name != "ETCD_UNSUPPORTED_ARCH"}
        self._command = CommandLine(words, others)
        self._process = Process(self._command)
        self._was_up = False  # from then on its address doesn't change

    @property
    def url(self) -> str:
        """The endpoint for clients, which stays the same after a restart."""
        return f"http://{_HOST}:{self._process.ports['client']}"

    @property
    def group(self) -> int | None:
        """The number of its process group, or None if it doesn't run."""
        return self._process.group

    def start(self, timeout: float = 30.0) -> None:
        """Returns when etcd serves requests. Raises NoEtcd with its last lines if it ends, or isn't ready within `timeout` seconds."""
        for attempt in range(1, _ATTEMPTS + 1):
            self._process.launch()
            if self._is_ready(time.monotonic() + timeout):
                self._was_up = True
                return
            self._process.kill()
            if self._was_up or attempt == _ATTEMPTS or "address already in use" not in self._process.output():
                raise self._failure()
            self._process.close()
            self._process = Process(self._command)

    def launch(self) -> None:
        """Starts etcd without waiting for it: a member isn't ready before others are there."""
        self._process.launch()

    def wait_until_ready(self, timeout: float = 30.0) -> None:
        """Waits until a launched etcd serves requests. Raises NoEtcd."""
        if not self._is_ready(time.monotonic() + timeout):
            raise self._failure()

    def _failure(self) -> NoEtcd:
        lines = self._process.output().splitlines()[-_LAST_LINES:]
        return NoEtcd(f"{self.binary} does not start; its last lines: " + " / ".join(lines))

    def _is_ready(self, deadline: float) -> bool:
        """Waits until etcd is healthy. False if it has ended, or the time is over."""
        while self._process.is_running and time.monotonic() < deadline:
            if self.is_healthy():
                return True
            time.sleep(_PAUSE)
        return False

    def is_healthy(self) -> bool:
        """Reports whether etcd has a leader and can read."""
        connection = http.client.HTTPConnection(_HOST, self._process.ports["metrics"], timeout=_LOOK)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def log(self) -> str:
        """The end of its output (4 MiB), of all its starts."""
        return self._process.output()

    def kill(self) -> None:
        """Kills it at once. Its data stays."""
        self._process.kill()

    def stop(self) -> None:
        """Asks it to end, and kills it after five seconds. Its data stays."""
        self._process.stop()

    def pause(self) -> None:
        """Stops it where it is (SIGSTOP): connections stay open, and nothing is answered."""
        self._process.pause()

    def resume(self) -> None:
        """Lets it go on."""
        self._process.resume()

    def close(self) -> None:
        """Kills it, and removes its data unless `data_dir` was named."""
        self._process.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
