"""The responders of an eviction, which take their turns: who may act, and what it may report.

The target responders are ordered by priority. The first one becomes active, and when it has reached a final state, the next one does. Only
the active one may change its report. The controller decides the states; validation holds every writer to this order.

Upstream: pkg/apis/lifecycle/validation/validation.go.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.lifecycle.declared import MOST_RESPONDERS

FINAL_STATES: Final = ("Canceled", "Completed", "Interrupted")
_TARGETS: Final = Path("status.targetResponders")
_REPORTS: Final = Path("status.responders")
_SKEW: Final = 30.0
_HEARTBEAT_DEADLINE: Final = 20 * 60.0
_LONGEST_WORK: Final = 10 * 365 * 24 * 3600.0
_KUBERNETES_PRIORITIES: Final = {"imperative-eviction.k8s.io/evictor": 100}
_RESERVED_PRIORITIES: Final = 1000
# Upstream's types, as messages show them.
_TARGET: Final = "TargetResponder"
_REPORT: Final = "ResponderStatus"


class _Allowed(NamedTuple):
    states: tuple[str, ...]
    reason: str


class _Moment(NamedTuple):
    now: float
    has_ended: bool


def responders_errors(status: Object, old: Object, *, has_ended: bool, now: float) -> ErrorList:
    """The errors in how a status's responders go on from those before. `has_ended`: the pod is gone, or the eviction has failed."""
    targets, reports = status.get("targetResponders") or [], status.get("responders") or []
    before = old.get("targetResponders") or []
    errors = _targets_errors(targets, before, reports, _Moment(now, has_ended))
    return errors + _reports_errors(reports, old.get("responders") or [], targets, now)


def _targets_errors(
    targets: Sequence[Object], before: Sequence[Object], reports: Sequence[Object], moment: _Moment
) -> ErrorList:
    names = [_name(target) for target in targets]
    if before and len(targets) != len(before):
        return [_invalid_list(_TARGETS, targets, _TARGET, "must preserve the same length and the same keys")]
    if any(_name(target) not in names for target in before):
        return [_invalid_list(_TARGETS, targets, _TARGET, "must preserve the same keys")]
    if not targets or len(targets) > MOST_RESPONDERS or len({*names}) < len(names):
        return []
    in_turn = sorted(targets, key=_turn)
    allowed = _allowed(in_turn, sorted(before, key=_turn), has_ended=moment.has_ended)
    report_of = {_name(report): report for report in reports}
    errors: ErrorList = []
    for target, expected in zip(in_turn, allowed, strict=True):
        path = _TARGETS.index(names.index(_name(target)))
        errors += _target_errors(target, report_of.get(_name(target)), expected, moment, path)
    return errors


def _turn(target: Object) -> tuple[float, tuple[str, ...], str]:
    """The highest priority first; of equal ones the first in the order of domains, from the top one down."""
    priority = target.get("priority")
    domain, _, key = _name(target).partition("/")
    return (float("inf") if priority is None else -priority, tuple(reversed(domain.split("."))), key)


def _allowed(in_turn: Sequence[Object], before: Sequence[Object], *, has_ended: bool) -> list[_Allowed]:
    """The states that each responder may have, in their turns. `before` are the same ones, as they were."""
    states = [_state(target) for target in before]
    active = states.index("Active") if "Active" in states else -1
    has_changed = active >= 0 and _state(in_turn[active]) != "Active"
    is_over = has_ended or (states[-1:] and states[-1] in FINAL_STATES)
    allowed = []
    for i in range(len(in_turn)):
        if i < active or (states and active < 0 and is_over):
            expected = _Allowed((states[i],), "final state is immutable")
        elif i == active and has_changed:
            expected = _Allowed(FINAL_STATES, "this responder must reach a final state")
        elif i == active and has_ended:
            expected = _Allowed(FINAL_STATES, "the eviction request has finished processing")
        elif i == active:
            expected = _Allowed(("Active",), "the eviction request stays active")
        elif (i == 0 and not states) or (i == active + 1 and has_changed):
            is_next = _Allowed(("Active",), "this responder is next in line")
            expected = _Allowed(("Inactive",), "the eviction request has finished processing") if has_ended else is_next
        else:
            expected = _Allowed(("Inactive",), "the previously active has not finished processing")
        allowed.append(expected)
    return allowed


def _target_errors(target: Object, report: Object | None, allowed: _Allowed, moment: _Moment, path: Path) -> ErrorList:
    if report is None:
        detail = f"{field.go_value(_name(target))} has to be tracked in {_REPORTS} first"
        return [field.invalid(path, internal_form(target, _TARGET), detail)]
    errors = _priority_errors(target, path.child("priority"))
    state, at = _state(target), path.child("state")
    if state not in allowed.states:
        detail = f"must be one of: {', '.join(allowed.states)}, because {allowed.reason}"
        return [*errors, field.invalid(at, state, detail)]
    if state != "Active" and not moment.has_ended and _is_alive(report, moment.now):
        reported = f"{_REPORTS.child('heartbeatTime')} or {_REPORTS.child('completionTime')}"
        detail = f"must stay Active because the responder is in progress and it should report {reported}"
        errors.append(field.forbidden(at, detail))
    if state == "Completed" and not report.get("completionTime"):
        detail = f"cannot become Completed because the responder didn't report {_REPORTS.child('completionTime')}"
        errors.append(field.invalid(at, state, detail))
    return errors


