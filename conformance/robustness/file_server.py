"""A server with a data directory."""

import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from conformance.robustness import disks
from conformance.robustness.client import LOST, Client, Credentials
from conformance.robustness.history import Logged
from conformance.robustness.kinds import read_object
from conformance.robustness.servers import OurServer
from fakeapiserver.storage.file.database import NAME, Database

# Seconds for which the server is stopped where it is, or its disk is slow or full.
_PAUSE: Final = 1.0
_DELAYS: Final = (0.01, 0.2)
# Bytes of a small disk.
_SMALL: Final = 24 << 20
# The history that is left if compactions are no part of the test: the log is read from the file after a kill.
_KEPT_REVISIONS: Final = 5000
_COMPACTION: Final = "/fakeapiserver/compact"


class FileServer:
    """A server with a data directory in `folder`, which is on a small disk if that is wanted."""

    expiry = 0.0

    def __init__(self, folder: Path, sync: str = "full", bug: str = "", *, on_small_disk: bool = False) -> None:
        self._disk = folder / "disk"
        if on_small_disk:
            disks.mount(self._disk, _SMALL)
        self._on_small_disk = on_small_disk
        self._data = self._disk / "data"
        self._sync = sync
        self._server = OurServer(folder / "kubeconfig", [f"--data-dir={self._data}", f"--sync={sync}"], bug)
        self._client: Client | None = None  # for compactions
        self._log: list[Logged] = []
        self._since = 0
        self._compacting: threading.Thread | None = None
        self._stopped = threading.Event()

    def start(self) -> Sequence[Credentials]:
        credentials = self._server.start()
        self._client = self._client or Client(credentials)
        return [credentials]

    def follow(self, since: int) -> None:
        self._since = since

    @property
    def disturbances(self) -> Mapping[str, Callable[[random.Random], None]]:
        possible = {
            "the server is killed": self._kill,
            "the server is killed and the log's end is torn": self._tear,
            "the server is stopped": self._stop_for_a_while,
        }
        if disks.has_strace():
            possible["the disk is slow"] = self._slow
        if self._on_small_disk:
            possible["the disk is full"] = self._fill
        return possible

    def _kill(self, _: random.Random) -> None:
        self._server.kill()
        self._read()
        self.start()
        if self._compacting is None:
            self._compact(_KEPT_REVISIONS)

    def _tear(self, chance: random.Random) -> None:
        self._server.kill()
        self._read()
        if self._sync == "full":  # else it isn't known what is in the file for good
            disks.tear_sqlite(self._data / f"{NAME}-wal", chance)
        self.start()

    def _stop_for_a_while(self, _: random.Random) -> None:
        self._server.pause()
        time.sleep(_PAUSE)
        self._server.resume()

    def _slow(self, chance: random.Random) -> None:
        if self._server.group is not None:
            disks.slow(self._server.group, _PAUSE, chance.uniform(*_DELAYS))

    def _fill(self, _: random.Random) -> None:
        ballast = disks.fill(self._disk)
        time.sleep(_PAUSE)
        ballast.unlink()

    def compact_every(self, seconds: float) -> None:
        self._compacting = threading.Thread(target=self._compact_often, args=(seconds,), daemon=True)
        self._compacting.start()

    def _compact_often(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            self._compact(0)

    def _compact(self, kept: int) -> None:
        """Forgets the history up to `kept` revisions before the end of the log."""
        revision = self._log[-1].revision - kept if self._log else 0
        if revision > self._since and self._client is not None:
            with suppress(*LOST):  # it was killed
                self._client.ask("POST", _COMPACTION, {"revision": revision})

    def log(self) -> list[Logged]:
        self._server.kill()
        self._read()
        return self._log

    def stop(self) -> None:
        self._stopped.set()
        if self._compacting is not None:
            self._compacting.join()
        if self._client is not None:
            self._client.close()
        self._server.close()
        if self._on_small_disk:
            disks.unmount(self._disk)

    def _read(self) -> None:
        """Reads the new revisions in a copy of the file, so that the next start recovers the file itself."""
        after = self._log[-1].revision if self._log else self._since
        with tempfile.TemporaryDirectory() as copy:
            for path in self._data.glob(f"{NAME}*"):
                shutil.copy(path, copy)
            with Database(Path(copy), "off") as database:
                self._log += _logged(database, after)


def _logged(database: Database, after: int) -> Iterator[Logged]:
    for row in database.rows(after):
        name, content = read_object(row.key, row.value)
        yield Logged(row.revision, name, content, row.previous, bool(row.deleted))
