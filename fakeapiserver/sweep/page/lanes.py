"""The time line of a finding, drawn in lanes: the scenario's steps, the operator's requests, the surprise, and the operator's starts."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.sweep.page.html import Markup, joined, tag
from fakeapiserver.sweep.timeline import Event, Lane

_LANES: Final[Sequence[tuple[Lane, str]]] = (
    ("step", "scenario"),
    ("request", "requests"),
    ("surprise", "surprise"),
    ("operator", "operator"),
)
# The drawing, in its own units: it is scaled to the width of the page.
_WIDTH: Final = 1000
_LEFT: Final = 90
_LANE: Final = 26
_AXIS: Final = 22
_TICKS: Final = 6
# The number of events that are shown at once, before the surprise and from then on.
_BEFORE: Final = 8
_AFTER: Final = 16
# A pause that is pointed out in the table, in seconds.
_PAUSE: Final = 0.5


def figure(events: Sequence[Event]) -> Markup:
    """A drawing of the events around the surprise, true to scale, and a table with a row for each event and a column for each lane, in
    which earlier and later events are folded."""
    if not events:
        return Markup()
    at = next((number for number, each in enumerate(events) if each.time >= 0), len(events))
    first, last = max(0, at - _BEFORE), at + _AFTER
    return tag(
        "figure",
        _drawing(events[first:last]),
        _folded("earlier", events[:first], events),
        _table(events[first:last], events),
        _folded("later", events[last:], events),
        class_="timeline",
    )


def _folded(word: str, events: Sequence[Event], every: Sequence[Event]) -> Markup:
    if not events:
        return Markup()
    count = f"{len(events)} {word} event{'' if len(events) == 1 else 's'}"
    return tag("details", tag("summary", count), _table(events, every))


# ---------------------------------------------------------------- the drawing


class _Scale:
    """Maps seconds to the drawing."""

    def __init__(self, events: Sequence[Event]) -> None:
        points = [each.time for each in events if each.lane != "step"] or [each.time for each in events]
        margin = max(0.02, (max(points) - min(points)) * 0.04)
        self.start = min(points) - margin
        self.end = max(points) + margin

    def x(self, seconds: float) -> float:
        share = (min(max(seconds, self.start), self.end) - self.start) / (self.end - self.start)
        return round(_LEFT + share * (_WIDTH - _LEFT - 10), 1)

    def ticks(self) -> Iterator[float]:
        """Round numbers of seconds."""
        rough = (self.end - self.start) / _TICKS
        power = 10 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        number = math.ceil(self.start / step)
        while number * step <= self.end:
            yield round(number * step, 6) + 0.0
            number += 1


def _drawing(events: Sequence[Event]) -> Markup:
    scale = _Scale(events)
    height = _LANE * len(_LANES) + _AXIS
    parts: list[Markup] = []
    for number, (lane, label) in enumerate(_LANES):
        top = number * _LANE
        parts.append(tag("rect", x=0, y=top, width=_WIDTH, height=_LANE - 2, class_="lane"))
        parts.append(tag("text", label, x=6, y=top + 16))
        parts += [_shape(each, scale, top) for each in events if each.lane == lane and _is_visible(each, scale)]
    for seconds in scale.ticks():
        x = scale.x(seconds)
        parts.append(tag("line", x1=x, x2=x, y1=height - _AXIS, y2=height - _AXIS + 5, class_="tick"))
        parts.append(tag("text", f"{seconds:g} s", x=x, y=height - 3, class_="axis"))
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        aria_label="The events in seconds since the surprise; the table below has them in words.",
    )


def _is_visible(event: Event, scale: _Scale) -> bool:
    return event.time <= scale.end and (event.time if event.until is None else event.until) >= scale.start


def _shape(event: Event, scale: _Scale, top: int) -> Markup:
    x = scale.x(event.time)
    title = tag("title", event.line)
    if event.until is not None:
        width = max(2.0, round(scale.x(event.until) - x, 1))
        bar = tag("rect", title, x=x, y=top + 3, width=width, height=_LANE - 8, rx=3, class_=f"bar {event.lane}")
        label = event.text.partition(":")[0] if event.lane == "step" else ""
        return joined(bar, tag("text", label, x=x + 4, y=top + 16, class_="small") if width > 50 else "")
    if event.lane == "request":
        state = "struck" if event.is_struck else "refused" if event.is_refused else "stored"
        return tag("rect", title, x=x - 1.5, y=top + 2, width=3, height=_LANE - 6, class_=f"mark {state}")
    middle, reach = top + 12, 7
    if event.lane == "surprise":
        points = f"{x},{middle - reach} {x + reach},{middle} {x},{middle + reach} {x - reach},{middle}"
        return tag("polygon", title, points=points, class_="mark struck")
    if event.text.endswith("killed"):
        path = f"M{x - 5},{middle - 5}L{x + 5},{middle + 5}M{x - 5},{middle + 5}L{x + 5},{middle - 5}"
        return tag("path", title, d=path, class_="killed")
    points = f"{x - 5},{middle - reach} {x + reach},{middle} {x - 5},{middle + reach}"
    return tag("polygon", title, points=points, class_="mark started")


# ---------------------------------------------------------------- the table


def _table(events: Sequence[Event], every: Sequence[Event]) -> Markup:
    """The rows of `events`, a part of `every`."""
    head = tag(
        "tr",
        *(
            tag("th", word, scope="col")
            for word in ("time", "scenario", "the operator's requests", "surprise", "operator")
        ),
    )
    rows: list[Markup] = []
    for number, event in enumerate(events):
        pause = event.time - events[number - 1].time if number else 0.0
        if pause >= _PAUSE:
            rows.append(tag("tr", tag("td"), tag("td", f"{pause:.1f} s later", colspan="4"), class_="pause"))
        rows.append(_row(event, {each.lane for each in every if _lasts(each, event.time)}))
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="time line")


def _lasts(event: Event, time: float) -> bool:
    return event.until is not None and event.time <= time < event.until


def _row(event: Event, lasting: set[Lane]) -> Markup:
    """The row of an event. `lasting`: the lanes of which something goes on at that time."""
    cells = [tag("th", f"{event.time:+.3f}", scope="row")]
    for lane, _ in _LANES:
        if lane == event.lane:
            cells.append(tag("td", *_words(event), class_=f"on {lane}"))
        else:
            cells.append(tag("td", class_=lane if lane in lasting else ""))
    names = [name for name, holds in (("struck", event.is_struck), ("refused", event.is_refused)) if holds]
    return tag("tr", *cells, class_=" ".join((f"event-{event.lane}", *names)))


def _words(event: Event) -> Iterator[str]:
    yield event.text
    if event.times > 1:
        yield f" ({event.times} times)"
    if event.is_struck:
        yield tag("span", "struck", class_="badge struck")
    elif event.is_refused:
        yield tag("span", "refused", class_="badge refused")
