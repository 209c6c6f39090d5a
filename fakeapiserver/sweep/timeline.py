"""The time line of a case: what the operator wrote around the perturbation, in lines for people."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.query import WRITES
from fakeapiserver.evidence.table import answer_of, object_of
from fakeapiserver.sweep.case import Run

_BEFORE: Final = 5
_AFTER: Final = 9
STARTED_AGAIN: Final = "the operator is started again"


def timeline(run: Run) -> list[str]:
    """The operator's writes, and the requests that a fault struck: the last ones before the perturbation and the first ones after it.

    Times are in seconds since the perturbation: the first struck request, or else the first write of the operator's second start.
    """
    entries = [each for each in run.requests if each.fault or (each.verb in WRITES and each.resource != "leases")]
    if not entries:
        return []
    first = entries[0].user
    at = next((i for i, each in enumerate(entries) if each.fault or each.user != first), len(entries) - 1)
    shown = entries[max(0, at - _BEFORE) : at + _AFTER]
    lines: list[str] = []
    user = shown[0].user
    for (by, text), group in groupby(shown, key=lambda each: (each.user, _text(each))):
        same = [*group]
        if by != user:
            lines.append(STARTED_AGAIN)
            user = by
        times = f" ({len(same)} times)" if len(same) > 1 else ""
        lines.append(f"{same[0].time - entries[at].time:+.3f} {text}{times}")
    return lines


def shown_lines(lines: Sequence[str]) -> list[str]:
    """The lines as a part of a report."""
    return ["   what the operator did, in seconds since then:", *(f"     {line}" for line in lines)] if lines else []


def _text(entry: RequestEntry) -> str:
    """`create secrets shop/db 504 Timeout`"""
    return f"{entry.verb} {object_of(entry)} {answer_of(entry)}"
