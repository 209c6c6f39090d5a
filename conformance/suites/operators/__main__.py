"""Well-known operators' definitions and samples on a real server and on this one: `python -m conformance.suites.operators --assets DIR`.

The packages (packages.json) come by the ordinary go command into its cache. Both servers are started; every definition is
tried out and applied, discovery, OpenAPI and `kubectl explain` are compared, and every sample goes through all verbs, with
random mistakes too. Prints each operator's score, and the first of each kind of difference.

DIR holds kube-apiserver, etcd and kubectl (KUBEBUILDER_ASSETS is the default). With --oracle and --server two running servers are
compared instead; neither should have the definitions yet.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from conformance.bench.servers import TOKEN, Ours, Reference
from conformance.exchange import Client
from conformance.suites.operators import packages
from conformance.suites.operators.comparing import DEFINITIONS, SETTLE_SECONDS, Comparison, Explain, Pair, Result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="of packages.json (default: all)")
    parser.add_argument("--assets", type=Path, default=Path(assets) if assets else None)
    for name in ("--oracle", "--oracle-token", "--server", "--token"):
        parser.add_argument(name)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=8, help="samples of each kind at most (default 8)")
    parser.add_argument("--invalid", type=int, default=6, help="random mistakes in each sample (default 6)")
    parser.add_argument("--made", type=int, default=8, help="random objects by each schema (default 8)")
    parser.add_argument("--no-explain", action="store_true", help="leave kubectl explain out")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    if not arguments.assets and not (arguments.oracle and arguments.server):
        parser.error("--assets, or --oracle and --server with their tokens")
    try:
        rows = packages.table(arguments.operators)
        with ThreadPoolExecutor(4) as pool:
            archives = list(pool.map(packages.fetch, rows))
    except (ValueError, OSError) as error:
        print(f"operators: {error}", file=sys.stderr)
        return 1
    operators = [packages.read(row, archive, arguments.samples) for row, archive in zip(rows, archives, strict=True)]
    kubectl = None if arguments.no_explain else _kubectl(arguments.assets)
    with _servers(arguments) as pair, tempfile.TemporaryDirectory() as cache:
        explain = (
            _explainer(kubectl, Path(cache), {client.url: client.token for client in pair.clients}) if kubectl else None
        )
        comparisons = [Comparison(pair, operator, arguments.seed) for operator in operators]
        compare(pair, comparisons, arguments, explain)
    results = {comparison.operator.name: comparison.result for comparison in comparisons}
    if arguments.output == "json":
        print(json.dumps({name: asdict(result) for name, result in results.items()}, indent=1))
    else:
        report(results)
    return 0 if all(result.equal == result.requests for result in results.values()) else 1


def compare(
    pair: Pair,
    comparisons: Sequence[Comparison],
    arguments: argparse.Namespace,
    explain: Explain | None,
) -> None:
    """All operators live on the servers together, as they do in a cluster."""
    _each("define", comparisons, Comparison.define)
    _each("establish", comparisons, Comparison.established)
    time.sleep(SETTLE_SECONDS)
    _each("publish", comparisons, lambda comparison: comparison.publish(explain))
    version_2 = pair.each(lambda client: client.send({"method": "GET", "path": "/openapi/v2"}, [])["body"])
    _each("version 2", comparisons, lambda comparison: comparison.version_2(version_2))
    _each("use", comparisons, lambda comparison: comparison.use(arguments.invalid, arguments.made))
    for comparison in comparisons:
        for name in comparison.operator.definitions:
            pair.send({"method": "DELETE", "path": f"{DEFINITIONS}/{name}"})


def _each(stage: str, comparisons: Sequence[Comparison], act: Callable[[Comparison], None]) -> None:
    started = time.monotonic()
    pair = comparisons[0].pair
    pair.seconds.clear()
    for comparison in comparisons:
        act(comparison)
    waited = ", ".join(f"{pair.seconds.get(client.url, 0.0):.1f}" for client in pair.clients)
    print(f"{stage}: {time.monotonic() - started:.0f} s (servers {waited})", file=sys.stderr, flush=True)


@contextmanager
def _servers(arguments: argparse.Namespace) -> Iterator[Pair]:
    """The two that run, or two of our own."""
    if arguments.oracle:
        yield Pair(Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token))
        return
    reference, ours = Reference(arguments.assets), Ours()
    try:
        reference.start()
        ours.start()
        yield Pair(Client(reference.url, TOKEN), Client(ours.url, TOKEN))
    finally:
        ours.stop()
        reference.stop()


def _kubectl(assets: Path | None) -> str | None:
    beside = assets / "kubectl" if assets else None
    return str(beside.absolute()) if beside and beside.is_file() else shutil.which("kubectl")


def _explainer(kubectl: str, cache: Path, tokens: dict[str, str]) -> Explain:
    """Returns a function that runs `kubectl explain --recursive`: (server, plural, group version) -> text."""

    def explain(url: str, plural: str, gv: str) -> str:
        server = [f"--server={url}", f"--token={tokens[url]}", "--insecure-skip-tls-verify", f"--cache-dir={cache}"]
        words = [kubectl, *server, "explain", "--recursive", f"{plural}.{gv.partition('/')[0]}", f"--api-version={gv}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    return explain


def report(results: dict[str, Result]) -> None:
    for name, result in results.items():
        for found in result.differences.values():
            print(f"{name}: {found}\n")
    print("| operator | definitions | samples | accepted | requests | equal |\n|---|---|---|---|---|---|")
    for name, row in results.items():
        print(f"| {name} | {row.definitions} | {row.samples} | {row.accepted} | {row.requests} | {row.equal} |")
    keys = ("definitions", "samples", "accepted", "requests", "equal")
    print(f"| **all** | {' | '.join(str(sum(getattr(row, key) for row in results.values())) for key in keys)} |")


if __name__ == "__main__":
    sys.exit(main())
