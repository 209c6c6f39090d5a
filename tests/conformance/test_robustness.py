"""The checks of histories, and short runs of the harness that kills servers."""

from collections.abc import Callable

import pytest

from conformance.robustness import checks
from conformance.robustness.__main__ import run, target_of
from conformance.robustness.history import History, Logged, Read, Seen, Watch, Write
from conformance.robustness.planted import BUGS
from fakeapiserver.cluster.processes.etcd_process import NoEtcd


def sound() -> History:
    """a is made at 11, changed at 13 and deleted at 14; 12 is something else."""
    writes = [
        Write("create", "a", "v1", 0, 0.0, 1.0, "done", 11),
        Write("update", "a", "v2", 11, 2.0, 3.0, "done", 13),
        Write("update", "a", "v3", 11, 2.0, 3.0, "refused"),
        Write("delete", "a", "v2", 13, 4.0, 5.0, "done", 14),
        Write("create", "a", "v4", 0, 6.0),
    ]
    log = [
        Logged(11, "a", "v1", 0, False),
        Logged(12, "", "", 0, False),
        Logged(13, "a", "v2", 11, False),
        Logged(14, "a", "v2", 13, True),
    ]
    reads = [Read(1.5, 1.6, 12, {"a": (11, "v1")}), Read(5.5, 5.6, 14, {})]
    events = [Seen("ADDED", 11, "a", "v1"), Seen("BOOKMARK", 12, "", ""), Seen("MODIFIED", 13, "a", "v2")]
    watches = [Watch(10, events), Watch(13, [Seen("DELETED", 14, "a", "v2")])]
    return History(10, writes, reads, watches, log)


def test_a_sound_history_has_no_problems() -> None:
    assert checks.problems(sound()) == []


def gap(history: History) -> None:
    history.log = [each for each in history.log if each.revision != 12]


def lost(history: History) -> None:
    history.log = history.log[:-1]


def twice(history: History) -> None:
    history.log = [*history.log, Logged(15, "a", "v2", 0, False)]


def by_nobody(history: History) -> None:
    history.log = [*history.log, Logged(15, "a", "v9", 0, False)]


def refused_but_done(history: History) -> None:
    history.log = [*history.log, Logged(15, "a", "v3", 0, False)]


def blind(history: History) -> None:
    history.writes[1].expected = 10


def replaced_unseen(history: History) -> None:
    history.log[2].previous = 10


def stale(history: History) -> None:
    history.reads = [Read(5.5, 5.6, 12, {"a": (11, "v1")})]


def torn(history: History) -> None:
    history.reads = [Read(5.5, 5.6, 14, {"a": (13, "v2")})]


def two_of_one_revision(history: History) -> None:
    history.writes[0].revision = 13


def late(history: History) -> None:
    history.writes[0].revision = 20


def unordered(history: History) -> None:
    history.watches[0].events.reverse()


def repeated(history: History) -> None:
    history.watches[0].events.append(history.watches[0].events[-1])


def missed(history: History) -> None:
    del history.watches[0].events[0]


def early(history: History) -> None:
    history.watches[0].events[1].revision = 13
    del history.watches[0].events[2]


def mistaken(history: History) -> None:
    history.watches[0].events[2].type = "ADDED"


def without_its_last_state(history: History) -> None:
    history.watches[1].events[0].value = "v1"


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        (gap, checks.revisions_are_dense),
        (two_of_one_revision, checks.revisions_are_unique),
        (lost, checks.nothing_answered_is_lost),
        (twice, checks.nothing_happens_twice),
        (by_nobody, checks.nothing_happens_that_nobody_did),
        (refused_but_done, checks.nothing_happens_that_nobody_did),
        (blind, checks.compare_and_swap_is_honest),
        (replaced_unseen, checks.compare_and_swap_is_honest),
        (stale, checks.reads_are_consistent),
        (torn, checks.reads_are_consistent),
        (late, checks.writes_keep_the_order_of_time),
        (unordered, checks.watches_are_ordered),
        (repeated, checks.watches_are_unique),
        (missed, checks.watches_are_reliable),
        (early, checks.bookmarks_come_after_everything_before),
        (mistaken, checks.watches_show_what_is_in_the_log),
        (without_its_last_state, checks.watches_show_what_is_in_the_log),
    ],
)
def test_each_damage_is_found(damage: Callable[[History], None], check: Callable[[History], object]) -> None:
    history = sound()
    damage(history)
    assert any(problem.startswith(f"{getattr(check, '__name__', '')}: ") for problem in checks.problems(history))


@pytest.mark.parametrize("store", ["file", "etcd"])
def test_servers_that_are_killed_keep_their_promises(store: str) -> None:
    try:
        with target_of(store) as target:
            result = run(target, 2)
    except NoEtcd as missing:
        pytest.skip(str(missing))
    assert result.problems == []
    assert result.answered > 20


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    """Chance decides which requests meet: three histories at most."""
    for seed in range(3):
        try:
            with target_of("file", sync="off", bug=bug) as target:
                if run(target, 3, seed=seed).problems:
                    return
        except RuntimeError as error:
            assert "is damaged" in str(error)  # noqa: PT017
            return
    raise AssertionError("no check has found it")
