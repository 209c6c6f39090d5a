"""Plays scripts for controllers: recorded with the real kube-controller-manager, replayed with others.

    python -m conformance.players.controllers record --server URL --token T [NAME ...]     beside a running kube-controller-manager
    python -m conformance.players.controllers replay [--server URL --token T] [NAME ...]   by default a `fakeapiserver serve` of its own
    python -m conformance.players.controllers cross --assets DIR [--pair SERVER/MANAGER ...] [NAME ...]  each with the other's manager

A script is `controller_scripts/<controller>/<name>.json`: `{"show": [paths], "steps": [...]}`, and `"until": version` if
it has not been recorded with newer ones. Every script has a namespace of its
own, which `${namespace}` stands for. A step is one of
`{"create": object}`, `{"apply": object}` (server-side, forced),
`{"patch": path, "body": object, "type"?: "merge" | "json" | "strategic"}`,
`{"delete": path, "options"?: DeleteOptions}`,
`{"pods": selector, "status": object, "count"?: n}`: the status of the (first n) pods that match, as a kubelet would write it,
`{"finish": selector}`: pods that are being deleted end, as a kubelet would let them,
`{"evict": name}`: a pod,
`{"second": s}`: the next minute's second s comes, at which schedules can be relied on.
An object that names its namespace is created there, and stays: the script deletes it.
`{"metrics": "pods" | "custom" | "external", "body": what POST /fakeapiserver/metrics/... takes}`: values of the metrics APIs, and
`{"metrics": "served", "body": {"served": [names]}}`: which of these there are (a real cluster gets them from `metrics_server.py`).
A step with `"wait": seconds` is followed by this many seconds, for what a controller does later.
`${uid:path}` is the uid of an object that is there; in a status, `${now}` is the time, and `${now-90}` that of 90 seconds before.
Paths are below the namespace: `apps/v1/deployments/web`, `v1/pods`; `/api/v1/persistentvolumes/x` are whole paths.
The real manager needs `pairs.FOR_SCRIPTS` for all of them.
After each step the script waits until nothing changes, and records what `show` names, as far as it differs from before. Identities,
times and generated names are made neutral; equal objects are counted. Events are recorded as (about, reason, message), each once.
`cross` starts pairs itself: `real/ours` is kube-apiserver with `fakeapiserver controller-manager`, `ours/real` this server without
controllers and kube-controller-manager; these two unless `--pair` names others. DIR holds kube-apiserver, etcd and
kube-controller-manager. Its last lines are a table: how many states of each controller's scripts are equal.
`--flag=--use-service-account-credentials` goes to the managers, `--server-flag` to the servers. Forbidden requests of a manager are
printed and count as a difference; so does a manager that has ended. Scripts for components that kube-controller-manager doesn't have
(a scheduler, a cloud's load balancers) are left out.
`controller_states/<controller>/` has the states that version 1.36 leaves, `controller_states/v1.37/<controller>/` those of 1.37 where they
differ, and where only 1.37 has a controller. `--version 1.37` records, or replays, these.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from conformance import recordings
from conformance.bench.servers import TOKEN, Ours
from conformance.exchange import Client
from conformance.players.controller_runs import Run
from conformance.players.credentials import RECORDED
from conformance.players.metrics_server import MetricsServer
from conformance.players.pairs import FOR_SCRIPTS, GATES, Pair
from conformance.rows import Sources, shortened

HERE: Final = Path(__file__).parents[1] / "controller_scripts"
# The version whose recordings are in the controllers' own folders.
FIRST_VERSION: Final = RECORDED.partition("=")[2]
VERSIONS: Final = (FIRST_VERSION, "1.37")
# How a server of ours has what a recording had beside the real manager, and hasn't what it hadn't, by the scripts' folder. Those of the
# scheduler were recorded beside a real one, with a node node-1.
FLAGS: Final = {
    "service": ("--load-balancers",),
    "tokencleaner": ("--controllers=*,token-cleaner-controller",),
    "bootstrapsigner": ("--controllers=bootstrap-signer-controller,token-cleaner-controller",),
    "selinux-warning": ("--controllers=selinux-warning-controller",),
    "storage-version-migrator": ("--feature-gates=StorageVersionMigrator=true",),
    "kube-scheduler": ("--nodes=1", "--controllers=*,-node-lifecycle-controller"),
    "attachdetach": ("--controllers=*,-node-lifecycle-controller",),
    # it would remove the taints of new nodes: no kubelet has reported yet whether they are ready
    "daemonset": ("--controllers=*,-node-lifecycle-controller",),
    "ttl": ("--controllers=*,-node-lifecycle-controller",),
    # it would end pods of nodes that aren't there
    "namespace": ("--controllers=*,-pod-garbage-collector-controller",),
}
# What no kube-controller-manager does.
_ELSEWHERE: Final = frozenset({"service", "kube-scheduler"})


def scripts(names: Sequence[str]) -> Iterator[Path]:
    """All, or those whose path has one of the names in it."""
    for path in sorted(HERE.glob("*/*.json")):
        if not names or any(name in str(path.relative_to(HERE)) for name in names):
            yield path


def recorded_scripts(names: Sequence[str], version: str) -> Iterator[Path]:
    """Yields those of the scripts that were recorded with this version: others are about something that it does not have."""
    for path in scripts(names):
        last = json.loads(path.read_text()).get("until", version)
        if version <= last and recording_of(path, version).exists():
            yield path


def _target(path: Path, version: str) -> Path:
    """Returns the version's own recording of a script."""
    folder = HERE.with_name("controller_states")
    return folder / ("" if version == FIRST_VERSION else f"v{version}") / path.parent.name / path.name


