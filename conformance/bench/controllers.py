"""`python -m conformance.bench.controllers --assets DIR`: a large deployment beside the real pair.

A deployment of many pods is scaled up, rolled to another image, and deleted, here and with kube-apiserver, its etcd and
kube-controller-manager, one after the other. Neither has nodes: this program marks pods ready, as a kubelet would, in the same way on both.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from conformance.bench.beside import beside
from conformance.bench.clients.__main__ import write_kubeconfig
from conformance.bench.servers import TOKEN, Ours, Reference, end, rss_of
from conformance.exchange import Client

_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_PODS: Final = "/api/v1/namespaces/default/pods"
_MARKERS: Final = 4
_MAX_SECONDS: Final = 900.0
_READY: Final = {
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ],
    }
}
ROWS: Final = (
    ("scaled up", "s"),
    ("rolled", "s"),
    ("scaled to zero", "s"),
    ("memory", "MiB"),
)


@dataclass
class RealPair(Reference):
    """With its controller manager."""

    name: str = "kube-apiserver + etcd + kube-controller-manager"
    _managers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        super().start()
        assert self._folder is not None
        config = write_kubeconfig(Path(self._folder.name), self.url)
        command = [
            str(self.assets / "kube-controller-manager"),
            f"--kubeconfig={config}",
            "--leader-elect=false",
            "--secure-port=0",
            "--controllers=*,-node-lifecycle-controller,-pod-garbage-collector-controller",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            "--service-account-private-key-file=sa.key",
        ]
        self._managers = [
            subprocess.Popen(
                command,
                cwd=self._folder.name,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(os.environ),
            )
        ]

    def stop(self) -> None:
        end(self._managers)
        super().stop()

    def rss_bytes(self) -> int:
        return super().rss_bytes() + rss_of(self._managers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--assets", type=Path, help="folder with the real binaries; without it only this server is measured"
    )
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    servers: list[Ours | RealPair] = [Ours(flags=["--controllers=*", "--disable-admission-plugins=ServiceAccount"])]
    if arguments.assets is not None:
        servers.append(RealPair(arguments.assets))
    figures: dict[str, dict[str, float]] = {}
    for server in servers:
        server.start()
        try:
            figures[server.name] = measured(server, arguments.pods)
        finally:
            server.stop()
    if arguments.output == "json":
        print(json.dumps(figures, indent=1))
        return 0
    names = [*figures]
    print(f"| {arguments.pods} pods | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for row, unit in ROWS:
        print(f"| {row} | " + " | ".join(f"{figures[name][row]:.1f} {unit}" for name in names) + " |")
    return 0


def measured(server: Ours | RealPair, pods: int) -> dict[str, float]:
    """Seconds of each phase, and the most memory in MiB."""
    client = Client(server.url, TOKEN)
    found: dict[str, float] = {}
    with _marking(server.url), _watching_memory(server, found):
        _wait(lambda: _ask(client, "GET", "/api/v1/namespaces/default/serviceaccounts/default").get("kind") is not None)
        _ask(client, "POST", _DEPLOYMENTS, _deployment(0))
        for phase, body, done in (
            ("scaled up", {"spec": {"replicas": pods}}, lambda status: status.get("readyReplicas") == pods),
            (
                "rolled",
                {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}}},
                lambda status: (
                    status.get("updatedReplicas") == status.get("replicas") == pods == status.get("readyReplicas")
                ),
            ),
            ("scaled to zero", {"spec": {"replicas": 0}}, lambda status: not status.get("replicas")),
        ):
            _say(f"{server.name}: {phase}")
            start = time.monotonic()
            generation = _ask(client, "PATCH", f"{_DEPLOYMENTS}/web", body)["metadata"]["generation"]
            _wait(lambda done=done, generation=generation: _holds(client, generation, done))  # type: ignore[misc]
            if phase == "scaled to zero":
                _wait(lambda: not _ask(client, "GET", f"{_PODS}?limit=1").get("items"))
            found[phase] = time.monotonic() - start
    return found


def _holds(client: Client, generation: int, done: Callable[[dict[str, Any]], bool]) -> bool:
    status: dict[str, Any] = _ask(client, "GET", f"{_DEPLOYMENTS}/web").get("status", {})
    return status.get("observedGeneration") == generation and done(status)


def _deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@contextmanager
def _marking(url: str) -> Iterator[None]:
    """Marks pods ready as long as it is entered: those that aren't, found by a list every tenth of a second."""
    client, local = Client(url, TOKEN), threading.local()

    def mark(name: str) -> None:
        if not hasattr(local, "client"):
            local.client = Client(url, TOKEN)
        _ask(local.client, "PATCH", f"{_PODS}/{name}/status", _READY)

    def look() -> None:
        pending = _ask(client, "GET", f"{_PODS}?fieldSelector=status.phase%3DPending").get("items", [])
        names = [pod["metadata"]["name"] for pod in pending if "deletionTimestamp" not in pod["metadata"]]
        list(pool.map(mark, names))

    with ThreadPoolExecutor(_MARKERS) as pool, beside(look, 0.1):
        yield


def _watching_memory(server: Ours | RealPair, found: dict[str, float]) -> AbstractContextManager[None]:
    """The most there was, in MiB."""

    def look() -> None:
        found["memory"] = max(found.get("memory", 0.0), server.rss_bytes() / 2**20)

    return beside(look, 0.5)


def _wait(holds: Callable[[], bool]) -> None:
    """TimeoutError after a quarter of an hour."""
    deadline = time.monotonic() + _MAX_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it took more than {_MAX_SECONDS:.0f} s")
        time.sleep(0.1)


def _ask(client: Client, method: str, path: str, body: object = None) -> dict[str, Any]:
    request: dict[str, Any] = {"method": method, "path": path}
    if body is not None:
        request["body"] = body
    if method == "PATCH":
        request["type"] = "application/strategic-merge-patch+json"
    found: dict[str, Any] = client.send(request, []).get("body") or {}
    return found if found.get("kind") != "Status" else {}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


__all__: Sequence[str] = ("RealPair", "main", "measured")


if __name__ == "__main__":
    sys.exit(main())
