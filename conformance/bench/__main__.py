"""`python -m conformance.bench [--assets DIR]`: one table of ratios, this server beside kube-apiserver and etcd.

DIR holds `kube-apiserver` and `etcd` (a folder as envtest has it; KUBEBUILDER_ASSETS is the default). Without it only this
server's figures are printed. The load comes from a small Go program (bench/loader), built on the spot. The servers run one at
a time, in turn; each row is the median of the rounds.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from conformance.bench import custom, options, webhooks
from conformance.bench.building import build_loader
from conformance.bench.custom import Object
from conformance.bench.growth import __main__ as growth
from conformance.bench.requests import REQUESTS, load_of, requests
from conformance.bench.servers import (
    TOKEN,
    Ours,
    Reference,
    Server,
    admission_seconds,
    authorization_seconds,
    fresh_cluster_seconds,
)
from conformance.bench.table import Figures, Row, noter, report
from conformance.exchange import Client
from conformance.suites.operators import packages

ROWS: Final = (
    Row("ready", "command to ready", "s"),
    Row("cluster", "fresh Cluster() in a warm process", "ms"),
    Row("admit", "admission of a pod by the default plugins (processor time)", "us"),
    Row("authorize", "authentication and authorization with 500 roles and 5,000 bindings (processor time)", "us"),
    Row("whole_get", "... with the whole GET, without sockets", "us"),
    Row("refuse", "... with the whole 403", "us"),
    Row("review", "... with a whole SubjectAccessReview", "us"),
    Row("rss_idle", "memory, idle", "MiB"),
    Row("rss_full", "memory, 10,000 objects of 2 KB", "MiB"),
    *REQUESTS,
    Row("list", "list of 10,000", "ms"),
    Row("selector", "list of 10,000 by label (1,000 selected)", "ms"),
    Row("watch", "100 watchers x 300 events, all arrived", "s"),
    Row("watch_p50", "... from the write's beginning to the event, p50", "ms"),
    Row("deletecollection", "deletecollection of 10,000", "s"),
    Row("list_small", "list of 10,000 objects of 400 bytes", "ms"),
    Row("rss_small", "memory, 20,000 objects of 400 bytes", "MiB"),
    Row("webhook_call", "call of an admission webhook, beyond its own time, p50", "ms"),
    Row("custom_p50", "validate a custom object of 330 KB with rules, p50", "ms"),
    Row("definitions_apply", "apply operators' definitions (--definitions)", "s"),
    Row("definitions_served", "... until discovery lists the last", "s"),
    Row("definitions_apis", "/apis, aggregated, with them", "s"),
    Row("definitions_v3", "/openapi/v3 with them", "s"),
    Row("definitions_v2", "/openapi/v2 with them", "s"),
    Row("rss_definitions", "memory with them", "MiB"),
)


def main() -> int:
    if sys.argv[1:2] == ["growth"]:
        return growth.main(sys.argv[2:])
    if sys.argv[1:2] == ["options"]:
        return options.main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    parser.add_argument("--assets", type=Path, default=Path(assets) if assets else None)
    parser.add_argument("--rounds", type=int, default=3, help="how often each server runs (default 3)")
    parser.add_argument("--objects", type=int, default=10_000, help="objects for the large rows (default 10000)")
    parser.add_argument(
        "--definitions",
        type=int,
        default=200,
        help="how many operators' definitions to apply (default 200; 0 for none)",
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    servers: list[Server] = [Ours()] + ([Reference(arguments.assets)] if arguments.assets else [])
    figures: dict[str, Figures] = {server.name: {} for server in servers}
    with tempfile.TemporaryDirectory() as folder:
        loader = build_loader(Path(folder))
        definitions = list(custom.many(_originals(), arguments.definitions)) if arguments.definitions else []
        for number in range(arguments.rounds):
            for server in servers:
                print(f"round {number + 1} of {arguments.rounds}: {server.name}", file=sys.stderr, flush=True)
                measure(server, loader, figures[server.name], arguments.objects, definitions)
                measure_small(server, loader, figures[server.name], arguments.objects)
            figures[servers[0].name].setdefault("admit", []).append(admission_seconds() * 1e6)
            for key, seconds in authorization_seconds(Path(folder)).items():
                figures[servers[0].name].setdefault(key, []).append(seconds * 1e6)
    figures[servers[0].name]["cluster"] = [seconds * 1000 for seconds in fresh_cluster_seconds(10)]
    report(ROWS, figures, arguments.output)
    return 0


def _originals() -> list[Object]:
    """Definitions of some operators, as they are published."""
    rows = packages.table(["cert-manager", "external-secrets", "gateway-api", "keda", "prometheus-operator", "velero"])
    return [found for row in rows for found in packages.read(row, packages.fetch(row), 0).definitions.values()]


def measure(server: Server, loader: Path, figures: Figures, objects: int, definitions: Sequence[Object]) -> None:
    """Measures a server once, from its start to its stop."""
    server.start()
    try:
        load = load_of(loader, server)
        note = noter(figures)
        note("ready", server.ready_seconds)
        note("rss_idle", server.rss_bytes() / 2**20)
        requests(load, note)
        load("fill", objects - 5300, clients=4, prefix="fill")
        note("rss_full", server.rss_bytes() / 2**20)
        note("list", load("list", 7)["p50_ms"])
        note("selector", load("selector", 7)["p50_ms"])
        watched = load("watch", 300, clients=100, prefix="watched")
        note("watch", watched["seconds"])
        note("watch_p50", watched["p50_ms"])
        note("deletecollection", load("deletecollection", 1)["seconds"])
        client = Client(server.url, TOKEN)
        note("webhook_call", webhooks.overhead(client, loader, 500))
        note("custom_p50", custom.validate(client, 20))
        if definitions:
            for key, seconds in custom.define(client, definitions):
                note(key, seconds)
            note("rss_definitions", server.rss_bytes() / 2**20)
    finally:
        server.stop()


def measure_small(server: Server, loader: Path, figures: Figures, objects: int) -> None:
    """Measures a server that holds small objects only, from its start to its stop."""
    server.start()
    try:
        load, note = load_of(loader, server), noter(figures)
        load("fill", objects, clients=4, prefix="first", size=0)
        note("list_small", load("list", 15)["p50_ms"])
        load("fill", objects, clients=4, prefix="second", size=0)
        note("rss_small", server.rss_bytes() / 2**20)
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
