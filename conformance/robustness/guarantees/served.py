"""A server of this project for as long as a block, and what its process uses (Linux)."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from conformance.robustness.client import Client, Credentials
from conformance.robustness.servers import OurServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_PAGE = 4096


class Served(Struct, frozen=True):
    """process: the server's number."""

    credentials: Credentials
    kubeconfig: Path
    process: int

    def client(self) -> Client:
        return Client(self.credentials)

    def memory(self) -> int:
        """Returns the bytes of memory that the server has (its resident set)."""
        return int(Path(f"/proc/{self.process}/statm").read_text().split()[1]) * _PAGE

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process}/fd").iterdir()))

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process}/task").iterdir()))


@contextmanager
def served(flags: Sequence[str] = ()) -> Iterator[Served]:
    """Raises RuntimeError if the server doesn't start."""
    with tempfile.TemporaryDirectory(prefix="guarantees-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        server = OurServer(kubeconfig, flags)
        try:
            credentials = server.start()
            assert server.group is not None
            yield Served(credentials, kubeconfig, server.group)
        finally:
            server.close()


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
