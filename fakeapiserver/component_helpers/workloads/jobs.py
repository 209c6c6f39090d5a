"""Functions on Jobs (upstream: pkg/controller/job/util/utils.go)."""

from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"


def finished_condition(job: Object) -> dict[str, Any] | None:
    """The condition Complete or Failed that holds; None for a job that hasn't finished."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in (COMPLETE, FAILED) and condition["status"] == "True":
            row: dict[str, Any] = condition
            return row
    return None


def finished_as(job: Object) -> str:
    """`Complete`, `Failed`, or "" for a job that hasn't finished."""
    condition = finished_condition(job)
    return str(condition["type"]) if condition else ""
