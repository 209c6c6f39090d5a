"""Histories of HTTP requests on servers that are disturbed, checked against the log of the store; planted bugs, which the checks find."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from conformance.robustness.bug import Bug
from conformance.robustness.checks.every import problems
from conformance.robustness.etcd_servers import Options
from conformance.robustness.guarantees.guarantee import Report, Skipped, progress
from conformance.robustness.harness import Plan, Result, run, target_of
from conformance.robustness.planted import BUGS
from fakeapiserver.cluster.processes.etcd_process import NoEtcd

# By store: what is disturbed, without which the history of a file could not be compacted.
_KILLS: Final[Mapping[str, Sequence[str]]] = {
    "file": ("the server is killed",),
    "etcd": ("a server is killed", "etcd is killed"),
}
_ETCD_FAULTS: Final = ("etcd is stopped", "etcd is killed", "a network is cut", "a network is slow")
_COMPACTION: Final = 0.1
# Problems of a run that a report shows.
_SHOWN: Final = 10
# Histories in which a planted bug has to be found, since chance decides which requests meet.
_SEEDS: Final = 3


def histories(full: bool) -> Report:
    """16 writers and 16 watchers, with a compaction every 0.1 s: ten histories of 100,000 requests in full, one of 1,000 for CI. In full
    a server is killed every 23 seconds, so that there are more requests than starts."""
    seeds, requests = (5, 100_000) if full else (1, 1_000)
    plans = [
        (store, Plan(1, _KILLS[store], 16, 2, 16, seed, _COMPACTION, 20.0 if full else 0.5, requests=requests))
        for seed in range(seeds)
        for store in (_KILLS if full else ("file",))
    ]
    return _report(plans)


def kills(full: bool) -> Report:
    """kill -9 of the server, and of etcd: 200 each in full, 3 for CI."""
    count, stores = (200, tuple(_KILLS)) if full else (3, ("file",))
    return _report([(store, Plan(count * len(_KILLS[store]), _KILLS[store], pace=0.3)) for store in stores])


def etcd_faults(full: bool) -> Report:
    """Two servers on one etcd that is stopped, killed, cut off and compacted: 100 times in full, 2 for CI."""
    return _report([("etcd", Plan(100 if full else 2, _ETCD_FAULTS, compaction=_COMPACTION))])


def planted_bugs(full: bool) -> Report:
    """In full every bug, one that needs no etcd for CI."""
    bugs = BUGS.values() if full else (BUGS["answered_too_early"],)
    missed, found = list[str](), 0
    for bug in bugs:
        for store in (bug.store,) if bug.store else ("file", "etcd"):
            checks = next(filter(None, (found_by(bug, store, seed) for seed in range(1, _SEEDS + 1))), [])
            progress(f"{bug.name} ({store}): {', '.join(checks) or 'not found'}")
            if checks:
                found += 1
            else:
                missed.append(f"{bug.name} ({store}) is not found")
    return Report({"bugs that were found": str(found)}, missed)


def found_by(bug: Bug, store: str, seed: int) -> list[str]:
    """Returns the names of the checks that find a planted bug, or the words of a server that has noticed it itself. Raises Skipped without
    an etcd."""
    try:
        with target_of(store, Options(bug=bug.name, members=bug.members), sync="off") as target:
            history = run(
                target,
                Plan(bug.disturbances, bug.kinds, seed=seed, compaction=bug.compaction, reflectors=bug.reflectors),
            )
    except NoEtcd as missing:
        raise Skipped(str(missing)) from None
    except RuntimeError as error:
        return [str(error)]
    return sorted({problem.partition(":")[0] for problem in problems(history)})


def _report(plans: Sequence[tuple[str, Plan]]) -> Report:
    totals, found = Counter[str](), list[str]()
    for store, plan in plans:
        try:
            with target_of(store) as target:
                began = time.monotonic()
                result = Result.of(run(target, plan), time.monotonic() - began)
        except NoEtcd as missing:
            raise Skipped(str(missing)) from None
        progress(f"{store}, seed {plan.seed}: {result.text()}")
        totals += Counter(
            {
                "histories": 1,
                "disturbances": result.disturbances,
                "requests": result.writes + result.reads,
                "writes that were answered": result.answered,
                "writes without an answer": result.unknown,
                "... of which happened": result.happened,
                "changes in the logs": result.revisions,
                "watches": result.watches,
                "events": result.events,
            }
        )
        found += [f"{store}, seed {plan.seed}: {problem}" for problem in result.problems[:_SHOWN]]
    return Report({name: f"{count:,}" for name, count in totals.items()}, found)
