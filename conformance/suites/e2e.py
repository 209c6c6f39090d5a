"""Upstream's own end-to-end specs against this server: `python -m conformance.suites.e2e --binary PATH/e2e.test`.

The binary is upstream's test/e2e, built with Go for the same Kubernetes version. `e2e_specs.json` names what it has to pass, in groups
of `{"nodes": N, "specs": [names]}`. Each batch of specs meets a fresh `fakeapiserver run` with all controllers and so many simulated
nodes. Without a binary there is nothing to do, and the status is 0.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypedDict

BINARY: Final = "FAKEAPISERVER_E2E_TEST"
_SPECS: Final = Path(__file__).with_name("e2e_specs.json")
_RESULT: Final = re.compile(r"(?:•|S|P)(?: \[(?P<state>[A-Z]+)\])?(?: \[[0-9.]+ seconds\])")
_SYNTAX: Final = re.compile(r"([.+*?()|{}^$\\\[\]])")
_ESCAPED: Final = r"\\\1"
# A batch takes its programs' start, and as long as its specs: some wait for compaction, others look on for four or five minutes.
_BATCH_SECONDS: Final = 1200
_SHOWN_LINES: Final = 40


class Group(TypedDict):
    nodes: int
    specs: list[str]


def groups() -> dict[str, Group]:
    """By name, in the order of the file."""
    found: dict[str, Group] = json.loads(_SPECS.read_text())
    return found


def focus(names: Iterable[str]) -> str:
    """A pattern of Go's that matches these specs and no others."""
    return f"({'|'.join(_SYNTAX.sub(_ESCAPED, name) for name in names)})$"


def read(lines: Iterable[str], names: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields (spec, whether it passed) from Ginkgo's verbose output. A spec without a result counts as failed."""
    longest_first, missing, running = sorted(names, key=len, reverse=True), dict.fromkeys(names), ""
    for line in lines:
        if line.startswith("["):
            # Labels stand behind the name.
            running = next((name for name in longest_first if line.startswith(name)), running)
        elif running in missing and (match := _RESULT.match(line)):
            del missing[running]
            yield running, match["state"] is None
    for name in missing:
        yield name, False


def run(binary: Path, kubectl: str, nodes: int, names: Sequence[str]) -> list[tuple[str, bool]]:
    """These specs against a server of their own. OSError for a binary that can't be run."""
    server = ["--controllers=*", f"--nodes={nodes}", "--enable-admission-plugins=ServiceAccount"]
    server += ["--advertise-address=10.77.0.1", "--etcd-compaction-interval=20s"]
    test = [str(binary), "--provider=skeleton", f"--kubectl-path={kubectl}", "--ginkgo.v", "--ginkgo.no-color"]
    test += [f"--num-nodes={nodes or 0}", "--allowed-not-ready-nodes=-1", "--minStartupPods=0", "--disable-log-dump"]
    test += ["--dump-logs-on-failure=false", f"--ginkgo.timeout={_BATCH_SECONDS}s", f"--ginkgo.focus={focus(names)}"]
    command = [sys.executable, "-m", "fakeapiserver", "run", *server, "--", *test]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.decode(errors="replace").splitlines()
    found = list(read(lines, names))
    if not any(passed for _, passed in found):
        print("no spec of these passed:", *lines[-_SHOWN_LINES:], sep="\n", file=sys.stderr, flush=True)
    return found


def batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def run_groups(
    wanted: Mapping[str, Group], binary: Path, kubectl: str, *, size: int, jobs: int
) -> dict[str, dict[str, bool]]:
    """Runs the groups and returns group -> spec -> whether it passed; prints its progress on stderr."""
    results: dict[str, dict[str, bool]] = {}
    for title, group in wanted.items():
        found = results[title] = {}
        with ThreadPoolExecutor(jobs) as pool:
            for batch in pool.map(
                lambda names, nodes=group["nodes"]: run(binary, kubectl, nodes, names), batches(group["specs"], size)
            ):
                found.update(batch)
                print(f"{title}: {sum(found.values())} of {len(found)} passed", file=sys.stderr, flush=True)
    return results


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=os.environ.get(BINARY), help=f"e2e.test (default: ${BINARY})")
    parser.add_argument("--kubectl", default="kubectl", help="(%(default)s)")
    parser.add_argument("--group", action="append", choices=list(groups()), help="by default all")
    parser.add_argument("--focus", default="", help="only specs in whose name this is found (a regular expression)")
    parser.add_argument("--batch", type=int, default=5, help="specs for one server (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="batches at a time (%(default)s)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args(words)
    if options.binary is None:
        print(f"conformance.suites.e2e: no binary: name one with --binary or ${BINARY}", file=sys.stderr)
        return 0
    wanted = {
        title: Group(nodes=group["nodes"], specs=[n for n in group["specs"] if re.search(options.focus, n)])
        for title, group in groups().items()
        if not options.group or title in options.group
    }
    results = run_groups(wanted, Path(options.binary).resolve(), options.kubectl, size=options.batch, jobs=options.jobs)
    failed = [(title, name) for title, found in results.items() for name, passed in found.items() if not passed]
    if options.output == "json":
        print(json.dumps(results, indent=1))
    else:
        for title, name in failed:
            print(f"{title}: {name}")
        print("| group | passed | specs |", "|---|---|---|", sep="\n")
        for title, found in results.items():
            print(f"| {title} | {sum(found.values())} | {len(found)} |")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
