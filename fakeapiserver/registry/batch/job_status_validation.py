"""Validation of a job's status and of its changes; an invalid value that doesn't change is no reason to refuse an update.

Upstream: pkg/apis/batch/validation/validation.go (ValidateJobStatusUpdate), pkg/registry/batch/job/strategy.go
(getStatusValidationOptions).
"""

from collections.abc import Iterator
from math import inf
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.registry.batch.job_policy_validation import count_indexes, index_interval
from fakeapiserver.registry.core.field_formats import duplicate_errors, non_negative_errors

_STATUS: Final = Path("status")
_CONDITIONS: Final = _STATUS.child("conditions")
_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")


def job_status_update_errors(obj: Object, old: Object) -> ErrorList:
    status, before, spec = obj.get("status") or {}, old.get("status") or {}, obj["spec"]
    errors = [error for name in _COUNTS for error in non_negative_errors(status.get(name) or 0, _STATUS.child(name))]
    errors += _uncounted_errors(status.get("uncountedTerminatedPods") or {})
    errors += _end_errors(status, before)
    errors += _finished_errors(status, before, spec)
    errors += _index_errors(status, before, spec)
    errors += _running_errors(status, before)
    errors += _success_errors(status, spec)
    return errors + list(_transition_errors(status, before, spec))


def _is(status: Object, *kinds: str) -> bool:
    """Reports whether a condition of one of these kinds is True."""
    return any(row.get("type") in kinds and row.get("status") == "True" for row in status.get("conditions") or ())


def _finished(status: Object) -> bool:
    return _is(status, "Complete", "Failed")


def _changed(status: Object, before: Object, *names: str) -> bool:
    return any((name in status, status.get(name)) != (name in before, before.get(name)) for name in names)


def _seconds(time: str | None) -> float:
    return seconds_of(time or "") or -inf


def _turned(status: Object, before: Object, *kinds: str) -> bool:
    return any(_is(status, kind) != _is(before, kind) for kind in kinds)


def _of_conditions(detail: str) -> field.Error:
    return field.invalid(_CONDITIONS, field.OMIT, detail)


def _uncounted_errors(pods: Object) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for i, uid in enumerate(pods.get(name) or ()):
            at = _STATUS.child("uncountedTerminatedPods", name).index(i)
            errors += duplicate_errors(uid, seen, at) if uid else [field.invalid(at, uid, "must not be empty")]
    return errors


def _end_errors(status: Object, before: Object) -> ErrorList:
    """The errors in the conditions and times of a job's end."""
    complete, failed = _is(status, "Complete"), _is(status, "Failed")
    # A time that is there and null is Go's zero time.
    has_completed, completed = "completionTime" in status, status.get("completionTime")
    at = _STATUS.child("completionTime")
    errors: ErrorList = []
    if complete and failed and _turned(status, before, "Complete", "Failed"):
        errors.append(_of_conditions("cannot set Complete=True and Failed=true conditions"))
    if complete and _is(status, "FailureTarget") and _turned(status, before, "Complete", "FailureTarget"):
        errors.append(_of_conditions("cannot set Complete=True and FailureTarget=true conditions"))
    if _turned(status, before, "Complete") or _changed(status, before, "completionTime"):
        if has_completed and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.append(field.invalid(at, completed, detail))
        if complete and not has_completed:
            errors.append(field.required(at, "completionTime is required for Complete jobs"))
    moved = _changed(status, before, "startTime", "completionTime")
    if moved and has_completed and "startTime" in status and _seconds(completed) < _seconds(status["startTime"]):
        errors.append(field.invalid(at, completed, "must be equal to or after `startTime`"))
    new = _turned(status, before, "Failed") or _changed(status, before, "failedIndexes")
    if new and failed and not _is(status, "FailureTarget"):
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.append(_of_conditions(detail))
    if complete and not _is(status, "SuccessCriteriaMet") and _turned(status, before, "Complete", "SuccessCriteriaMet"):
        errors.append(
            _of_conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
        )
    return errors


def _finished_errors(status: Object, before: Object, spec: Object) -> ErrorList:
    """The errors in the fields that a job must not have after its end."""
    if not _finished(status):
        return []
    ended = not _finished(before)
    errors: ErrorList = []
    if status.get("active", 0) > 0 and (ended or _changed(status, before, "active")):
        errors.append(field.invalid(_STATUS.child("active"), status["active"], "active>0 is invalid for finished job"))
    nothing_to_do = spec.get("suspend") is True and spec.get("completions") == 0
    if "startTime" not in status and not nothing_to_do and (ended or _changed(status, before, "startTime")):
        errors.append(field.required(_STATUS.child("startTime"), "startTime is required for finished job"))
    pods = status.get("uncountedTerminatedPods") or {}
    new = ended or _changed(status, before, "uncountedTerminatedPods")
    if new and (pods.get("failed") or pods.get("succeeded")):
        go_pods = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        at = _STATUS.child("uncountedTerminatedPods")
        errors.append(field.invalid(at, go_pods, "must be empty for finished job"))
    return errors


