"""`python -m conformance.bench.scale [--assets DIR] [--etcd PROGRAM]`: figures of many objects, clients and watchers.

Our server in memory, in a file and in etcd, and a real kube-apiserver on etcd, run one at a time: in this order in the first round, in the
reverse order in the next one. The load comes from the program of bench/loader. Times are those of a clock on the wall, in which other
processes count; where it says so, of the processor.

DIR holds `kube-apiserver` and `etcd` (KUBEBUILDER_ASSETS is the default), PROGRAM is an etcd (by default DIR's, or FAKEAPISERVER_ETCD).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.bench.building import build_loader
from conformance.bench.scale import measures, stores
from conformance.bench.table import noter

Figures = dict[str, dict[str, list[float]]]
PARTS: Final = ("requests", "size", "watchers", "farm")


@dataclass(frozen=True, slots=True)
class Row:
    """`key` of the figures."""

    key: str
    title: str
    unit: str


_REQUESTS: Final = (
    Row("rss_idle", "memory, idle", "MiB"),
    *(
        Row(f"{mode}_{quantile}", f"{title}, {quantile}", "ms")
        for mode, title in (("create", "create"), ("get", "get"), ("update", "update"), ("patch", "merge patch"))
        for quantile in ("p50", "p99")
    ),
    Row("page", "list of 500, p50", "ms"),
    Row("creates", "creates with 16 clients", "/s"),
    Row("creates_processor", "... processor time of each, etcd's included", "ms"),
    Row("gets", "gets with 16 clients", "/s"),
    Row("gets_processor", "... processor time of each, etcd's included", "ms"),
)
_SIZE: Final = (
    Row("open", "start to ready", "s"),
    Row("open_processor", "... processor time, etcd's included", "s"),
    Row("rss", "memory", "MiB"),
    Row("bytes", "... of each object", "bytes"),
    Row("list", "list of all pods", "ms"),
    Row("list_wait", "... longest GET of another client meanwhile", "ms"),
    Row("pages", "... in pages of 500", "ms"),
    Row("selector", "list of a tenth of the pods, by label", "ms"),
    Row("large_get_p50", "get of a pod, p50", "ms"),
    Row("large_get_p99", "get of a pod, p99", "ms"),
    Row("large_create_p50", "create of a config map, p50", "ms"),
    Row("deletecollection", "deletecollection of all pods", "s"),
    Row("deletecollection_wait", "... longest GET of another client meanwhile", "ms"),
)
_WATCHERS: Final = (
    Row("watch", "1,000 watchers x 100 events, all arrived", "s"),
    Row("watch_processor", "... processor time of each event of a watcher", "us"),
    Row("watcher", "... memory of each watcher", "KiB"),
)
_FARM: Final = tuple(
    Row(f"{mode}_{clients}_{servers}", f"{mode}s with {clients} clients, {servers} of ours on one etcd", "/s")
    for clients in (16, 32)
    for mode in ("create", "get")
    for servers in (1, 2)
)


def main() -> int:
    arguments = _parser().parse_args()
    assets = arguments.assets
    etcd = arguments.etcd or (assets / "etcd" if assets else None)
    programs = stores.Programs(etcd, assets)
    starts = stores.starts(programs)
    figures: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build_loader(Path(folder))
        for number in range(arguments.rounds):
            names = [*starts] if number % 2 == 0 else [*reversed(starts)]
            for part in ("requests", "watchers"):
                if part in arguments.parts:
                    for name in names:
                        _say(f"round {number + 1} of {arguments.rounds}: {part}, {name}")
                        measure = measures.requests if part == "requests" else measures.watchers
                        with starts[name](programs, None) as running:
                            measure(running, program, noter(figures.setdefault(part, {}).setdefault(name, {})))
        if "size" in arguments.parts and etcd is None:
            _say("without an etcd to fill, the part size is left out")
        elif "size" in arguments.parts:
            idle = {name: noted["rss_idle"] for name, noted in measures.medians(figures.get("requests", {})).items()}
            for pods in arguments.pods:
                _measure_size(programs, program, pods, idle, figures.setdefault(f"{pods:,} pods", {}))
        if "farm" in arguments.parts and etcd is not None:
            _measure_farm(programs, program, arguments.rounds, figures.setdefault("farm", {}))
    report(figures, arguments.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder, etcd = os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("FAKEAPISERVER_ETCD")
    parser.add_argument("--assets", type=Path, default=Path(folder) if folder else None)
    parser.add_argument("--etcd", type=Path, default=Path(etcd) if etcd else None)
    parser.add_argument("--parts", type=_parts, default=PARTS, help=f"some of {','.join(PARTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=2, help="of requests, watchers and farm (default 2)")
    sizes = "how many pods, of which each 20 have a node (default 1000,10000,100000)"
    parser.add_argument("--pods", type=_numbers, default=(1000, 10_000, 100_000), help=sizes)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    return parser


def _parts(text: str) -> Sequence[str]:
    parts = text.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        raise argparse.ArgumentTypeError(f"{unknown[0]} is not one of {', '.join(PARTS)}")
    return parts


def _numbers(text: str) -> Sequence[int]:
    return [int(part) for part in text.split(",")]


def _measure_size(
    programs: stores.Programs, program: Path, pods: int, idle: dict[str, float], figures: Figures
) -> None:
    nodes = pods // 20
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "etcd"
        started = time.monotonic()
        stores.filled(programs, data, pods, nodes)
        _say(f"{pods:,} pods and {nodes:,} nodes written to etcd in {time.monotonic() - started:.1f} s")
        for name, start in stores.starts(programs).items():
            _say(f"{pods:,} pods: {name}")
            with start(programs, data) as running:
                measures.size(running, program, noter(figures.setdefault(name, {})), pods + nodes, idle)


def _measure_farm(programs: stores.Programs, program: Path, rounds: int, figures: Figures) -> None:
    for number in range(rounds):
        for count in (1, 2) if number % 2 == 0 else (2, 1):
            _say(f"round {number + 1} of {rounds}: {count} of ours on one etcd")
            with stores.farm(programs, count) as running:
                measures.farm(running, program, noter(figures.setdefault(stores.ETCD, {})))


def report(figures: dict[str, Figures], output: str) -> None:
    medians = {part: measures.medians(noted) for part, noted in figures.items()}
    if output == "json":
        print(json.dumps(medians, indent=1))
        return
    rows = {"requests": _REQUESTS, "watchers": _WATCHERS, "farm": _FARM}
    for part, noted in medians.items():
        print(f"\n| {part} | " + " | ".join(noted) + " |")
        print("|---" * (len(noted) + 1) + "|")
        for row in rows.get(part, _SIZE):
            values = (_shown(found.get(row.key), row.unit) for found in noted.values())
            print("| " + " | ".join([row.title, *values]) + " |")


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
