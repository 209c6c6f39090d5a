"""A server of this project for as long as a block, and what its process uses (Linux)."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from conformance.bench.servers import resident_bytes
from conformance.robustness.client import PATIENCE, Client, Credentials
from conformance.robustness.servers import OurServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Served(Struct, frozen=True):
    """process: the server's number. output: returns what it has printed so far."""

    credentials: Credentials
    kubeconfig: Path
    process: int
    output: Callable[[], str]

    def client(self, patience: float = PATIENCE) -> Client:
        return Client(self.credentials, patience)

    def complaints(self) -> list[str]:
        """Returns the first lines of tracebacks that the server has printed."""
        return [line for line in self.output().splitlines() if "Traceback" in line or "was never retrieved" in line]

    def memory(self) -> int:
        """Returns the bytes of memory that the server has (its resident set)."""
        return resident_bytes(self.process)

    def forget_peak(self) -> None:
        """Begins to look for the peak again (Linux, proc_pid_clear_refs(5))."""
        Path(f"/proc/{self.process}/clear_refs").write_text("5")

    def peak(self) -> int:
        """Returns the most bytes of memory that the server has had since `forget_peak`."""
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process}/fd").iterdir()))

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process}/task").iterdir()))


@contextmanager
def served(flags: Sequence[str] = ()) -> Iterator[Served]:
    """Raises RuntimeError if the server doesn't start."""
    with tempfile.TemporaryDirectory(prefix="robustness-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        server = OurServer(kubeconfig, flags)
        try:
            credentials = server.start()
            assert server.group is not None
            yield Served(credentials, kubeconfig, server.group, server.output)
        finally:
            server.close()


def done(answer: tuple[int, Any], expected: int) -> Any:
    """Returns the object of an answer. Raises RuntimeError if its status is another one."""
    status, obj = answer
    if status != expected:
        raise RuntimeError(f"{status} {obj.get('message', '')}")
    return obj


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
