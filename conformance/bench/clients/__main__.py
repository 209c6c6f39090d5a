"""`python -m conformance.bench.clients`: the client and the controller runtime beside client-go and controller-runtime.

An informer of many config maps: until it has them all, and what it keeps; a controller: reconciles a second while objects are
written, and the time from a write to its reconcile. All on this server, one after another; each figure is the median of the
rounds. Needs Go on the PATH.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from conformance.bench.servers import TOKEN, Ours
from conformance.exchange import Client

_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_PYTHON: Final = Path(__file__).parents[3] / "tests" / "examples" / "measured.py"
_WRITERS: Final = 8
Program = Sequence[str]
ROWS: Final = (
    ("informer", "seconds", "informer, until it has synced", "s"),
    ("informer", "rss_mib", "... memory of the process", "MiB"),
    ("controller", "per_second", "reconciles while objects are written", "/s"),
    ("controller", "p50_ms", "write to reconcile, p50", "ms"),
    ("controller", "p99_ms", "write to reconcile, p99", "ms"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=100_000, help="for the informer (default 100000)")
    parser.add_argument("--reconciles", type=int, default=3_000, help="for the controller (default 3000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, list[float]]] = {"this client": {}, "client-go": {}}
    with tempfile.TemporaryDirectory() as folder:
        programs = {"this client": [sys.executable, str(_PYTHON)], "client-go": [str(build(Path(folder)))]}
        server = Ours()
        server.start()
        try:
            config = write_kubeconfig(Path(folder), server.url)
            for number in range(arguments.rounds):
                for name, program in programs.items():
                    _say(f"round {number + 1} of {arguments.rounds}: a controller, {name}")
                    found = controller(program, config, server.url, arguments.reconciles)
                    _note(figures[name], "controller", found)
            _say(f"writing {arguments.objects} objects")
            fill(server.url, arguments.objects)
            for number in range(arguments.rounds):
                for name, program in programs.items():
                    _say(f"round {number + 1} of {arguments.rounds}: an informer, {name}")
                    found = run([*program, *words(program, config, "informer", arguments.objects)])
                    if found["objects"] < arguments.objects:
                        raise SystemExit(f"{name} saw {found['objects']:.0f} objects only")
                    _note(figures[name], "informer", found)
        finally:
            server.stop()
    report(figures, arguments.output)
    return 0


def build(folder: Path) -> Path:
    program = folder / "clients"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    source = folder / "source"
    source.mkdir()
    for name in ("go.mod", "main.go"):
        (source / name).write_bytes((Path(__file__).parent / name).read_bytes())
    _say("building Go's client")
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=source, check=True, env=environment)
    return program


def write_kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "bench", "user": {"token": TOKEN}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    path.write_text(json.dumps(config))
    return path


def words(program: Program, config: Path, mode: str, count: int) -> Sequence[str]:
    if len(program) > 1:
        return [str(config), mode, str(count), "1"]
    return [f"-config={config}", f"-mode={mode}", f"-n={count}", "-workers=1"]


def controller(program: Program, config: Path, url: str, count: int) -> dict[str, float]:
    """Writes objects while the controller runs, as fast as the server takes them."""
    command = [*program, *words(program, config, "controller", count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise SystemExit("the controller did not start")
        write(url, "bench-", count)
        found: dict[str, float] = json.loads(process.stdout.readline())
    Client(url, TOKEN).send({"method": "DELETE", "path": _CONFIG_MAPS}, ())
    return found


def write(url: str, prefix: str, count: int) -> None:
    """Each object says when it was written."""

    def part(start: int) -> None:
        client = Client(url, TOKEN)
        for number in range(start, count, _WRITERS):
            data = {"written": str(time.time_ns()), "text": "x" * 1500}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{prefix}{number}"}, "data": data}
            client.send({"method": "POST", "path": _CONFIG_MAPS, "body": obj}, ())

    with ThreadPoolExecutor(_WRITERS) as pool:
        for done in [pool.submit(part, start) for start in range(_WRITERS)]:
            done.result()


def fill(url: str, count: int) -> None:
    write(url, "many-", count)


def run(command: Sequence[str]) -> dict[str, float]:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def report(figures: dict[str, dict[str, list[float]]], output: str) -> None:
    medians = {
        name: {key: statistics.median(values) for key, values in found.items()} for name, found in figures.items()
    }
    if output == "json":
        print(json.dumps(medians, indent=1))
        return
    print("|  | this client | client-go, controller-runtime |\n|---|---|---|")
    for mode, key, title, unit in ROWS:
        ours, theirs = (found[f"{mode}.{key}"] for found in medians.values())
        print(f"| {title} | {ours:,.1f} {unit} | {theirs:,.1f} {unit} |")


def _note(figures: dict[str, list[float]], mode: str, found: dict[str, float]) -> None:
    for key, value in found.items():
        figures.setdefault(f"{mode}.{key}", []).append(value)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