def _priority_errors(target: Object, path: Path) -> ErrorList:
    priority = target.get("priority")
    if priority is None or priority < 0:
        return []
    expected = _KUBERNETES_PRIORITIES.get(_name(target))
    if expected is not None:
        detail = f"core k8s responder is expected to have priority: {expected}"
        return [field.invalid(path, priority, detail)] if priority != expected else []
    reserved = "priorities 0-999 are reserved for responders with *.k8s.io suffix"
    return [field.invalid(path, priority, reserved)] if priority < _RESERVED_PRIORITIES else []


def _is_alive(report: Object, now: float) -> bool:
    """Reports whether the responder is at work and its last sign of life is recent."""
    started = _seconds(report, "startTime")
    if started is None or report.get("completionTime"):
        return False
    heartbeat = _seconds(report, "heartbeatTime")
    return now < (started if heartbeat is None else heartbeat) + _HEARTBEAT_DEADLINE - _SKEW


def _reports_errors(
    reports: Sequence[Object], before: Sequence[Object], targets: Sequence[Object], now: float
) -> ErrorList:
    names = [_name(report) for report in reports]
    state_of = {_name(target): _state(target) for target in targets}
    if len(targets) != len(reports):
        detail = "must be the same length as status.targetResponders and contain the same keys"
        return [_invalid_list(_REPORTS, reports, _REPORT, detail)]
    if any(name not in names for name in state_of):
        detail = "must contain the same keys as status.targetResponders"
        return [_invalid_list(_REPORTS, reports, _REPORT, detail)]
    if len(reports) > MOST_RESPONDERS or len({*names}) < len(names):
        return []
    report_before = {_name(report): report for report in before}
    errors: ErrorList = []
    for i, (name, report) in enumerate(zip(names, reports, strict=True)):
        is_active = state_of[name] == "Active"
        errors += _report_errors(report, report_before.get(name), _REPORTS.index(i), now, is_active=is_active)
    return errors


def _report_errors(report: Object, before: Object | None, path: Path, now: float, *, is_active: bool) -> ErrorList:
    if before is not None and report != before and not is_active:
        return [field.invalid(path, internal_form(report, _REPORT), IMMUTABLE)]
    old = before or {}
    errors = _start_errors(report, old, path.child("startTime"), now, is_active=is_active)
    errors += _heartbeat_errors(report, old, path, now)
    errors += _expected_errors(report, old, path, now)
    return errors + _completion_errors(report, old, path, now)


def _start_errors(report: Object, old: Object, path: Path, now: float, *, is_active: bool) -> ErrorList:
    start, start_before = report.get("startTime"), old.get("startTime")
    if start_before and start != start_before:
        return []
    if not start:
        return [field.required(path, "is required for an active responder")] if is_active else []
    is_now = start == start_before or _is_near(report, "startTime", now)
    return [] if is_now else [field.invalid(path, start, "must be set to the present time")]


def _heartbeat_errors(report: Object, old: Object, path: Path, now: float) -> ErrorList:
    name = "heartbeatTime"
    heartbeat, heartbeat_before = _seconds(report, name), _seconds(old, name)
    if heartbeat is None:
        return [] if heartbeat_before is None else [field.required(path.child(name), "is required once set")]
    if heartbeat == heartbeat_before:
        return []
    problem = _order_problem(report, name, path)
    if report.get("startTime") and heartbeat_before is not None and heartbeat < heartbeat_before:
        problem = "cannot be decreased"
    elif not problem and not _is_near(report, name, now):
        problem = "must be set to the present time"
    return [field.invalid(path.child(name), report[name], problem)] if problem else []


def _expected_errors(report: Object, old: Object, path: Path, now: float) -> ErrorList:
    name = "expectedCompletionTime"
    expected = _seconds(report, name)
    if expected is None or expected == _seconds(old, name):
        return []
    problem = _order_problem(report, name, path)
    if not problem and expected < now - _SKEW:
        problem = "cannot be set to the past time"
    elif not problem and expected > now + _LONGEST_WORK:
        problem = "must complete within 10 years"
    return [field.invalid(path.child(name), report[name], problem)] if problem else []


def _completion_errors(report: Object, old: Object, path: Path, now: float) -> ErrorList:
    name = "completionTime"
    completed, completed_before = report.get(name), old.get(name)
    if not completed or (completed_before and completed != completed_before):
        return []
    problem = _order_problem(report, name, path)
    if not problem and completed != completed_before and not _is_near(report, name, now):
        problem = "must be set to the present time"
    return [field.invalid(path.child(name), completed, problem)] if problem else []


def _order_problem(report: Object, name: str, path: Path) -> str:
    """Returns the problem of a time that has no start before it, or an empty text."""
    start, seconds = _seconds(report, "startTime"), _seconds(report, name)
    if start is None:
        return f"cannot be set before {path.child('startTime')} is set"
    return f"must occur after {path.child('startTime')}" if seconds is not None and seconds < start else ""


def _is_near(report: Object, name: str, now: float) -> bool:
    seconds = _seconds(report, name)
    return seconds is not None and now - _SKEW < seconds < now + _SKEW


def _seconds(report: Object, name: str) -> float | None:
    text = report.get(name)
    return seconds_of(text) if text else None


def _name(responder: Object) -> str:
    return str(responder.get("name", ""))


def _state(responder: Object) -> str:
    return str(responder.get("state", ""))


def _invalid_list(path: Path, items: Sequence[Object], kind: str, detail: str) -> field.Error:
    return field.invalid(path, [internal_form(item, kind) for item in items] or None, detail)
