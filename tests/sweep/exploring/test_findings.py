"""Cases that show the same bug are one finding, by the simplest of them."""

from collections.abc import Sequence

import pytest

from fakeapiserver.sweep.exploring import findings
from fakeapiserver.sweep.exploring.findings import SpecResult
from fakeapiserver.sweep.judging import Symptom

LABELS = "services metadata.labels.a"
PORTS = "services spec.ports"


def result(name: str, fields: Sequence[str], *symptoms: str) -> SpecResult:
    found = [
        Symptom("back" if each.startswith("back ") else "fresh", each.removeprefix("back "), each) for each in symptoms
    ]
    return SpecResult(name, fields, found, 1.0)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (
            [result("spec = {}", ["spec"], LABELS), result("labels unset", ["spec.svc.labels"], LABELS)],
            [["labels unset", "spec = {}"]],
        ),
        (
            [result("spec = {}", ["spec"], LABELS, PORTS), result("labels unset", ["spec.svc.labels"], LABELS)],
            [["labels unset"], ["spec = {}"]],
        ),
        (
            [
                result("spec = {}", ["spec"], f"back {LABELS}", PORTS),
                result("labels unset", ["spec.svc.labels"], LABELS),
                result("ports = []", ["spec.ports"], PORTS),
            ],
            [["labels unset", "spec = {}"], ["ports = []"]],
        ),
        ([result("a", ["spec.a"], LABELS), result("b", ["spec.a"], PORTS)], [["a", "b"]]),
        ([result("a", ["spec.a"], LABELS), result("b", ["spec.b"], LABELS)], [["a"], ["b"]]),
        ([result("no change", [], LABELS), result("b", ["spec.b"], LABELS)], [["no change", "b"]]),
        ([result("no change", [], LABELS), result("b", ["spec.b"], LABELS, PORTS)], [["no change"], ["b"]]),
        (
            [result("a, then b", ["spec.a", "spec.b"], LABELS, PORTS), result("a", ["spec.a"], LABELS)],
            [["a"], ["a, then b"]],
        ),
    ],
)  # fmt: skip
def test_cases_are_grouped(results: list[SpecResult], expected: list[list[str]]) -> None:
    assert [each.causes for each in findings.grouped(results)] == expected


def test_a_finding_about_an_object_is_about_the_rest() -> None:
    results = [result("spec = {}", ["spec"], LABELS, PORTS), result("labels unset", ["spec.svc.labels"], LABELS)]
    assert [[each.subject for each in finding.symptoms] for finding in findings.grouped(results)] == [[LABELS], [PORTS]]
