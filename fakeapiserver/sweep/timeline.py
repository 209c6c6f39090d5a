"""The time line of a case: what the user and the operator did around the perturbation."""

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Final, Literal

from msgspec import Struct, structs

from fakeapiserver.evidence import election
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.query import WRITES
from fakeapiserver.evidence.table import answer_of, object_of
from fakeapiserver.sweep.case import Note, Run
from fakeapiserver.sweep.perturbation import Perturbation

_BEFORE: Final = 15
_AFTER: Final = 40
# In text, fewer.
_LINES_BEFORE: Final = 5
_LINES_AFTER: Final = 9
# Seconds of the window that is shown of a run without writes.
_MARGIN: Final = 1.0

Lane = Literal["step", "request", "operator", "surprise"]


class Event(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A step of the scenario, a request, an end or start of the operator, or the surprise.

    - `time`: seconds since the surprise. `until`: the end, None if it has no duration.
    - `times`: how often the request was sent in a row. `is_struck`: whether a fault struck it. `is_refused`: whether it failed.
    """

    time: float
    lane: Lane
    text: str
    until: float | None = None
    times: int = 1
    is_struck: bool = False
    is_refused: bool = False

    @property
    def line(self) -> str:
        """`+1.000 patch secrets shop/db 200 (3 times)`"""
        return f"{self.time:+.3f} {self.text}{f' ({self.times} times)' if self.times > 1 else ''}"


def timeline(run: Run, perturbation: Perturbation | None = None, *, shows_events: bool = False) -> list[Event]:
    """The steps, the starts of the operator, its writes (of Events only with `shows_events`) and the requests that a fault struck: the last
    ones before the perturbation and the first ones after it, in order of time.

    The perturbation is at the first request that was struck, or else at the beginning of its step, at the second start of the operator, or
    at the last write. An old view begins at that start, and what is read from it isn't shown. Without a perturbation the first step is what
    everything follows from.
    """
    shows_reads = perturbation is None or perturbation.kind != "stale"
    entries = [
        each
        for each in run.requests
        if (each.fault and shows_reads)
        or (each.verb in WRITES and (shows_events or each.resource != "events") and not election.concerns(each))
    ]
    zero = _zero(run, entries, perturbation)
    if zero is None:
        return []
    at = next((number for number, each in enumerate(entries) if each.time >= zero), len(entries))
    shown = entries[max(0, at - _BEFORE) : at + _AFTER]
    times = [each.time for each in shown]
    window = (min((zero, *times)) - _MARGIN, max((zero, *times)) + _MARGIN)
    events = [*_steps(run.notes, window), *_starts(run.notes, window), *_requests(shown)]
    if perturbation is not None:
        events.append(Event(zero, "surprise", perturbation.id, _end(run.notes, perturbation)))
    events = [_since(zero, each) for each in events]
    return sorted(events, key=lambda each: (each.time, _ORDER.index(each.lane)))


_ORDER: Final[Sequence[Lane]] = ("step", "request", "surprise", "operator")


def shown_lines(events: Sequence[Event]) -> list[str]:
    """The events next to the surprise as a part of a report."""
    told = [each for each in events if each.lane != "surprise" and (each.lane != "step" or each.time > -_MARGIN)]
    at = next((number for number, each in enumerate(told) if each.time >= 0 and each.lane == "request"), len(told) - 1)
    lines = [each.line for each in told[max(0, at - _LINES_BEFORE) : max(0, at) + _LINES_AFTER]]
    return ["   what happened, in seconds since then:", *(f"     {line}" for line in lines)] if lines else []


def _zero(run: Run, entries: Sequence[RequestEntry], perturbation: Perturbation | None) -> float | None:
    struck = [each.time for each in entries if each.fault]
    steps = [note.time for note in run.notes if note.kind == "step"]
    again = [note.time for note in run.notes if note.kind == "started"][1:]
    if perturbation is not None and perturbation.kind == "stale" and again:
        return again[0]
    if struck:
        return struck[0]
    if perturbation is None and steps:
        return steps[0]
    if perturbation is not None and 0 <= perturbation.step < len(steps):
        return steps[perturbation.step]
    return again[0] if again else entries[-1].time if entries else None


def _end(notes: Sequence[Note], perturbation: Perturbation) -> float | None:
    """The end of a perturbation that lasts for steps."""
    ends = [note.time for note in notes if note.kind == "rest"]
    lasts = perturbation.step >= 0 and perturbation.kind != "stale"
    return ends[perturbation.until] if lasts and 0 <= perturbation.until < len(ends) else None


def _steps(notes: Sequence[Note], window: tuple[float, float]) -> Iterator[Event]:
    of_steps = [note for note in notes if note.kind in ("step", "rest")]
    number = 0
    for note, following in zip_longest(of_steps, of_steps[1:]):
        if note.kind != "step":
            continue
        number += 1
        end = following.time if following is not None else window[1]
        if note.time <= window[1] and end >= window[0]:
            yield Event(note.time, "step", f"step {number}: {note.text}", max(end, note.time))


def _starts(notes: Sequence[Note], window: tuple[float, float]) -> Iterator[Event]:
    starts = 0
    for note in notes:
        starts += note.kind == "started"
        if note.kind in ("started", "killed") and window[0] <= note.time <= window[1]:
            again = " again" if note.kind == "started" and starts > 1 else ""
            yield Event(note.time, "operator", f"the operator is {note.kind}{again}")


def _requests(entries: Sequence[RequestEntry]) -> Iterator[Event]:
    for (_, text), group in groupby(entries, key=lambda each: (each.user, _text(each))):
        same = [*group]
        first = same[0]
        is_refused = not 200 <= first.status < 400
        yield Event(first.time, "request", text, None, len(same), any(each.fault for each in same), is_refused)


def _since(zero: float, event: Event) -> Event:
    until = None if event.until is None else round(event.until - zero, 3)
    return structs.replace(event, time=round(event.time - zero, 3), until=until)


def _text(entry: RequestEntry) -> str:
    """`create secrets shop/db 504 Timeout`"""
    return f"{entry.verb} {object_of(entry)} {answer_of(entry)}"