def _index_errors(status: Object, before: Object, spec: Object) -> ErrorList:
    errors: ErrorList = []
    completions = spec.get("completions")
    completed, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    at, failed_at = _STATUS.child("completedIndexes"), _STATUS.child("failedIndexes")
    new_completed = completed != before.get("completedIndexes", "")
    new_failed = _changed(status, before, "failedIndexes")
    if new_completed and completions is not None:
        errors += _format_errors(completed, completions, "completedIndexes", at)
    if new_failed and completions is not None and "backoffLimitPerIndex" in spec and failed is not None:
        errors += _format_errors(failed, completions, "failedIndexes", failed_at)
    if new_completed and completed and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(field.invalid(at, completed, detail))
    if new_failed and failed is not None and "backoffLimitPerIndex" not in spec:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(field.invalid(failed_at, failed, detail))
    if not (new_completed or new_failed) or completions is None or failed is None:
        return errors
    if (shared := _overlap(completed, failed, completions)) is not None:
        detail = f"failedIndexes and completedIndexes overlap at index: {shared}"
        errors.append(field.invalid(failed_at, failed, detail))
    return errors


def _format_errors(text: str, completions: int, name: str, path: Path) -> ErrorList:
    try:
        count_indexes(text, completions)
    except ValueError as error:
        return [field.invalid(path, text, f"error parsing {name}: {error}")]
    return []


def _overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both texts, as far as they are valid."""
    one, other = (_intervals(text, completions) for text in (completed, failed))
    i = j = 0
    while i < len(one) and j < len(other):
        (first, last), (start, end) = one[i], other[j]
        if first <= end and start <= last:
            return max(first, start)
        if first <= start:
            i += 1
        else:
            j += 1
    return None


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for part in text.split(","):
        try:
            intervals.append(index_interval(part, completions))
        except ValueError:
            continue  # the format has its own error
    return intervals


def _running_errors(status: Object, before: Object) -> ErrorList:
    errors: ErrorList = []
    ended = _finished(status) != _finished(before)
    terminating, ready, active = status.get("terminating"), status.get("ready"), status.get("active", 0)
    if terminating and _finished(status) and (ended or _changed(status, before, "terminating")) and terminating > 0:
        detail = "terminating>0 is invalid for finished job"
        errors.append(field.invalid(_STATUS.child("terminating"), terminating, detail))
    if ready is not None and ready > active and _changed(status, before, "ready", "active"):
        errors.append(field.invalid(_STATUS.child("ready"), ready, "cannot set more ready pods than active"))
    return errors


def _success_errors(status: Object, spec: Object) -> ErrorList:
    errors: ErrorList = []
    if _is(status, "SuccessCriteriaMet"):
        if _is(status, "Failed"):
            errors.append(_of_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
        if _is(status, "FailureTarget"):
            errors.append(_of_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    elif "successPolicy" in spec and _is(status, "Complete"):
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(_of_conditions(detail))
    return errors


def _transition_errors(status: Object, before: Object, spec: Object) -> Iterator[field.Error]:
    for kind in ("Failed", "Complete", "FailureTarget"):
        if _is(before, kind) and not _is(status, kind):
            yield _of_conditions(f"cannot disable the terminal {kind}=True condition")
    scales = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if scales else ("failed", "succeeded"):
        if status.get(name, 0) < before.get(name, 0):
            yield field.invalid(_STATUS.child(name), status.get(name, 0), f"cannot decrease the {name} counter")
    if "completionTime" in status and "completionTime" in before and _changed(status, before, "completionTime"):
        yield field.invalid(_STATUS.child("completionTime"), status["completionTime"], "field is immutable")
    resumes = _is(before, "Suspended") and any(
        row.get("type") == "Suspended" and row.get("status") == "False" for row in status.get("conditions") or ()
    )
    if "startTime" in before and _changed(status, before, "startTime") and not spec.get("suspend") and not resumes:
        detail = "field is immutable for unsuspended job once set"
        yield field.invalid(_STATUS.child("startTime"), status.get("startTime"), detail)
    if _is(before, "SuccessCriteriaMet") and not _is(status, "SuccessCriteriaMet"):
        yield _of_conditions("cannot disable the SuccessCriteriaMet=True condition")
    if _is(before, "Complete") and not _is(before, "SuccessCriteriaMet") and _is(status, "SuccessCriteriaMet"):
        yield _of_conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
