"""The turns of an eviction's responders: what the next status may say, at 12:00."""

from typing import Any, Final

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.registry.lifecycle.responders import responders_errors

NOON: Final = seconds_of("2026-01-01T12:00:00Z") or 0.0
FIRST: Final = "example.com/first"
SECOND: Final = "example.com/second"


def at(seconds: float) -> str:
    return rfc3339(NOON + seconds)


def status(first: str, second: str, **report: str) -> dict[str, Any]:
    """Both responders in these states; `report` is the first one's."""
    second_report = {"startTime": at(0)} if second == "Active" else {}
    return {
        "targetResponders": [
            {"name": SECOND, "priority": 2000, "state": second},
            {"name": FIRST, "priority": 3000, "state": first},
        ],
        "responders": [{"name": SECOND, **second_report}, {"name": FIRST, **report}],
    }


STARTED: Final = status("Active", "Inactive", startTime=at(-60))
FINISHED: Final = status("Active", "Inactive", startTime=at(-60), completionTime=at(-1))
SILENT: Final = status("Active", "Inactive", startTime=at(-3600))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, status("Active", "Inactive", startTime=at(0))),
        (STARTED, status("Active", "Inactive", startTime=at(-60), heartbeatTime=at(0))),
        (STARTED, FINISHED),
        (FINISHED, status("Completed", "Active", startTime=at(-60), completionTime=at(-1))),
        (SILENT, status("Interrupted", "Active", startTime=at(-3600))),
    ],
)
def test_a_status_goes_on(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert responders_errors(new, old, has_ended=False, now=NOON) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ({}, status("Inactive", "Active"), "this responder is next in line"),
        ({}, status("Active", "Inactive", startTime=at(-31)), "must be set to the present time"),
        (STARTED, status("Active", "Active", startTime=at(-60)), "the previously active has not finished processing"),
        (
            STARTED,
            status("Completed", "Active", startTime=at(-60)),
            "must stay Active because the responder is in progress",
        ),
        (SILENT, status("Completed", "Active", startTime=at(-3600)), "cannot become Completed"),
        (SILENT, status("Inactive", "Active", startTime=at(-3600)), "this responder must reach a final state"),
        (STARTED, status("Active", "Inactive", startTime=at(-60), heartbeatTime=at(-90)), "must occur after"),
        (STARTED, status("Active", "Inactive", startTime=at(-60), expectedCompletionTime=at(-31)), "to the past time"),
    ],
)
def test_a_status_breaks_the_order(old: dict[str, Any], new: dict[str, Any], problem: str) -> None:
    assert any(problem in error.detail for error in responders_errors(new, old, has_ended=False, now=NOON))


def test_the_end_activates_no_responder() -> None:
    """The active responder has to finish, and the next one stays inactive."""
    new = status("Active", "Inactive", startTime=at(-60))
    errors = responders_errors(new, STARTED, has_ended=True, now=NOON)
    assert [error.detail for error in errors] == [
        "must be one of: Canceled, Completed, Interrupted, because the eviction request has finished processing"
    ]
