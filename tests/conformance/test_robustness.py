"""Short runs of the harness that disturbs servers, and the planted bugs that its checks find."""

from pathlib import Path

import pytest

from conformance.robustness.__main__ import main
from conformance.robustness.checks.every import problems
from conformance.robustness.etcd_servers import Options
from conformance.robustness.guarantees.guarantee import Skipped
from conformance.robustness.guarantees.storage.histories import found_by
from conformance.robustness.harness import Plan, Result, run, target_of
from conformance.robustness.history import load, save
from conformance.robustness.planted import BUGS
from fakeapiserver.cluster.processes.etcd_process import NoEtcd

FILE = Plan(3, ("the server is killed", "the server is killed and the log's end is torn", "the server is stopped"))
ETCD = Plan(
    4, ("a server is killed", "etcd is killed and the log's end is torn", "a network is cut", "etcd is stopped")
)
LEADERS = Plan(3, ("the leader is killed", "a follower is parted", "the leader is stopped"))


def checked(store: str, plan: Plan, options: Options, folder: Path) -> None:
    try:
        with target_of(store, options) as target:
            history = run(target, plan)
    except NoEtcd as missing:
        pytest.skip(str(missing))
    result = Result.of(history, 0.0)
    assert result.problems == []
    assert result.answered > 5
    assert result.events > 5
    file = folder / "history.jsonl"
    save(history, file)
    assert problems(load(file)) == []


@pytest.mark.parametrize(("store", "plan"), [("file", FILE), ("etcd", ETCD)], ids=["file", "etcd"])
def test_servers_that_are_disturbed_keep_their_promises(store: str, plan: Plan, tmp_path: Path) -> None:
    checked(store, plan, Options(), tmp_path)


@pytest.mark.slow
def test_servers_on_three_members_of_etcd_keep_their_promises(tmp_path: Path) -> None:
    checked("etcd", LEADERS, Options(members=3), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["file", "etcd"])
def test_compaction_all_the_time_loses_nothing(store: str, tmp_path: Path) -> None:
    kinds = {"file": ["the server is killed"], "etcd": ["a network is cut", "a server is killed"]}
    checked(store, Plan(2, kinds[store], compaction=0.1), Options(), tmp_path)


# All of them take ten minutes: `python -m conformance.robustness --bugs`, and the same with `--store=etcd`.
SAMPLE = (
    "answered_too_early",
    "lasting_deletions",
    "skipped_events",
    "events_lost_after_a_reconnect",
    "reads_that_do_not_wait",
    "compare_on_creation",
    "unknown_transactions_repeated",
    "leases_dropped",
)


@pytest.mark.slow
@pytest.mark.parametrize("bug", SAMPLE)
def test_a_planted_bug_is_found(bug: str) -> None:
    """Chance decides which requests meet: three histories at most."""
    try:
        for seed in range(3):
            if found_by(BUGS[bug], BUGS[bug].store or "file", seed):
                return
    except Skipped as missing:
        pytest.skip(str(missing))
    raise AssertionError("no check has found it")


def test_an_unknown_disturbance_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--disturb=an earthquake"]) == 1
    assert "'an earthquake' can't be done here; possible are: the server is killed" in capsys.readouterr().err


def test_a_file_that_is_no_history_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"type":"logged"}\n')
    assert main([f"--check={tmp_path / 'other.jsonl'}"]) == 1
    assert "no history" in capsys.readouterr().err
