"""Pods for programs: a program in one has a network of its own, in which all ports are free, and the files of a service account (Linux)."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.cluster.webhooks import WebhookAddress

# Run in a process of its own, since it changes the one in which it runs.
_SCRIPT: Final = str(Path(__file__).with_name("namespaces.py"))
_PYTHON: Final = (sys.executable, "-I", "-S", _SCRIPT)
_PLAN: Final = "pod.json"


class Pod(Struct, frozen=True):
    """`api_port`: the API server's port. `token`, `ca`, `namespace`: the files of its service account. `webhook_port`: the port on
    which the program serves webhooks; 0: the same as the cluster's. `sidecar`: a command that runs beside it."""

    api_port: int
    token: str
    ca: str
    namespace: str = "default"
    webhook_port: int = 0
    sidecar: Sequence[str] = ()

    def webhook_port_of(self, webhooks: WebhookAddress) -> int:
        """The port on which the program has to listen for webhooks."""
        return self.webhook_port or webhooks.port

    def words(self, folder: Path, webhooks: WebhookAddress | None) -> Sequence[str]:
        """The words that go before those of the program. Writes a file into the folder. Raises OSError."""
        plan = {
            "api_port": self.api_port,
            "webhooks": [webhooks.port, self.webhook_port_of(webhooks)] if webhooks is not None else [],
            "files": {"namespace": self.namespace, "token": self.token, "ca.crt": self.ca},
            "sidecar": self.sidecar,
        }
        path = folder / _PLAN
        path.write_text(json.dumps(plan), encoding="utf-8")
        return (*_PYTHON, str(path))

    @property
    def env(self) -> Mapping[str, str]:
        """The variables by which programs find the API server from a pod."""
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.api_port)}


@cache
def problem() -> str:
    """Why programs can't have pods on this machine, or ""."""
    if sys.platform != "linux":
        return f"only Linux has namespaces, and this is {sys.platform}"
    trial = subprocess.run(_PYTHON, capture_output=True, text=True, check=False)
    if trial.returncode == 0:
        return ""
    lines = trial.stderr.strip().splitlines() or [f"status {trial.returncode}"]
    return f"this machine doesn't allow namespaces without privileges ({lines[-1].removeprefix('isolate: ')})"
