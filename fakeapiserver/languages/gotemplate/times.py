"""Go's times: layouts, and what a time is asked (upstream: time/format.go)."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from fakeapiserver.languages.gotemplate.values import TemplateError, Time

_PIECES: Final = re.compile(
    r"January|Jan|Monday|Mon|MST|2006|Z07:00:00|Z070000|Z07:00|Z0700|Z07|-07:00:00|-070000|-07:00|-0700|-07"
    r"|002|01|02|03|04|05|06|15|_2|PM|pm|[.,](?:0+|9+)(?!\d)|1|2|3|4|5"
)
_SIMPLE: Final = {
    "January": "%B", "Jan": "%b", "Monday": "%A", "Mon": "%a", "MST": "%Z", "2006": "%Y", "002": "%j", "01": "%m", "02": "%d",
    "03": "%I", "04": "%M", "05": "%S", "06": "%y", "15": "%H", "PM": "%p",
}  # fmt: skip


def rfc3339_nano(seconds: float) -> str:
    """`2006-01-02T15:04:05.999999999Z07:00`, in UTC."""
    return formatted("2006-01-02T15:04:05.999999Z07:00", Time(seconds))


def formatted(layout: str, time: Time, zone: str = "UTC") -> str:
    """`layout` is Go's."""
    at = datetime.fromtimestamp(time.seconds, _zone(zone))

    def piece(match: re.Match[str]) -> str:
        text = match.group()
        if text in _SIMPLE:
            return at.strftime(_SIMPLE[text])
        if text[0] in "Z-":
            return _offset(text, at)
        if text[0] in ".,":
            digits = f"{at.microsecond:06}000"[: len(text) - 1]
            digits = digits.rstrip("0") if text[1] == "9" else digits
            return text[0] + digits if digits else ""
        return {
            "_2": f"{at.day:2}",
            "pm": at.strftime("%p").lower(),
            "1": str(at.month),
            "2": str(at.day),
            "3": str(at.hour % 12 or 12),
            "4": str(at.minute),
            "5": str(at.second),
        }[text]

    return _PIECES.sub(piece, layout)


def _zone(name: str) -> Any:
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return UTC


def _offset(form: str, at: datetime) -> str:
    offset = at.utcoffset()
    seconds = int(offset.total_seconds()) if offset is not None else 0
    if form[0] == "Z" and not seconds:
        return "Z"
    sign, seconds = ("-" if seconds < 0 else "+"), abs(seconds)
    hours, minutes = f"{seconds // 3600:02}", f"{seconds // 60 % 60:02}"
    colon = ":" if ":" in form else ""
    if len(form.replace(":", "")) == 3:
        return sign + hours
    offset_text = f"{sign}{hours}{colon}{minutes}"
    return f"{offset_text}{colon}{seconds % 60:02}" if len(form.replace(":", "")) == 7 else offset_text


_NUMBERS: Final = {
    "2006": r"(?P<Y>\d{4})", "06": r"(?P<y>\d\d)", "01": r"(?P<m>\d\d)", "1": r"(?P<m>\d\d?)", "02": r"(?P<d>\d\d)",
    "2": r"(?P<d>\d\d?)", "_2": r"(?P<d>[ \d]\d)", "15": r"(?P<H>\d\d)", "03": r"(?P<I>\d\d)", "3": r"(?P<I>\d\d?)",
    "04": r"(?P<M>\d\d)", "4": r"(?P<M>\d\d?)", "05": r"(?P<S>\d\d(?:[.,]\d+)?)", "5": r"(?P<S>\d\d?(?:[.,]\d+)?)",
    "Jan": r"(?P<b>[A-Za-z]{3})", "January": r"(?P<B>[A-Za-z]+)", "Mon": r"[A-Za-z]{3}", "Monday": r"[A-Za-z]+",
    "PM": r"(?P<p>[AP]M)", "pm": r"(?P<p>[ap]m)", "MST": r"[A-Z]{3,4}",
}  # fmt: skip
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
ZERO: Final = Time(-62135596800.0)


def parsed(layout: str, text: str) -> Time:
    """TemplateError."""
    pattern, at = "", 0
    for match in _PIECES.finditer(layout):
        pattern += re.escape(layout[at : match.start()])
        word = match.group()
        if word[0] in ".,":
            pattern += r"(?:[.,]\d+)?"
        elif word[0] in "Z-":
            pattern += r"(?P<z>Z|[+-]\d\d:?(?:\d\d)?:?(?:\d\d)?)"
        else:
            pattern += _NUMBERS.get(word, re.escape(word))
        at = match.end()
    pattern += re.escape(layout[at:])
    failure = TemplateError(f'parsing time "{text}" as "{layout}": cannot parse')
    try:
        fields = re.fullmatch(pattern, text, re.A)
    except re.error:
        raise failure from None
    if fields is None:
        raise failure
    try:
        return Time(_moment(fields.groupdict()))
    except ValueError:
        raise failure from None


def _moment(parts: Mapping[str, str | None]) -> float:
    def number(name: str, default: int) -> int:
        text = parts.get(name)
        return int(text) if text else default

    month = number("m", 1)
    if name := (parts.get("b") or parts.get("B")):
        month = _MONTHS.index(name[:3].lower()) + 1
    hour = number("H", 0)
    if parts.get("I"):
        hour = number("I", 0) % 12 + (12 if (parts.get("p") or "").lower() == "pm" else 0)
    second = float((parts.get("S") or "0").replace(",", "."))
    year = number("Y", 0) or (number("y", 1) + (2000 if number("y", 1) < 69 else 1900) if parts.get("y") else 1)
    at = datetime(year, month, number("d", 1), hour, number("M", 0), int(second), tzinfo=UTC).timestamp()
    zone = (parts.get("z") or "Z").replace(":", "")
    if zone != "Z":
        at -= (int(zone[1:3]) * 3600 + int(zone[3:5] or 0) * 60) * (-1 if zone[0] == "-" else 1)
    return at + second % 1


def _part(name: str) -> Callable[[Time], int]:
    return lambda time: int(getattr(datetime.fromtimestamp(time.seconds, UTC), name))


METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "Unix": lambda time: int(time.seconds // 1),
    "UnixNano": lambda time: int(time.seconds * 1_000_000_000),
    "UnixMilli": lambda time: int(time.seconds * 1000),
    "Format": lambda time, layout: formatted(layout, time),
    "UTC": lambda time: time,
    "Local": lambda time: time,
    "IsZero": lambda time: time == ZERO,
    "Year": _part("year"),
    "Month": lambda time: datetime.fromtimestamp(time.seconds, UTC).strftime("%B"),
    "Weekday": lambda time: datetime.fromtimestamp(time.seconds, UTC).strftime("%A"),
    "Day": _part("day"),
    "Hour": _part("hour"),
    "Minute": _part("minute"),
    "Second": _part("second"),
}
