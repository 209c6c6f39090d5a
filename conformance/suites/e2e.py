"""Upstream's own end-to-end specs against this server: `python -m conformance.suites.e2e --binary PATH/e2e.test`.

The binary is upstream's test/e2e, built with Go, and the servers are of its version. `e2e_specs.json` names what it has to pass, in groups
of `{"nodes": N, "specs": [names]}`; the labels in the names may be those of another version, and specs that the binary hasn't are left out.
Each batch of specs meets a fresh `fakeapiserver run` with all controllers and so many simulated nodes, or with `--servers real,ours` these
servers on one etcd, behind a load balancer that sends each request to the next one; the variable E2E_OUTPUT names a file that gets what the
specs print. Without a binary there is nothing to do, and the status is 0.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

from conformance.players.pairs import Manager
from conformance.players.round_robin import RoundRobin
from conformance.players.shared_etcd import ASSETS, OURS, REAL, SharedEtcd, kinds

_OUTPUT: Final = "E2E_OUTPUT"
_FLAGS: Final = (
    "--enable-admission-plugins=ServiceAccount",
    "--advertise-address=10.77.0.1",
    "--etcd-compaction-interval=20s",
)
BINARY: Final = "FAKEAPISERVER_E2E_TEST"
_SPECS: Final = Path(__file__).with_name("e2e_specs.json")
_RESULT: Final = re.compile(r"(?:•|S|P)(?: \[(?P<state>[A-Z]+)\])?(?: \[[0-9.]+ seconds\])")
_VERSION: Final = re.compile(r"v(\d+\.\d+)")
_LABEL: Final = re.compile(r" \[[^\[\]]*\]")
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


def version_of(binary: Path) -> str:
    """The minor version of Kubernetes that a binary is built for, e.g. 1.37. RuntimeError if it doesn't say."""
    said = subprocess.run([str(binary), "--version"], capture_output=True, text=True, check=False).stdout
    if (found := _VERSION.search(said)) is None:
        raise RuntimeError(f"{binary} --version names no version of Kubernetes: {said[:200]!r}")
    return found[1]


