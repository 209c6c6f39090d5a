"""Evictions: one for each pod that is requested to be evicted, with its responders, which take their turns (responders.py).

Upstream: pkg/registry/lifecycle/eviction/strategy.go, pkg/printers/internalversion/printers.go.
"""

from typing import ClassVar, Final

from msgspec.structs import replace

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis.internal_form import conditions_form
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.registry.declared.types import Fields
from fakeapiserver.registry.generic.printing import human_duration, translate_timestamp_since
from fakeapiserver.registry.generic.strategy import Cells
from fakeapiserver.registry.generic.table_cells import NONE, UNSET, age
from fakeapiserver.registry.lifecycle.declared import EVICTION
from fakeapiserver.registry.lifecycle.evictionrequest import LifecycleStrategy, state, target_cells, true_condition
from fakeapiserver.registry.lifecycle.responders import FINAL_STATES, responders_errors

_ENDS: Final = ("TargetEvicted", "Failed")


class EvictionStrategy(LifecycleStrategy, kw_only=True):
    fields: ClassVar[Fields] = EVICTION
    clock: Clock = SystemClock()

    def for_server(self, clock: Clock) -> "EvictionStrategy":
        return replace(self, clock=clock)

    def progress_errors(self, obj: Object, old: Object) -> ErrorList:
        status, before = obj.get("status") or {}, old.get("status") or {}
        errors: ErrorList = []
        has_ended = any(true_condition(status, kind) is not None for kind in _ENDS)
        for condition in before.get("conditions") or ():
            kind = condition.get("type")
            if kind not in _ENDS or condition.get("status") != "True":
                continue
            new = next((row for row in status.get("conditions") or () if row.get("type") == kind), None)
            if new is None or new.get("status") == "False" or new.get("reason") != condition.get("reason"):
                shown = conditions_form(status.get("conditions") or ()) or None
                errors.append(field.invalid("status.conditions", shown, f"{kind} condition status cannot be reverted"))
                has_ended = True
        return errors + responders_errors(status, before, has_ended=has_ended, now=self.clock.now())

    def table_row(self, obj: Object, now: float) -> Cells:
        cells = [metadata(obj).get("name", ""), *target_cells(obj), state(obj)]
        status = obj.get("status") or {}
        return [*cells, *_responder_cells(status, now), _requesters(status), age(obj, now), *_report_cells(status, now)]


def _current(status: Object) -> tuple[Object | None, int]:
    """The last active responder, or else the last one that has finished; and how many are active or have finished."""
    targets = status.get("targetResponders") or []
    active = [target for target in targets if target.get("state") == "Active"]
    finished = [target for target in targets if target.get("state") in FINAL_STATES]
    return next(iter([*active[-1:], *finished[-1:]]), None), len(active) + len(finished)


def _report_of(status: Object, target: Object | None) -> Object | None:
    """Returns the report of a responder, or None if there isn't one."""
    rows = status.get("responders") or () if target is not None else ()
    return next((row for row in rows if row.get("name") == (target or {}).get("name")), None)


def _responder_cells(status: Object, now: float) -> Cells:
    """The current responder, its state, and when it is expected to finish."""
    target, done = _current(status)
    count = (
        f"{UNSET if target is None else target.get('name', '')} ({done}/{len(status.get('targetResponders') or ())})"
    )
    report = _report_of(status, target)
    if target is None or report is None:
        return [count, UNSET, "<unknown>"]
    reached, shown, expected = target.get("state", ""), target.get("state", ""), "<unknown>"
    if reached == "Active" and report.get("startTime"):
        shown = f"Started ({translate_timestamp_since(report['startTime'], now)} ago)"
        expected = _expected(report.get("expectedCompletionTime"), now)
    elif reached in FINAL_STATES:
        expected = "-"
        if reached == "Completed" and report.get("completionTime"):
            shown = f"{reached} ({translate_timestamp_since(report['completionTime'], now)} ago)"
    return [count, shown, expected]


def _expected(timestamp: str | None, now: float) -> str:
    seconds = seconds_of(timestamp) if timestamp else None
    if seconds is None:
        return "<unknown>"
    return f"in {human_duration(int(seconds - now))}" if seconds > now else f"{human_duration(int(now - seconds))} ago"


def _requesters(status: Object) -> str:
    rows = status.get("requesters") or ()
    asking = sorted(row.get("name", "") for row in rows if row.get("intent") != "Withdrawn")
    if not asking:
        return "<withdrawn>" if rows else NONE
    return asking[0] if len(asking) == 1 else f"{asking[0]} + {len(asking) - 1} more..."


def _report_cells(status: Object, now: float) -> Cells:
    """The current responder's last sign of life, and its message."""
    report = _report_of(status, _current(status)[0]) or {}
    heartbeat = report.get("heartbeatTime")
    return [
        f"{translate_timestamp_since(heartbeat, now)} ago" if heartbeat else UNSET,
        (report.get("message") or "").strip() or UNSET,
    ]
