"""`python -m conformance.bench options [--assets DIR]`: what audit, logs, faults and the page cost a request.

Each option is on in a server of its own, and all of them in the last one; audit and logs also in a kube-apiserver of DIR.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from conformance.bench.building import build_loader
from conformance.bench.requests import REQUESTS, load_of, requests
from conformance.bench.servers import Ours, Reference, Server
from conformance.bench.table import Figures, Row, noter, report

_POLICY: Final = """apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
"""
# faults that are compared with each request and strike no request
_FAULTS: Final = """- {resource: leases, verb: update, status: 503}
- {resource: pods, user_agent: "my-operator*", stop_after: 3, end: cut}
- {verb: write, labels: team=other, status: 409}
"""
_ROWS: Final = (
    *REQUESTS,
    Row("watch_p50", "100 watchers: from the write's beginning to the event, p50", "ms"),
    Row("rss", "memory afterwards", "MiB"),
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.bench options",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    parser.add_argument("--assets", type=Path, default=Path(assets) if assets else None)
    parser.add_argument("--rounds", type=int, default=2, help="how often each server runs (default 2)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        loader = build_loader(Path(folder))
        servers = _servers(Path(folder), given.assets)
        figures: dict[str, Figures] = {server.name: {} for server in servers}
        for number in range(given.rounds):
            for server in servers:
                print(f"round {number + 1} of {given.rounds}: {server.name}", file=sys.stderr, flush=True)
                _measure(server, loader, figures[server.name])
    report(_ROWS, figures, given.output, ratio="")
    return 0


def _servers(folder: Path, assets: Path | None) -> list[Server]:
    (folder / "policy.yaml").write_text(_POLICY)
    (folder / "faults.yaml").write_text(_FAULTS)
    audit = [f"--audit-policy-file={folder / 'policy.yaml'}"]
    faults = [f"--faults={folder / 'faults.yaml'}"]
    options = {
        "alone": [],
        "audit": [*audit, f"--audit-log-path={folder / 'ours.log'}"],
        "log (--v=2)": ["--v=2"],
        "faults": faults,
        "page": ["--ui"],
        "all": [*audit, f"--audit-log-path={folder / 'all.log'}", "--v=2", *faults, "--ui"],
    }
    theirs = {"alone": [], "audit": [*audit, f"--audit-log-path={folder / 'theirs.log'}"], "log (--v=2)": ["--v=2"]}
    ours: list[Server] = [Ours(name=name, flags=flags, stderr=subprocess.DEVNULL) for name, flags in options.items()]
    if assets is None:
        return ours
    real = (Reference(assets, name=f"kube-apiserver, {name}", flags=flags) for name, flags in theirs.items())
    return [*real, *ours]


def _measure(server: Server, loader: Path, figures: Figures) -> None:
    server.start()
    try:
        load, note = load_of(loader, server), noter(figures)
        requests(load, note)
        note("watch_p50", load("watch", 300, clients=100, prefix="watched")["p50_ms"])
        note("rss", server.rss_bytes() / 2**20)
    finally:
        server.stop()
