"""Keeps a test run away from the user's own clusters: outside of `fake_cluster`, clients find a kubeconfig that leads nowhere."""

import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fakeapiserver.testing.environment import Environment, point_at
from fakeapiserver.testing.loaded_clients import loaded_clients

CONTEXT: Final = "no-cluster-outside-of-fake_cluster"


class Guard:
    """Call order: `begin()`, any number of `lifted()`, `end()`. A second `begin()` does nothing."""

    def __init__(self) -> None:
        self._own: Environment | None = None
        self._port: socket.socket | None = None
        self._folder: Path | None = None

    @property
    def active(self) -> bool:
        return self._own is not None

    def begin(self) -> None:
        """Points every client at a closed port."""
        if self.active:
            return
        self._own = Environment.current()
        loaded_clients.find()
        self._folder = Path(tempfile.mkdtemp(prefix="fakeapiserver-guard-"))
        self._port = _closed_port()
        kubeconfig = self._folder / "kubeconfig"
        kubeconfig.write_text(_leads_nowhere(self._port.getsockname()[1]), encoding="utf-8")
        point_at(str(kubeconfig))

    def end(self) -> None:
        """Gives the process its own environment back and removes the kubeconfig."""
        if self._own is None or self._port is None or self._folder is None:
            return
        self._own.restore()
        self._port.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._own = self._port = self._folder = None

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Gives the process its own environment back as long as the block runs. What the block changes in it is there again in
        the next block, so that a fixture can set KUBECONFIG for its tests."""
        if self._own is None:
            yield
            return
        guarded = Environment.current()
        self._own.restore()
        try:
            yield
        finally:
            self._own = Environment.current()
            guarded.restore()


def _closed_port() -> socket.socket:
    """A port that refuses connections: the socket is bound, so that no other process gets the port, but doesn't listen."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def _leads_nowhere(port: int) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": {"server": f"https://127.0.0.1:{port}"}}],
        "users": [{"name": CONTEXT, "user": {"token": CONTEXT}}],  # without credentials, kubectl asks for a password
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    }
    return json.dumps(config, indent=2) + "\n"
