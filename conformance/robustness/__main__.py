"""`python -m conformance.robustness [--store=file|etcd] [--disturbances N]`: traffic on servers that are killed again and again.

With `file` that is one server with a data directory; with `etcd` several servers on one etcd, and they and etcd are also stopped for a
while. In the end the histories of all clients are checked against the log of the store.

`--bug NAME` plants one of the bugs of planted.py, which the checks must find; `--bugs` does so with each in turn. Exit status 1: something
is wrong.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.robustness import targets
from conformance.robustness.checks import problems
from conformance.robustness.history import History, Logged
from conformance.robustness.planted import BUGS
from conformance.robustness.targets import EtcdServers, FileServer, Target
from conformance.robustness.traffic import Traffic

# Seconds of traffic before a kill, at least and at most.
_TRAFFIC: Final = (0.3, 2.0)
# The history that compactions leave.
_KEPT_REVISIONS: Final = 5000


@dataclass(frozen=True, slots=True)
class Result:
    """`unknown` counts the writes whose answer never came, `happened` those of them that the log has."""

    disturbances: int
    seconds: float
    writes: int
    answered: int
    unknown: int
    happened: int
    lists: int
    watches: int
    events: int
    problems: Sequence[str]


def run(target: Target, disturbances: int, *, writers: int = 8, watchers: int = 4, seed: int = 1) -> Result:
    """Makes a history in which the servers are disturbed so often. Raises RuntimeError if one of them doesn't start again."""
    chance, began, log = random.Random(seed), time.monotonic(), list[Logged]()
    try:
        credentials = target.start()
        since = targets.prepare(credentials[0])
        traffic = Traffic(credentials, writers, watchers, seed)
        traffic.start()
        for _ in range(disturbances):
            time.sleep(chance.uniform(*_TRAFFIC))
            target.disturb(chance)
            log += target.log(log[-1].revision if log else since)
            if log and log[-1].revision > since + _KEPT_REVISIONS:
                target.compact(log[-1].revision - _KEPT_REVISIONS)
        traffic.stop()
        target.disturb(chance)  # the log is complete then
        log += target.log(log[-1].revision if log else since)
    finally:
        target.stop()
    history = History(since, traffic.writes, traffic.reads, traffic.watches, log)
    _look_up(history)
    return _result(disturbances, time.monotonic() - began, history)


@contextmanager
def target_of(store: str, *, servers: int = 2, sync: str = "full", bug: str = "") -> Iterator[Target]:
    """A target in a folder of its own. Raises OSError without an etcd."""
    with tempfile.TemporaryDirectory(prefix="robustness-") as name:
        folder = Path(name)
        yield EtcdServers(folder, servers, bug) if store == "etcd" else FileServer(folder, sync, bug)


def _look_up(history: History) -> None:
    """Gives answered deletions their revision, which answers don't have."""
    deletions = {logged.previous: logged.revision for logged in history.log if logged.deleted and logged.name}
    for write in history.writes:
        if write.verb == "delete" and write.outcome == "done":
            write.revision = deletions.get(write.expected, -1)


def _result(disturbances: int, seconds: float, history: History) -> Result:
    values = {logged.value for logged in history.log if not logged.deleted}
    unknown = [write for write in history.writes if write.outcome == "unknown"]
    return Result(
        disturbances,
        seconds,
        len(history.writes),
        sum(write.outcome == "done" for write in history.writes),
        len(unknown),
        sum(write.value in values for write in unknown if write.verb != "delete"),
        len(history.reads),
        len(history.watches),
        sum(len(watch.events) for watch in history.watches),
        problems(history),
    )


def _told(result: Result) -> str:
    return (
        f"{result.disturbances} disturbances in {result.seconds:.0f} s: {result.writes} writes, {result.answered} answered, "
        f"{result.unknown} without an answer, of which {result.happened} happened; {result.lists} lists; "
        f"{result.watches} watches with {result.events} events; "
        f"{len(result.problems)} problems"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("conformance.robustness")
    parser.add_argument("--store", choices=("file", "etcd"), default="file")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--disturbances", type=int, default=10)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--watchers", type=int, default=4)
    parser.add_argument("--sync", choices=("full", "normal", "off"), default="full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bug", choices=sorted(BUGS), default="")
    parser.add_argument("--bugs", action="store_true")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args(arguments)
    if options.bugs:
        return _try_bugs(options.disturbances)
    with target_of(options.store, servers=options.servers, sync=options.sync, bug=options.bug) as target:
        result = run(
            target, options.disturbances, writers=options.writers, watchers=options.watchers, seed=options.seed
        )
    if options.output == "json":
        print(json.dumps({name: getattr(result, name) for name in Result.__slots__}))
    else:
        print(_told(result))
        for problem in result.problems[:40]:
            print(f"  {problem}")
    return 1 if result.problems else 0


def _try_bugs(disturbances: int) -> int:
    missed = []
    for bug in BUGS:
        try:
            with target_of("file", sync="off", bug=bug) as target:
                found = run(target, disturbances).problems
        except RuntimeError as error:  # the server itself has noticed
            found = [str(error)]
        checks = sorted({problem.partition(":")[0] for problem in found})
        print(f"{bug}: {'found by ' + ', '.join(checks) if found else 'MISSED'}", flush=True)
        missed += [] if found else [bug]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
