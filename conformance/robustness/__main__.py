"""`python -m conformance.robustness [--store=file|etcd] [--disturbances N]`: traffic on servers that are killed again and again.

With `file` that is one server with a data directory; with `etcd` several servers on one etcd of one member or three, and with `--real
ASSETS` also a kube-apiserver. They, etcd, their networks and disks are disturbed; `--disturb NAME` chooses how. In the end the histories
of all clients are checked against the log of the store. `--history FILE` writes them (see history.py), and `--check FILE` checks such a
file again. `attacks` as the first argument attacks a server instead (attacks/command.py), and the name of a guarantee, or `guarantees` for
all, tries that (guarantees/command.py).

`--bug NAME` plants one of the bugs of planted.py, which the checks must find; `--bugs` does so with each in turn. Exit status 1: something
is wrong.
"""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from conformance.robustness import disks
from conformance.robustness.attacks import command as attacks
from conformance.robustness.etcd_servers import Options
from conformance.robustness.guarantees import command as guarantees
from conformance.robustness.guarantees.every import GUARANTEES
from conformance.robustness.guarantees.guarantee import Skipped
from conformance.robustness.guarantees.storage.histories import found_by
from conformance.robustness.harness import Plan, Result, run, target_of
from conformance.robustness.history import load, save
from conformance.robustness.planted import BUGS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("conformance.robustness")
    parser.add_argument("--store", choices=("file", "etcd"), default="file")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--members", type=int, choices=(1, 3), default=1, help="of etcd")
    parser.add_argument("--real", type=Path, help="a folder with kube-apiserver, which is put beside the servers")
    parser.add_argument("--disturbances", type=int, default=10)
    parser.add_argument("--disturb", action="append", default=[], metavar="NAME", help="one kind; may be repeated")
    parser.add_argument("--pace", type=float, default=1.0, help="a factor for the pauses between disturbances")
    parser.add_argument("--seconds", type=float, default=math.inf, help="ends the run early")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--reflectors", type=int, default=4)
    parser.add_argument("--compaction", type=float, default=0.0, help="seconds between two compactions, 0 for none")
    parser.add_argument("--small-disk", action="store_true", help="one that can be full; needs root")
    parser.add_argument("--sync", choices=("full", "normal", "off"), default="full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bug", choices=sorted(BUGS), default="")
    parser.add_argument("--bugs", action="store_true")
    parser.add_argument("--history", type=Path, help="a file for the history, as JSON lines")
    parser.add_argument("--check", type=Path, help="checks the history in a file")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    return parser


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["attacks"]:
        return attacks.main(arguments[1:])
    if arguments[:1] and arguments[0] in (guarantees.ALL, *GUARANTEES):
        return guarantees.main(arguments[0], arguments[1:])
    options = _parser().parse_args(arguments)
    if options.bugs:
        return _try_bugs(options.store, options.seed)
    if options.check:
        try:
            return _report(Result.of(load(options.check), 0.0), options.output)
        except (OSError, msgspec.MsgspecError) as error:
            print(f"{options.check} is no history: {error}", file=sys.stderr)
            return 1
    if options.small_disk:
        disks.in_own_namespace(arguments)
    servers = Options(options.servers, options.members, options.bug, options.real, options.small_disk)
    plan = Plan(
        options.disturbances,
        options.disturb,
        options.writers,
        options.readers,
        options.reflectors,
        options.seed,
        options.compaction,
        options.pace,
        options.seconds,
    )
    began = time.monotonic()
    try:
        with target_of(options.store, servers, options.sync) as target:
            history = run(target, plan)
    except (OSError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    seconds = time.monotonic() - began
    if options.history:
        save(history, options.history)
    return _report(Result.of(history, seconds), options.output)


def _report(result: Result, output: str) -> int:
    if output == "json":
        print(msgspec.json.encode(result).decode())
        return 1 if result.problems else 0
    print(result.text())
    for check, count in Counter(problem.partition(":")[0] for problem in result.problems).items():
        print(f"  {check}: {count}")
    for problem in result.problems[:40]:
        print(f"  {problem[:1000]}")
    return 1 if result.problems else 0


def _try_bugs(store: str, seed: int) -> int:
    missed = 0
    for bug in BUGS.values():
        if bug.store in ("", store):
            try:
                checks = found_by(bug, store, seed)
            except Skipped as missing:
                print(missing, file=sys.stderr)
                return 1
            print(f"{bug.name}: {'found by ' + ', '.join(checks) if checks else 'MISSED'}", flush=True)
            missed += not checks
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
