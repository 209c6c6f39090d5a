"""Validation of a job's status and of its changes."""

from typing import Any

import pytest

from fakeapiserver.registry.batch.job_status_validation import job_status_update_errors
from fakeapiserver.registry.batch.job_validation import job_update_errors

Json = dict[str, Any]
INDEXED = {"completionMode": "Indexed", "completions": 5, "parallelism": 2, "backoffLimitPerIndex": 1}
START, END = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"


def true(*kinds: str) -> list[Json]:
    return [{"type": kind, "status": "True"} for kind in kinds]


def complaints(status: Json, before: Json | None = None, **spec: Any) -> str:
    old = {"spec": spec, "status": before or {}}
    return "; ".join(str(error) for error in job_status_update_errors({"spec": spec, "status": status}, old))


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        ({"active": -1}, "status.active: Invalid value: -1: must be greater than or equal to 0"),
        ({"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a", ""]}}, 'failed[0]: Duplicate value: "a"'),
        ({"conditions": true("Complete", "Failed")}, "cannot set Complete=True and Failed=true conditions"),
        ({"completionTime": END}, "cannot set completionTime when there is no Complete=True condition"),
        ({"conditions": true("Complete")}, "completionTime is required for Complete jobs"),
        (
            {"conditions": true("Complete"), "startTime": END, "completionTime": START},
            "must be equal to or after `startTime`",
        ),
        ({"conditions": true("Failed")}, "without the FailureTarget=true condition"),
        ({"conditions": true("Failed"), "active": 1}, "active>0 is invalid for finished job"),
        ({"conditions": true("Failed")}, "startTime is required for finished job"),
        ({"completedIndexes": "3,1"}, "non-increasing order, previous: 3, current: 1"),
        ({"completedIndexes": "0-2", "failedIndexes": "2"}, "failedIndexes and completedIndexes overlap at index: 2"),
        ({"ready": 2, "active": 1}, "cannot set more ready pods than active"),
        ({"conditions": true("SuccessCriteriaMet", "Failed")}, "SuccessCriteriaMet=True and Failed=true"),
    ],
)
def test_what_a_status_must_not_say(status: Json, complaint: str) -> None:
    assert complaint in complaints(status, **INDEXED)


@pytest.mark.parametrize(
    ("before", "status", "complaint"),
    [
        ({"failed": 2}, {"failed": 1}, "cannot decrease the failed counter"),
        ({"conditions": true("Failed")}, {}, "cannot disable the terminal Failed=True condition"),
        ({"startTime": START}, {"startTime": END}, "field is immutable for unsuspended job once set"),
        ({"conditions": true("SuccessCriteriaMet")}, {}, "cannot disable the SuccessCriteriaMet=True condition"),
        ({"completedIndexes": "9"}, {"completedIndexes": "9", "active": 1}, ""),
    ],
)
def test_how_a_status_may_change(before: Json, status: Json, complaint: str) -> None:
    problems = complaints(status, before, **INDEXED)
    assert complaint in problems if complaint else not problems


@pytest.mark.parametrize(
    ("suspended", "change", "place"),
    [
        (True, {"nodeSelector": {"a": "b"}}, ""),
        (True, {"hostname": "x"}, "spec.template.spec: "),
        (False, {"nodeSelector": {"a": "b"}}, "spec.template: "),
    ],
)
def test_the_template_of_a_job_that_waits_may_change_in_part(suspended: bool, change: Json, place: str) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c"}]}
    spec = {"suspend": suspended, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}}
    old = {"metadata": {"name": "j"}, "spec": {**spec, "selector": {"matchLabels": {"a": "b"}}}}
    new = {"metadata": {"name": "j"}, "spec": {**old["spec"], "template": {**spec["template"], "spec": pod | change}}}
    fixed = [str(error) for error in job_update_errors(new, old) if "field is immutable" in str(error)]
    assert [error.startswith(place) for error in fixed] == ([True] if place else [])
