"""The servers that are killed: processes of `fakeapiserver serve`, and what their stores contain afterwards."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.robustness.client import NAMESPACE, Client, Credentials
from conformance.robustness.history import Logged
from fakeapiserver.storage.file.database import NAME, Database
from fakeapiserver.transport.free_ports import free_port

_PREFIX: Final = f"/registry/configmaps/{NAMESPACE}/"


class FileServer:
    """A server with a data directory in `folder`. `bug`: one of planted.BUGS, which it has then."""

    def __init__(self, folder: Path, sync: str = "full", bug: str = "") -> None:
        self._folder = folder
        self._sync = sync
        self._bug = bug
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    def start(self) -> Credentials:
        """Returns when it is ready. Raises RuntimeError with its complaint if it doesn't start."""
        self.kubeconfig.unlink(missing_ok=True)
        module = ["conformance.robustness.planted", self._bug] if self._bug else ["fakeapiserver"]
        options = [f"--data-dir={self._folder / 'data'}", f"--sync={self._sync}", f"--secure-port={self._port}"]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                *module,
                "serve",
                "--controllers=",
                f"--write-kubeconfig={self.kubeconfig}",
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if "is ready" not in self._process.stdout.readline():
            _, complaint = self._process.communicate()
            raise RuntimeError(complaint.strip())
        return Credentials(self.kubeconfig)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def stop(self) -> None:
        """Ends it as a user does."""
        assert self._process is not None
        self._process.terminate()
        self._process.communicate()

    def log(self, after: int) -> list[Logged]:
        """The revisions after one, while it doesn't run. A copy is read, so that the next start recovers the file itself."""
        with tempfile.TemporaryDirectory() as copy:
            for path in (self._folder / "data").glob(f"{NAME}*"):
                shutil.copy(path, copy)
            with Database(Path(copy), "off") as database:
                return [*_logged(database, after)]


def _logged(database: Database, after: int) -> Iterator[Logged]:
    for row in database.rows(after):
        name = row.key.removeprefix(_PREFIX) if row.key.startswith(_PREFIX) else ""
        value = json.loads(row.value).get("data", {}).get("value", "") if name else ""
        yield Logged(row.revision, name, value, row.previous, bool(row.deleted))


def prepare(credentials: Credentials) -> int:
    """Makes the namespace of the traffic. Returns the revision from which the history counts."""
    client = Client(credentials)
    status, made = client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    assert status == 201, made
    client.close()
    return int(made["metadata"]["resourceVersion"])


def compact(credentials: Credentials, revision: int) -> None:
    """Forgets the history up to a revision, as a compaction does."""
    client = Client(credentials)
    client.ask("POST", "/fakeapiserver/compact", {"revision": revision})
    client.close()