def recording_of(path: Path, version: str) -> Path:
    """Returns the version's recording of a script: its own, or the one that all versions have."""
    own = _target(path, version)
    return own if own.exists() else _target(path, FIRST_VERSION)


def record(client: Client, names: Sequence[str], haste: float, version: str) -> None:
    """Writes down what the server's controllers make of the scripts, as far as the first version's recordings don't say it.

    `haste`: they look at things so many times as often.
    """
    for path in scripts(names):
        states = [*_states(client, json.loads(path.read_text()), settles=False, haste=haste)]
        keep(path, states, version)
        print(f"{path.parent.name}/{path.stem}: {len(states)} states", file=sys.stderr, flush=True)


def keep(path: Path, states: Sequence[dict[str, Any]], version: str) -> None:
    """Writes the states that a version's controllers left down, unless they are those of the first version."""
    first, target = _target(path, FIRST_VERSION), _target(path, version)
    if (
        target != first
        and first.exists()
        and not difference(recordings.read(first), json.loads(json.dumps(states)), "")
    ):
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(recordings.lines(shortened(states, Sources()), sort_keys=True))


def _states(
    client: Client, script: Mapping[str, Any], *, settles: bool, haste: float = 1.0
) -> Iterator[dict[str, Any]]:
    """Yields the states of a run. A real cluster gets a metrics server if the script sets metrics."""
    if settles or not any("metrics" in step for step in script["steps"]):
        yield from Run(client, script, settles=settles, haste=haste).states()
        return
    with MetricsServer(client.url, client.token) as metrics:
        yield from Run(client, script, settles=settles, metrics=metrics, haste=haste).states()
        metrics.clear()


def replay(client: Client, names: Sequence[str], version: str, *, settles: bool) -> tuple[int, int, list[str]]:
    """(equal states, all states, what differs)."""
    found = [replay_one(client, path, version, settles=settles) for path in recorded_scripts(names, version)]
    misses = [miss for _, of_one in found for miss in of_one]
    total = sum(states for states, _ in found)
    return total - len(misses), total, misses


def replay_one(client: Client, path: Path, version: str, *, settles: bool) -> tuple[int, list[str]]:
    """(how many states the script has, what differs: at most one line of each)."""
    expected = recordings.read(recording_of(path, version))
    states = _states(client, json.loads(path.read_text()), settles=settles)
    misses = []
    for number, (want, got) in enumerate(zip(expected, states, strict=True), 1):
        if found := difference(want, json.loads(json.dumps(got)), ""):
            misses.append(f"{path.parent.name}/{path.stem}, after step {number}: {found}")
    return len(expected), misses


