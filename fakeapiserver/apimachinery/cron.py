"""Cron schedules: five fields, or a descriptor such as `@hourly` and `@every 1h30m`.

Upstream: github.com/robfig/cron/v3 parser.go (ParseStandard), spec.go (Next), pkg/util/parsers/parsers.go.
"""

from calendar import timegm
from datetime import datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.go.strconv import atoi
from fakeapiserver.apimachinery.location import load_location

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_YEARS: Final = 5


class _Bounds(Struct, frozen=True):
    low: int
    high: int
    names: tuple[str, ...] = ()


_BOUNDS: Final = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))


class Schedule(Struct, frozen=True):
    """When something is due: at these minutes, hours, days of the month, months and days of the week (0 is Sunday) in a time
    zone ("" is the machine's); or every so many seconds, and then the sets are empty."""

    fields: tuple[frozenset[int], ...] = ()
    every: float = 0.0
    zone: str = ""
    # Whether the days of the month and of the week were left open (`*`); if neither was, one of them is enough.
    open_days: tuple[bool, bool] = (True, True)

    def next_after(self, moment: float, zone: str = "") -> float | None:
        """When it is due next, strictly after `moment`; both seconds since the Unix epoch. `zone` counts where the schedule names
        none. Hours that a clock skips are skipped, hours it repeats are due twice. None: not within five years."""
        if self.every:
            return float(int(moment) + int(self.every))

        name = self.zone or zone
        place = _TimeZone(ZoneInfo(name) if name not in ("", "Local") else None)
        candidate = (int(moment) // 60 + 1) * 60
        last_year = place.at(candidate).year + _YEARS
        reset = False  # whether the smaller fields start from their minimum
        while place.at(candidate).year <= last_year:
            candidate, reset, wrapped = self._search(place, candidate, reset)
            if not wrapped:
                return float(candidate)
        return None

    def _search(self, place: "_TimeZone", candidate: int, reset: bool) -> tuple[int, bool, bool]:
        """Advances to a matching month, day, hour and minute.

        It ends early (the last is True) where one of them wraps around, because the greater ones must be
        checked again. These are upstream's
        steps one by one: they matter where clocks change at midnight.
        """
        minutes, hours, _, months, _ = self.fields
        local = place.at(candidate)
        while local.month not in months:
            if not reset:
                candidate, reset = place.seconds(local.year, local.month, 1), True
                local = place.at(candidate)
            candidate = place.seconds(
                local.year + local.month // 12, local.month % 12 + 1, local.day, local.hour, local.minute
            )
            local = place.at(candidate)
            if local.month == 1:
                return candidate, reset, True
        while not self._is_due_on(local):
            if not reset:
                candidate, reset = place.seconds(local.year, local.month, local.day), True
                local = place.at(candidate)
            candidate = place.seconds(local.year, local.month, local.day + 1, local.hour, local.minute)
            hour = place.at(candidate).hour
            candidate += 3600 * (24 - hour if hour > 12 else -hour)
            local = place.at(candidate)
            if local.day == 1:
                return candidate, reset, True
        while local.hour not in hours:
            if not reset:
                candidate, reset = place.seconds(local.year, local.month, local.day, local.hour), True
            candidate += 3600
            local = place.at(candidate)
            if local.hour == 0:
                return candidate, reset, True
        while local.minute not in minutes:
            reset = True
            candidate += 60
            local = place.at(candidate)
            if local.minute == 0:
                return candidate, reset, True
        return candidate, reset, False

    def _is_due_on(self, day: datetime) -> bool:
        _, _, days, _, weekdays = self.fields
        on_day, on_weekday = day.day in days, day.isoweekday() % 7 in weekdays
        return (on_day and on_weekday) if any(self.open_days) else (on_day or on_weekday)


class _TimeZone:
    """Local time in a zone; None: the machine's."""

    __slots__ = ("_zone",)

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone

    def at(self, moment: int) -> datetime:
        """Returns the local time at a moment."""
        return datetime.fromtimestamp(moment, self._zone).astimezone(self._zone)

    def seconds(self, year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
        """When they show that, `day` may be one too many for the month; where they skip or repeat it, as Go's time.Date chooses."""
        shown = timegm((year, month, day, hour, minute, 0))
        return shown - self._offset(shown - self._offset(shown))

    def _offset(self, moment: int) -> int:
        offset = self.at(moment).utcoffset()
        return int(offset.total_seconds()) if offset is not None else 0


def parse(text: str) -> Schedule:
    """ValueError worded as upstream words it.

    >>> [sorted(field) for field in parse("*/20 0-2 1 jan,dec 6").fields]
    [[0, 20, 40], [0, 1, 2], [1], [1, 12], [6]]
    """
    if not text:
        raise ValueError("empty spec string")
    zone = ""
    if text.startswith(("TZ=", "CRON_TZ=")):
        named, space, rest = text.partition(" ")
        if not space:
            raise ValueError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        zone, text = named.partition("=")[2], rest.strip()
        try:
            load_location(zone)
        except ValueError as error:
            raise ValueError(f"provided bad location {zone}: {error}") from None
    if text.startswith(_EVERY):
        try:
            # Whole seconds, and one at least.
            return Schedule(every=max(1.0, float(int(parse_duration(text.removeprefix(_EVERY))))), zone=zone)
        except ValueError as error:
            raise ValueError(f"failed to parse duration {text}: {error}") from None
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != len(_BOUNDS):
        raise ValueError(f"expected exactly {len(_BOUNDS)} fields, found {len(parts)}: [{' '.join(parts)}]")
    fields = tuple(_field(part, bounds) for part, bounds in zip(parts, _BOUNDS, strict=True))
    return Schedule(fields, zone=zone, open_days=(_is_open(parts[2]), _is_open(parts[4])))


def _field(text: str, bounds: _Bounds) -> frozenset[int]:
    return frozenset(value for part in text.split(",") if part for value in _range(part, bounds))


def _is_open(field: str) -> bool:
    return any(part.removesuffix("/1") in ("*", "?") for part in field.split(","))


def _range(text: str, bounds: _Bounds) -> range:
    """`number`, `low-high` or `*`, each with `/step` or without."""
    first, *steps = text.split("/")
    low, *highs = first.split("-")
    if low in ("*", "?"):
        start, end = bounds.low, bounds.high
    else:
        start = _number_or_name(low, bounds.names)
        if len(highs) > 1:
            raise ValueError(f"too many hyphens: {text}")
        end = _number_or_name(highs[0], bounds.names) if highs else start
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _number(steps[0]) if steps else 1
    if steps and not highs:
        end = bounds.high  # "5/15" goes on to the end
    if start < bounds.low:
        raise ValueError(f"beginning of range ({start}) below minimum ({bounds.low}): {text}")
    if end > bounds.high:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.high}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if not step:
        raise ValueError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step)


def _number_or_name(text: str, names: tuple[str, ...]) -> int:
    name = text.lower()
    return names.index(name) + (len(names) == len(_MONTHS)) if name in names else _number(text)


def _number(text: str) -> int:
    try:
        number = atoi(text)
    except ValueError as error:
        raise ValueError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number
