"""Reads the names of perturbations, so that a command repeats a case whatever another recording of the scenario suggests."""

import re
from typing import Final

from fakeapiserver.sweep.perturbation import Kind, Perturbation, WritePoint

_COUNTED: Final = r"(?: \((?:\d+[a-z]+)?(?: ?in step \d+)?\))?"
_POINT: Final = rf"(?P<point>\S+ \S+ \S+{_COUNTED})"
_STEPS: Final = r"steps? (?P<step>\d+)(?: to (?P<until>\d+))?"
_PATTERNS: Final[tuple[tuple[Kind, str], ...]] = (
    ("crash", rf"crash (?P<when>before|after) {_POINT}"),
    ("away", rf"killed (?P<when>after) {_POINT}, and away until step (?P<until>\d+)"),
    ("refuse", rf"refuse {_POINT} (?:with (?P<status>\d+)|by a reset connection)(?P<stored> once it is stored)?"),
    ("conflict", rf"conflict at {_POINT}"),
    ("slow", r"slow after changes of (?P<resource>\S+) (?P<object>\S+) that is being deleted"),
    ("slow", rf"slow after {_POINT}"),
    (
        "stale",
        r"restart after step (?P<until>\d+) with the state(?: of (?P<resource>\S+))?"
        rf" (?:before {_POINT}|after step (?P<step>\d+))",
    ),
    (
        "unobserved",
        rf"states? (?P<first>\d+)(?: to (?P<last>\d+))? of (?P<resource>\S+) (?P<object>\S+) unseen in {_STEPS}",
    ),
    ("reordered", rf"events of (?P<resource>\S+) after all others in {_STEPS}"),
    ("late", rf"late events of (?P<resource>\S+)(?: in {_STEPS})?"),
    ("restart", rf"restart of the API server at {_POINT}"),
    ("lease", rf"lost lease in {_STEPS}"),
    ("webhook", rf"webhook (?P<object>\S+) down in {_STEPS}"),
)
_COMPILED: Final = [(kind, re.compile(pattern)) for kind, pattern in _PATTERNS]
_WRITE: Final = re.compile(
    r"(?P<verb>\S+) (?P<resource>[^\s/]+)(?:/(?P<subresource>\S+))? (?:(?P<namespace>[^\s/]+)/)?(?P<name>[^\s/]+)"
    r"(?: \((?:(?P<occurrence>\d+)[a-z]+)?(?: ?in step (?P<step>\d+))?\))?"
)


def read(name: str) -> Perturbation | None:
    """The perturbation with this name. None if it names none."""
    for kind, pattern in _COMPILED:
        if (found := pattern.fullmatch(name)) is not None:
            perturbation = _perturbation(kind, found.groupdict())
            if perturbation.id == name:
                return perturbation
    return Perturbation("clock") if name == Perturbation("clock").id else None


def _perturbation(kind: Kind, parts: dict[str, str | None]) -> Perturbation:
    step, until = _index(parts.get("step")), _index(parts.get("until"))
    when = parts.get("when") or ""
    if kind == "refuse":
        when = "after" if parts["stored"] else "before"
    first = int(parts.get("first") or 0)
    return Perturbation(
        kind,
        _write_point(point) if (point := parts.get("point")) else None,
        when,
        int(parts.get("status") or 0),
        step,
        until if until >= 0 else step,
        parts.get("resource") or "",
        parts.get("object") or "",
        (first, int(parts.get("last") or first)),
    )


def _index(number: str | None) -> int:
    """The index of a step, which people count from 1."""
    return int(number) - 1 if number else -1


def _write_point(text: str) -> WritePoint | None:
    found = _WRITE.fullmatch(text)
    if found is None:
        return None
    name = found["name"]
    return WritePoint(
        found["verb"], found["resource"], found["subresource"] or "", found["namespace"] or "", "" if name == "*" else name,
        int(found["occurrence"] or 1), _index(found["step"]),
    )  # fmt: skip