def difference(want: Any, got: Any, at: str) -> str:
    """The first, "" for none."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            if found := difference(want.get(key), got.get(key), f"{at}.{key}"):
                return found
        return ""
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for number, (left, right) in enumerate(zip(want, got, strict=True)):
            if found := difference(left, right, f"{at}[{number}]"):
                return found
        return ""
    return "" if want == got else f"{at}: {json.dumps(want)[:600]} != {json.dumps(got)[:600]}"


def replay_fresh(names: Sequence[str] = (), version: str = FIRST_VERSION) -> tuple[int, int, list[str]]:
    """`replay` against a server of its own, with all its controllers."""
    flags = {flag for path in scripts(names) for flag in FLAGS.get(path.parent.name, ())}
    flags |= {f"--kubernetes-version={version}", "--disable-admission-plugins=ServiceAccount"}
    server = Ours(flags=["--controllers=*", *sorted(flags)])
    server.start()
    try:
        client = Client(server.url, TOKEN)
        # events that are due a second later happen when the script waits for them, and at no other time
        client.send({"method": "PUT", "path": "/fakeapiserver/clock", "body": {"stopped": True}}, [])
        return replay(client, names, version, settles=True)
    finally:
        server.stop()


def cross(pair: Pair, names: Sequence[str], workers: int, version: str) -> dict[str, tuple[int, int]]:
    """(equal, all) states of each controller's scripts, with a pair that is started for it. What differs is printed."""
    found: dict[str, tuple[int, int]] = {}
    pair.start()

    def replayed(path: Path) -> None:
        total, misses = replay_one(Client(pair.url, TOKEN), path, version, settles=False)
        for miss in misses:
            print(f"{pair.name}: {miss}", flush=True)
        equal, others = found.get(path.parent.name, (0, 0))
        found[path.parent.name] = (equal + total - len(misses), others + total)

    try:
        Run(Client(pair.url, TOKEN), {"show": [], "steps": []}, settles=False).wait_for_controllers()
        paths = [path for path in recorded_scripts(names, version) if path.parent.name not in _ELSEWHERE]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(replayed, [path for path in paths if not _is_of_all(path)]))
        for path in filter(_is_of_all, paths):
            replayed(path)
        pair.check()
        refusals = pair.refusals()
        for refusal in refusals[:20]:
            print(f"{pair.name}: {refusal}", flush=True)
        if refusals:
            found["what a manager may do"] = (0, len(refusals))
    finally:
        pair.stop()
    return found


def _is_of_all(path: Path) -> bool:
    """Reports whether a script has to run alone: it shows, changes or deletes objects outside its namespace, or sets metrics, which a
    cluster has once.
    """
    script = json.loads(path.read_text())
    touched = [step.get("delete") or step.get("patch") or "" for step in script["steps"]]
    return any(at.startswith("/") for at in (*script["show"], *touched)) or any(
        "metrics" in step for step in script["steps"]
    )


def table(found: Mapping[str, Mapping[str, tuple[int, int]]]) -> str:
    """Markdown: a row for each controller, a column for each pair."""
    rows = [f"| equal states | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    for controller in sorted({name for of_pair in found.values() for name in of_pair}):
        cells = ("{} of {}".format(*of_pair.get(controller, (0, 0))) for of_pair in found.values())
        rows.append(f"| {controller} | {' | '.join(cells)} |")
    sums = ("{} of {}".format(*map(sum, zip(*of_pair.values(), strict=True))) for of_pair in found.values())
    return "\n".join([*rows, f"| all | {' | '.join(sums)} |"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "replay", "cross"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--server", default="")
    parser.add_argument("--token", default="")
    parser.add_argument(
        "--haste", type=float, default=1.0, help="waits are divided by this: for a manager with shorter periods, 3 say"
    )
    parser.add_argument("--version", default=FIRST_VERSION, choices=VERSIONS, help="whose recordings")
    parser.add_argument("--polls", action="store_true", help="the server isn't ours: wait until nothing changes")
    parser.add_argument("--assets", type=Path, help="cross: folder of the real binaries")
    parser.add_argument("--pair", action="append", help="cross: real/ours, ours/real, real/real or ours/ours")
    parser.add_argument("--flag", action="append", default=[], help="cross: for the managers")
    parser.add_argument("--server-flag", action="append", default=[], help="cross: for the API servers")
    parser.add_argument("--workers", type=int, default=4, help="cross: how many scripts run at a time")
    arguments = parser.parse_intermixed_args()
    if arguments.command == "cross":
        crossed = {}
        for words in arguments.pair or ("real/ours", "ours/real"):
            server, manager = words.split("/")
            flags = (*FOR_SCRIPTS, *arguments.flag)
            pair = Pair(arguments.assets, server, manager, flags, server_flags=(*GATES, *arguments.server_flag))
            crossed[pair.name] = cross(pair, arguments.names, arguments.workers, arguments.version)
        print(table(crossed))
        return 0 if all(equal == total for of in crossed.values() for equal, total in of.values()) else 1
    client = Client(arguments.server, arguments.token)
    if arguments.command == "record":
        record(client, arguments.names, arguments.haste, arguments.version)
        return 0
    if arguments.server:
        equal, total, misses = replay(client, arguments.names, arguments.version, settles=not arguments.polls)
    else:
        equal, total, misses = replay_fresh(arguments.names, arguments.version)
    for miss in misses:
        print(miss)
    print(f"{equal} of {total} states equal")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
