"""Sweeps find the bugs of the database operator, and none in the repaired one."""

import json
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fakeapiserver.cli.sweep import main
from fakeapiserver.sweep import scenario, sweep
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.process import Command

HERE = Path(__file__).parent
OPERATOR = [sys.executable, str(HERE / "database_operator.py")]
SCENARIO = HERE / "database.yaml"
# bug -> the perturbation that shows it, and the finding. The names are those of the published classes: a state between two writes, an
# outdated state, a state that was never seen.
BUGS = {
    "intermediate": (
        "crash after create secrets default/db-login",
        "after step 2, the ConfigMap default/db-initialised is missing",
    ),
    "stale": (
        "restart after step 4 with the state before delete persistentvolumeclaims default/data-db-0",
        "the PersistentVolumeClaim default/data-db-0 is deleted, although the undisturbed run keeps it",
    ),
    "unobserved": (
        "crash after delete persistentvolumeclaims default/data-db-1",
        "after step 2, the PersistentVolumeClaim default/data-db-2 exists, but should not",
    ),
    "conflict": (
        "conflict at update configmaps default/db-config",
        'after step 2, the ConfigMap default/db-config has data.size "3" instead of "1" (and 1 more)',
    ),
    "duplicate": (
        "refuse create secrets default/* with 504 once it is stored",
        "the Secret default/db-login-*2 exists, but should not",
    ),
}
pytestmark = pytest.mark.slow


def target(bug: str = "") -> Target:
    return Target(Command(OPERATOR, {"BUG": bug}), scenario.read(SCENARIO))


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug: str) -> None:
    name, text = BUGS[bug]
    known = sweep.learn(target(bug))
    report = sweep.sweep(target(bug), known, sweep.named(known, name))
    assert [finding.title for finding in report.findings] == [text]


def test_the_repaired_operator_has_no_bug() -> None:
    """A perturbation of each kind; `fakeapiserver sweep` runs all of them."""
    known = sweep.learn(target())
    firsts = {each.kind: each for each in reversed(known.plan)}
    named = [each for each in known.plan if each.id in {name for name, _ in BUGS.values()}]
    report = sweep.sweep(target(), known, [*firsts.values(), *named])
    assert [finding.title for finding in report.findings] == []
    assert all(result.reached for result in report.results)


def test_the_command_reports_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUG", "conflict")
    name, title = BUGS["conflict"]
    words = [f"--operator={shlex.join(OPERATOR)}", f"--scenario={SCENARIO}", f"--only={name}"]
    results = f"--results={tmp_path / 'results'}"
    assert main([*words, results, "--output=json"]) == 3
    document = json.loads(capsys.readouterr().out)
    (finding,) = document["findings"]
    assert (finding["title"], finding["causes"], document["cases"]) == (title, [name], 1)
    assert shlex.split(finding["repeat"]) == ["fakeapiserver", "sweep", *words]
    assert main([*words, results, "--output=junit"]) == 3  # nothing is run again
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    other = [word if not word.startswith("--operator") else "--operator=other" for word in words]
    assert main([*other, results]) == 1
    assert "has the results of another operator or scenario" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "--operator is missing"),
        (["--operator=x"], 2, "--scenario is missing"),
        (["--operator=x", "--scenario=missing.yaml"], 1, "No such file or directory"),
        (["--operator=x", f"--scenario={SCENARIO}", "--kinds=crush"], 2, "kinds are crash, away, refuse"),
        (["--operator=x", f"--scenario={SCENARIO}", "--jobs=0"], 2, "--jobs must be 1 or more"),
        (["--operator=x", f"--scenario={SCENARIO}", "--budget=soon"], 2, "invalid duration"),
        (["--operator=/no/such/program", f"--scenario={SCENARIO}"], 1, "there is no program '/no/such/program'"),
        (["--operator=false", f"--scenario={SCENARIO}"], 1, "ended with status 1"),
        (["--operator='x", f"--scenario={SCENARIO}"], 2, "the operator's command can't be read"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], words: list[str], status: int, message: str) -> None:
    assert main(words) == status
    assert message in capsys.readouterr().err
