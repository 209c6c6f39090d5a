"""The report as JSON and JUnit XML."""

import json
from xml.etree import ElementTree

import pytest

from fakeapiserver.sweep import reporting
from fakeapiserver.sweep.grouping import Evidence, group
from fakeapiserver.sweep.judging import Comparison, Symptom
from fakeapiserver.sweep.perturbation import KINDS, Kind, Perturbation, WritePoint
from fakeapiserver.sweep.report import document, junit, wording
from fakeapiserver.sweep.report.document import SweepDocument, Swept
from fakeapiserver.sweep.states import Difference
from fakeapiserver.sweep.sweep import CaseResult, Report
from fakeapiserver.sweep.timeline import Event

POINT = WritePoint("create", "secrets", "", "shop", "db", 1)
CRASH, REFUSAL, LATE, LEASE, RESTART = (
    Perturbation("crash", POINT, "after"),
    Perturbation("refuse", POINT, "before", 500),
    Perturbation("late", resource="secrets"),
    Perturbation("lease", step=0, until=0),
    Perturbation("restart", POINT),
)
MISSING = Symptom("missing", "configmaps shop/db", "the ConfigMap shop/db is missing \x1b[31m\x00\ud800")
STATES = [
    Comparison(
        "in the end",
        "undisturbed",
        "with the surprise",
        [
            Difference("configmaps shop/db", "", "is missing", "ConfigMap", wanted='{"data": {}}'),
            Difference("pods shop/db", "spec.x", "has spec.x null", "Pod", actual="null"),
        ],
    )
]


def swept() -> SweepDocument:
    results = [
        CaseResult(CRASH, [MISSING], 1.25, timeline=[Event(0.0, "request", "create secrets shop/db 201", is_struck=True)]),
        CaseResult(REFUSAL, [MISSING], 1.0),
        CaseResult(LATE, [], 1.0),
        CaseResult(LEASE, [], 1.0, reached=False),
        CaseResult(RESTART, [], 1.0, error="OSError: \x08"),
        CaseResult(LATE, [], 1.0, repeats=False),
    ]  # fmt: skip
    evidence = [
        Evidence(each.perturbation.id, each.perturbation.kind, each.symptoms, 1.25, each.timeline, STATES, "Killed.")
        for each in results
    ]
    unsure = [each for each in results if each.error or not each.repeats]
    report = Report(group(evidence), results, 8, 12.0, unsure)
    return reporting.document_of(report, Swept("./manager", "scenario.yaml", lambda finding: finding.causes[0]))


def test_json() -> None:
    data = json.loads(document.json_of(swept()))
    [finding] = data.pop("findings")
    results = data.pop("results")
    assert data == {
        "version": 1,
        "command": "sweep",
        "operator": "./manager",
        "scenario": "scenario.yaml",
        "cases": 6,
        "planned": 8,
        "seconds": 12.0,
        "notes": ["2 cases of those planned were not run: the budget was used up."],
        "notReached": [LEASE.id],
        "unsure": [RESTART.id, LATE.id],
    }
    assert finding == {
        "title": MISSING.text,
        "surprise": "Killed.",
        "symptoms": [{"kind": "missing", "subject": MISSING.subject, "text": MISSING.text}],
        "causes": [CRASH.id, REFUSAL.id],
        "repeat": CRASH.id,
        "timeline": [{"time": 0.0, "lane": "request", "text": "create secrets shop/db 201", "isStruck": True}],
        "states": [
            {
                "when": "in the end",
                "wanted": "undisturbed",
                "actual": "with the surprise",
                "differences": [
                    {"object": "configmaps shop/db", "kind": "ConfigMap", "change": "missing", "wanted": {"data": {}}},
                    {"object": "pods shop/db", "kind": "Pod", "change": "changed", "path": "spec.x", "actual": None},
                ],
            }
        ],
        "seconds": 1.25,
    }
    outcomes = ["finding", "finding", "passed", "not reached", "error", "unsure"]
    assert [each["outcome"] for each in results] == outcomes
    assert results[0] == {
        "name": CRASH.id,
        "kind": "crash",
        "outcome": "finding",
        "seconds": 1.25,
        "finding": 1,
        "message": "",
    }


def test_junit() -> None:
    suite = ElementTree.fromstring(junit.junit_of(swept(), ["the details \x07 of it"]))
    counts = {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped", "time")}
    assert counts == {"name": "sweep", "tests": "6", "failures": "2", "errors": "1", "skipped": "1", "time": "12.00"}
    tests = suite.findall("testcase")
    assert [each.get("name") for each in tests][2::3] == [LATE.id, f"{LATE.id} #2"]
    assert len({(each.get("classname"), each.get("name")) for each in tests}) == 6
    assert [[child.tag for child in each] for each in tests] == [
        ["failure"],
        ["failure"],
        [],
        ["skipped"],
        ["error"],
        ["system-out"],
    ]
    failure = tests[0][0]
    assert (failure.get("message"), failure.text) == ("the ConfigMap shop/db is missing ?[31m??", "the details ? of it")


@pytest.mark.parametrize(
    ("perturbation", "words"),
    [
        (
            CRASH,
            "The operator was killed when the API server had stored its write (create secrets shop/db), and was started again.",
        ),
        (
            Perturbation("crash", POINT, "before"),
            "The operator was killed before the API server stored its write (create secrets shop/db), and was started again.",
        ),
        (
            REFUSAL,
            "The API server did not store a write (create secrets shop/db): the operator got status 500 as the answer.",
        ),
        (
            Perturbation("refuse", POINT, "after"),
            "The API server stored a write (create secrets shop/db), but the operator got a reset connection as the answer.",
        ),
        (LEASE, "Another candidate took the operator's lease in step 1."),
    ],
)
def test_surprises_in_plain_words(perturbation: Perturbation, words: str) -> None:
    assert wording.of(perturbation) == words


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_words(kind: Kind) -> None:
    words = wording.of(Perturbation(kind, POINT, step=0, until=1, resource="secrets"))
    assert words.endswith(".")
    assert not words.startswith("The surprise")
