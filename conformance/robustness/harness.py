"""A run: traffic on servers that are disturbed, and the history that its clients and the store have seen."""

import itertools
import math
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from conformance.robustness.checks.every import problems
from conformance.robustness.etcd_servers import EtcdServers, Options
from conformance.robustness.file_server import FileServer
from conformance.robustness.history import Disturbance, History
from conformance.robustness.target import Target
from conformance.robustness.traffic import Traffic, prepare

# Seconds of traffic before a disturbance, at least and at most.
_TRAFFIC: Final = (0.3, 2.0)


class Plan(Struct, frozen=True):
    """`disturbances` is their number. They are of `kinds`, each in turn, or of all kinds at random if that is empty. `compaction`: the
    seconds between two compactions, 0 for none. `pace`: a factor for the pauses between disturbances. The run goes on until the clients
    have made so many `requests`, and ends after `seconds` in any case. `seed` is that of all choices."""

    disturbances: int
    kinds: Sequence[str] = ()
    writers: int = 8
    readers: int = 2
    reflectors: int = 4
    seed: int = 1
    compaction: float = 0.0
    pace: float = 1.0
    seconds: float = math.inf
    requests: int = 0


@contextmanager
def target_of(store: str, options: Options | None = None, sync: str = "full") -> Iterator[Target]:
    """A target in a folder of its own. Raises OSError without an etcd."""
    options = options or Options()
    with tempfile.TemporaryDirectory(prefix="robustness-") as name:
        folder = Path(name)
        if store == "etcd":
            yield EtcdServers(folder, options)
        else:
            yield FileServer(folder, sync, options.bug, on_small_disk=options.on_small_disk)


def run(target: Target, plan: Plan) -> History:
    """Makes a history. Raises RuntimeError if a server doesn't start again, ValueError for an unknown kind of disturbance."""
    chance, disturbances = random.Random(plan.seed), list[Disturbance]()
    possible = target.disturbances
    if unknown := [kind for kind in plan.kinds if kind not in possible]:
        raise ValueError(f"{unknown[0]!r} can't be done here; possible are: {', '.join(possible)}")
    kinds = [*(plan.kinds or possible)]
    try:
        credentials = target.start()
        since = prepare(credentials)
        target.follow(since)
        if plan.compaction:
            target.compact_every(plan.compaction)
        traffic = Traffic(
            credentials, (plan.writers, plan.readers, plan.reflectors), plan.seed, with_events=target.expiry > 0
        )
        traffic.start()
        end = time.monotonic() + plan.seconds
        for number in itertools.count():
            if time.monotonic() > end or (number >= plan.disturbances and traffic.requests >= plan.requests):
                break
            time.sleep(chance.uniform(*_TRAFFIC) * plan.pace)
            kind = kinds[number % len(kinds)] if plan.kinds else chance.choice(kinds)
            began = time.monotonic()
            possible[kind](chance)
            disturbances.append(Disturbance(kind, began, time.monotonic()))
        time.sleep(chance.uniform(*_TRAFFIC))
        late = traffic.stop()
        log = target.log()
    finally:
        target.stop()
    reading = traffic.reading
    return History(since, traffic.writes, reading.reads, reading.watches, log, disturbances, late, target.expiry)


class Result(Struct, frozen=True):
    """`unknown` counts the writes without an answer, `happened` those of them that the log has."""

    disturbances: int
    seconds: float
    writes: int
    answered: int
    unknown: int
    happened: int
    reads: int
    watches: int
    events: int
    revisions: int
    problems: Sequence[str]

    @classmethod
    def of(cls, history: History, seconds: float) -> "Result":
        values = {logged.content.value for logged in history.log if not logged.deleted}
        marks = {logged.content.mark for logged in history.log if not logged.deleted}
        unknown = [write for write in history.writes if write.outcome == "unknown"]
        happened = sum(
            write.content.mark in marks if write.content.value is None else write.content.value in values
            for write in unknown
            if write.verb != "delete"
        )
        return cls(
            len(history.disturbances),
            seconds,
            len(history.writes),
            sum(write.outcome == "done" for write in history.writes),
            len(unknown),
            happened,
            len(history.reads),
            len(history.watches),
            sum(len(watch.events) for watch in history.watches),
            len(history.log),
            problems(history),
        )

    def text(self) -> str:
        return (
            f"{self.disturbances} disturbances in {self.seconds:.0f} s: {self.writes} writes, {self.answered} answered, "
            f"{self.unknown} without an answer, of which {self.happened} happened; {self.revisions} changes; {self.reads} reads; "
            f"{self.watches} watches with {self.events} events; {len(self.problems)} problems"
        )
