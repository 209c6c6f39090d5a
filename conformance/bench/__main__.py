"""`python -m conformance.bench [--assets DIR]`: one table of ratios, this server beside kube-apiserver and etcd.

DIR holds `kube-apiserver` and `etcd` (a folder as envtest has it; KUBEBUILDER_ASSETS is the default). Without it only this
server's figures are printed. The load comes from a small Go program (bench/loader), built on the spot. The servers run one at
a time, in turn; each row is the median of the rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.bench import custom, webhooks
from conformance.bench.building import build_loader
from conformance.bench.custom import Object
from conformance.bench.growth import __main__ as growth
from conformance.bench.servers import (
    TOKEN,
    Ours,
    Reference,
    Server,
    admission_seconds,
    authorization_seconds,
    fresh_cluster_seconds,
)
from conformance.exchange import Client
from conformance.suites.operators import packages

Figures = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Row:
    """`key` of the figures; `more` says that a larger figure is the better one."""

    key: str
    title: str
    unit: str
    more: bool = False


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
    *(
        Row(f"{mode}_{quantile}", f"{title}, {quantile}", "ms")
        for mode, title in (("create", "create"), ("get", "get"), ("patch", "merge patch"), ("apply", "apply"))
        for quantile in ("p50", "p99")
    ),
    Row("creates", "creates with 16 clients", "/s", more=True),
    Row("gets", "gets with 16 clients", "/s", more=True),
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
    report(figures, arguments.output)
    return 0


def _originals() -> list[Object]:
    """Definitions of some operators, as they are published."""
    rows = packages.table(["cert-manager", "external-secrets", "gateway-api", "keda", "prometheus-operator", "velero"])
    return [found for row in rows for found in packages.read(row, packages.fetch(row), 0).definitions.values()]


def measure(server: Server, loader: Path, figures: Figures, objects: int, definitions: Sequence[Object]) -> None:
    """Measures a server once, from its start to its stop."""
    server.start()
    try:
        load = _loader(server, loader)
        note = _noter(figures)
        note("ready", server.ready_seconds)
        note("rss_idle", server.rss_bytes() / 2**20)
        load("create", 300, prefix="warm")
        for mode in ("create", "get", "patch", "apply"):
            found = load(mode, 1000, prefix="single", existing=1000)
            note(f"{mode}_p50", found["p50_ms"])
            note(f"{mode}_p99", found["p99_ms"])
        note("creates", load("create", 4000, clients=16, prefix="many")["per_second"])
        note("gets", load("get", 8000, clients=16, prefix="many", existing=4000)["per_second"])
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
        load, note = _loader(server, loader), _noter(figures)
        load("fill", objects, clients=4, prefix="first", size=0)
        note("list_small", load("list", 15)["p50_ms"])
        load("fill", objects, clients=4, prefix="second", size=0)
        note("rss_small", server.rss_bytes() / 2**20)
    finally:
        server.stop()


def _noter(figures: Figures) -> Callable[[str, float], None]:
    return lambda key, value: figures.setdefault(key, []).append(value)


def _loader(server: Server, program: Path) -> Callable[..., dict[str, float]]:
    def load(mode: str, count: int, *, existing: int = 1, **flags: object) -> dict[str, float]:
        words = {"mode": mode, "n": count, "objects": existing, **flags}
        command = [
            *(str(program), f"-url={server.url}", f"-token={TOKEN}"),
            *(f"-{name}={value}" for name, value in words.items()),
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{server.name}: {mode} failed: {done.stderr.strip()}")
        found: dict[str, float] = json.loads(done.stdout)
        return found

    return load


def report(figures: dict[str, Figures], output: str) -> None:
    medians = {
        name: {key: statistics.median(values) for key, values in found.items()} for name, found in figures.items()
    }
    if output == "json":
        print(json.dumps(medians, indent=1))
        return
    names = list(medians)
    print("| " + " | ".join(["", *names] + (["times better"] if len(names) > 1 else [])) + " |")
    print("|---" * (len(names) + (2 if len(names) > 1 else 1)) + "|")
    for row in ROWS:
        values = [medians[name].get(row.key) for name in names]
        shown = ["" if value is None else f"{value:,.{_digits(value)}f} {row.unit}" for value in values]
        ours, other = values[0], values[-1]
        if len(names) > 1:
            ratio = "" if not ours or not other else f"{ours / other if row.more else other / ours:.1f}"
            shown.append(ratio)
        print("| " + " | ".join([row.title, *shown]) + " |")


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2


if __name__ == "__main__":
    sys.exit(main())
