"""`python -m conformance.bench.simulation --pods 1000 --nodes 10`: deployments on simulated nodes, until all their pods are ready.

A client in this process reads an object again and again meanwhile: its latency shows how long the server is busy without looking at
its sockets. KWOK publishes 20 objects per second for the same work.
"""

import argparse
import json
import statistics
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Final

from conformance.bench.beside import beside
from conformance.bench.servers import TOKEN, Ours
from conformance.exchange import Client

_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_PROBED: Final = "/api/v1/namespaces/default"
_PROBE_SECONDS: Final = 0.02
_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Figures:
    """`start_seconds`: until the server and its nodes were ready. `ready`: pods that were ready at the end. `seconds`, `cpu_seconds`: from
    the first deployment until then, wall time and the server's processor time. `bytes_per_pod`: growth of the resident memory.
    Latencies are those of GETs, in milliseconds.
    """

    pods: int
    nodes: int
    deployments: int
    ready: int
    start_seconds: float
    seconds: float
    cpu_seconds: float
    cpu_ms_per_pod: float
    resident_mib: float
    bytes_per_pod: float
    get_p50_ms: float
    get_p99_ms: float
    get_max_ms: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=1000, help="default 1000")
    parser.add_argument("--nodes", type=int, default=10, help="default 10")
    parser.add_argument("--deployments", type=int, default=10, help="how many share the pods (default 10)")
    parser.add_argument("--seconds", type=float, default=600.0, help="when to give up (default 600)")
    parser.add_argument(
        "--flag", action="append", default=[], help="a flag of the server, e.g. --flag=--data-dir=DIR; may be repeated"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    flags = [f"--nodes={arguments.nodes}", "--controllers=*", *arguments.flag]
    server = Ours(flags=flags, ready_within=arguments.seconds)
    try:
        server.start()
        figures = measured(server, arguments)
    finally:
        server.stop()
    if arguments.output == "json":
        print(json.dumps(asdict(figures)))
    else:
        for name, value in asdict(figures).items():
            print(f"{name:<16}{value:>12,.2f}" if isinstance(value, float) else f"{name:<16}{value:>12,}")
    return 0 if figures.ready == arguments.pods else 1


def measured(server: Ours, arguments: argparse.Namespace) -> Figures:
    """Creates the deployments, and waits for their pods. The server is ready when its nodes are."""
    client = Client(server.url, TOKEN)
    started, processor, resident = time.monotonic(), server.cpu_seconds(), server.rss_bytes()
    latencies: list[float] = []
    with _probing(server.url, latencies):
        each, more = divmod(arguments.pods, arguments.deployments)
        for number in range(arguments.deployments):
            _body(client, "POST", _DEPLOYMENTS, _deployment(f"web-{number}", each + (number < more)))
        ready = 0
        while ready < arguments.pods and time.monotonic() < started + arguments.seconds:
            time.sleep(_POLL_SECONDS)
            ready = _ready_pods(client)
            print(f"{time.monotonic() - started:.1f} s: {ready} pods are ready", file=sys.stderr, flush=True)
    seconds, processor = time.monotonic() - started, server.cpu_seconds() - processor
    grown = server.rss_bytes() - resident
    latencies.sort()
    return Figures(
        pods=arguments.pods,
        nodes=arguments.nodes,
        deployments=arguments.deployments,
        ready=ready,
        start_seconds=server.ready_seconds,
        seconds=seconds,
        cpu_seconds=processor,
        cpu_ms_per_pod=processor * 1000 / max(ready, 1),
        resident_mib=server.rss_bytes() / 2**20,
        bytes_per_pod=grown / max(ready, 1),
        get_p50_ms=statistics.median(latencies),
        get_p99_ms=latencies[int(len(latencies) * 0.99)],
        get_max_ms=latencies[-1],
    )


def _ready_pods(client: Client) -> int:
    return sum(row.get("status", {}).get("readyReplicas", 0) for row in _body(client, "GET", _DEPLOYMENTS)["items"])


def _deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _probing(url: str, latencies: list[float]) -> AbstractContextManager[None]:
    """Adds the latency of one GET after the other, in milliseconds, as long as it is entered."""
    client = Client(url, TOKEN)

    def probe() -> None:
        begun = time.perf_counter()
        _body(client, "GET", _PROBED)
        latencies.append((time.perf_counter() - begun) * 1000)

    return beside(probe, _PROBE_SECONDS)


def _body(client: Client, method: str, path: str, body: object = None) -> dict[str, Any]:
    """The answer's body. Raises RuntimeError if the server refuses the request."""
    request = {"method": method, "path": path, **({} if body is None else {"body": body})}
    answer = client.send(request, [])
    if answer["status"] >= 300:
        raise RuntimeError(f"{method} {path}: {answer}")
    found: dict[str, Any] = answer["body"]
    return found


if __name__ == "__main__":
    sys.exit(main())