def specs_in(binary: Path) -> list[str]:
    """The names of all specs of a binary, each with its labels, as far as they are a part of the name."""
    command = [str(binary), "--provider=skeleton", "--ginkgo.dry-run", "--ginkgo.v", "--ginkgo.no-color"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A line is the name, and behind it all labels in one pair of brackets.
    return [line[: line.rindex(" [")] for line in done.stdout.splitlines() if line.startswith("[sig-") and " [" in line]


def named_as_in(specs: Sequence[str], names: Iterable[str]) -> list[str]:
    """Returns the names that these specs have among `specs`, where labels may differ; those that aren't there are left out."""
    by_words: dict[str, list[str]] = {}
    for spec in specs:
        by_words.setdefault(_LABEL.sub("", spec), []).append(spec)
    known = set(specs)
    found = ([name] if name in known else by_words.get(_LABEL.sub("", name), []) for name in names)
    return list(dict.fromkeys(name for same in found for name in same))


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


@dataclass(frozen=True)
class Alone:
    """A `fakeapiserver run` of a minor version of Kubernetes, with all controllers."""

    version: str

    def run(self, nodes: int, test: Sequence[str], folder: str) -> subprocess.CompletedProcess[bytes]:
        server = [f"--kubernetes-version={self.version}", "--controllers=*", f"--nodes={nodes}", *_FLAGS]
        return _run([sys.executable, "-m", "fakeapiserver", "run", *server, "--", *test], folder, os.environ)


@dataclass(frozen=True)
class Shared:
    """Several servers on one etcd behind a load balancer, with one controller manager: each server and the manager is REAL or OURS."""

    servers: Sequence[str]
    manager: str
    assets: Path

    def run(self, nodes: int, test: Sequence[str], folder: str) -> subprocess.CompletedProcess[bytes]:
        """RuntimeError for groups with nodes, and if a server doesn't start."""
        if nodes:
            raise RuntimeError("servers that share an etcd have no simulated nodes here")
        shared = SharedEtcd(self.servers, self.assets, _FLAGS)
        # A busy machine makes a manager lose its lease, and then it ends.
        manager = Manager(self.manager, self.assets, Path(folder), ["--leader-elect=false"])
        try:
            shared.start()
            manager.key = shared.keys / "sa.key"
            with RoundRobin([server.url for server in shared.servers]) as balancer:
                manager.start(balancer.url)
                done = _run(test, folder, {**os.environ, "KUBECONFIG": str(Path(folder) / "kubeconfig")})
                manager.check()
                return done
        finally:
            manager.stop()
            shared.stop()


def _run(command: Sequence[str], folder: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, env=environ
    )


def run(
    binary: Path, kubectl: str, nodes: int, names: Sequence[str], servers: Alone | Shared
) -> list[tuple[str, bool]]:
    """These specs against servers of their own. OSError for a binary that can't be run."""
    test = [str(binary), "--provider=skeleton", f"--kubectl-path={kubectl}", "--ginkgo.v", "--ginkgo.no-color"]
    test += [f"--num-nodes={nodes or 0}", "--allowed-not-ready-nodes=-1", "--minStartupPods=0", "--disable-log-dump"]
    test += ["--dump-logs-on-failure=false", f"--ginkgo.timeout={_BATCH_SECONDS}s", f"--ginkgo.focus={focus(names)}"]
    with tempfile.TemporaryDirectory() as folder:
        done = servers.run(nodes, test, folder)
    lines = done.stdout.decode(errors="replace").splitlines()
    found = list(read(lines, names))
    if output := os.environ.get(_OUTPUT):
        with Path(output).open("ab") as file:
            file.write(done.stdout)
    if not any(passed for _, passed in found):
        print("no spec of these passed:", *lines[-_SHOWN_LINES:], sep="\n", file=sys.stderr, flush=True)
    return found


def batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def run_groups(
    wanted: Mapping[str, Group], binary: Path, kubectl: str, servers: Alone | Shared, *, size: int, jobs: int
) -> dict[str, dict[str, bool]]:
    """Runs the groups and returns group -> spec -> whether it passed; prints its progress on stderr."""
    results: dict[str, dict[str, bool]] = {}
    for title, group in wanted.items():
        found = results[title] = {}
        with ThreadPoolExecutor(jobs) as pool:
            for batch in pool.map(
                lambda names, nodes=group["nodes"]: run(binary, kubectl, nodes, names, servers),
                batches(group["specs"], size),
            ):
                found.update(batch)
                print(f"{title}: {sum(found.values())} of {len(found)} passed", file=sys.stderr, flush=True)
    return results


def chosen(specs: Sequence[str], titles: Sequence[str] | None, pattern: str) -> dict[str, Group]:
    """The groups with these titles (None: all), with those of their specs that a binary with `specs` has and whose name matches."""
    wanted = {}
    for title, group in groups().items():
        if not titles or title in titles:
            names = named_as_in(specs, group["specs"])
            if missing := len(group["specs"]) - len(names):
                print(f"{title}: the binary lacks {missing} of {len(group['specs'])} specs", file=sys.stderr)
            wanted[title] = Group(nodes=group["nodes"], specs=[name for name in names if re.search(pattern, name)])
    return wanted


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=os.environ.get(BINARY), help=f"e2e.test (default: ${BINARY})")
    parser.add_argument("--kubectl", default="kubectl", help="(%(default)s)")
    parser.add_argument("--group", action="append", choices=list(groups()), help="by default all")
    parser.add_argument("--focus", default="", help="only specs in whose name this is found (a regular expression)")
    parser.add_argument("--batch", type=int, default=5, help="specs for one server (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="batches at a time (%(default)s)")
    parser.add_argument("--servers", type=kinds, help="of one etcd behind a load balancer, e.g. real,ours")
    parser.add_argument("--manager", choices=(REAL, OURS), default=OURS, help="the controller manager of --servers")
    parser.add_argument(
        "--assets", type=Path, default=os.environ.get(ASSETS), help=f"for --servers (default: ${ASSETS})"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args(words)
    if options.binary is None:
        print(f"conformance.suites.e2e: no binary: name one with --binary or ${BINARY}", file=sys.stderr)
        return 0
    if options.servers and options.assets is None:
        parser.error("--servers needs --assets")
    binary = Path(options.binary).resolve()
    wanted = chosen(specs_in(binary), options.group, options.focus)
    servers: Alone | Shared = (
        Shared(options.servers, options.manager, options.assets) if options.servers else Alone(version_of(binary))
    )
    results = run_groups(wanted, binary, options.kubectl, servers, size=options.batch, jobs=options.jobs)
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
