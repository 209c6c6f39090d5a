"""Durations and timestamps.

Upstream: github.com/google/cel-go/common/types/{duration,timestamp}.go, Go's time.ParseDuration and time.Time
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from fakeapiserver.apimachinery.duration import parse_nanoseconds
from fakeapiserver.apimachinery.go.strconv import atoi
from fakeapiserver.apimachinery.location import load_location
from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.values import Duration, Timestamp

SECOND: Final = 10**9
_RFC3339: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_MIN_SECONDS: Final = -62135596800
_MAX_SECONDS: Final = 253402300799
ZERO_NS: Final = _MIN_SECONDS * SECOND
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# 400 years.
_CYCLE: Final = timedelta(days=146097)
_MAX_NS: Final = 1 << 63


def to_duration(text: str) -> Duration:
    """Parses Go's notation, `1h30m`."""
    try:
        return Duration(parse_nanoseconds(text))
    except ValueError:
        raise CelError("type conversion error from 'string' to 'google.protobuf.Duration'") from None


def duration_text(duration: Duration) -> str:
    """Seconds, as protobuf writes durations (`90s`, `1.5s`), yet only as exactly as a double holds them."""
    sign = -1 if duration.ns < 0 else 1
    seconds, rest = divmod(abs(duration.ns), SECOND)
    text = format(Decimal(repr(sign * (float(seconds) + rest / 1e9))), "f")
    return f"{text.removesuffix('.0')}s"


def to_timestamp(text: str) -> Timestamp:
    """Parses RFC 3339."""
    wrong = CelError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise wrong
    zone = match.group(8)
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[4:6])) * (-60 if zone[0] == "-" else 60)
    try:
        moment = datetime.fromisoformat(match.group()[:19]).replace(tzinfo=UTC)
    except ValueError:
        raise wrong from None
    if abs(offset) >= 86400:
        raise wrong
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset
    try:
        return checked_timestamp(seconds * SECOND + int((match.group(7) or "0")[:9].ljust(9, "0")), offset)
    except CelError:
        raise wrong from None


def checked_timestamp(ns: int, offset: int = 0) -> Timestamp:
    if not _MIN_SECONDS <= ns // SECOND <= _MAX_SECONDS:
        raise CelError("timestamp overflow")
    return Timestamp(ns, offset)


def moved(timestamp: Timestamp, ns: int) -> Timestamp:
    return checked_timestamp(timestamp.ns + ns, timestamp.offset)


def checked_duration(ns: int) -> Duration:
    if not -_MAX_NS <= ns < _MAX_NS:
        raise CelError("integer overflow")
    return Duration(ns)


def timestamp_text(timestamp: Timestamp) -> str:
    seconds, rest = divmod(timestamp.ns, SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    clock = _EPOCH + timedelta(seconds=seconds + timestamp.offset)
    hours, minutes = divmod(abs(timestamp.offset) // 60, 60)
    zone = f"{'-' if timestamp.offset < 0 else '+'}{hours:02d}:{minutes:02d}" if timestamp.offset else "Z"
    return f"{clock.replace(tzinfo=None).isoformat()}{fraction}{zone}"


def in_zone(timestamp: Timestamp, zone: tzinfo | timedelta) -> tuple[datetime, int]:
    """The clock there, and by how many years it is ahead: Python's calendar ends where Go's goes on, and is the same after each
    400 years. Fractions of seconds are cut to microseconds."""
    moment = _EPOCH + timedelta(microseconds=timestamp.ns // 1000)
    ahead = 400 if moment.year < 2 else -400 if moment.year > 9998 else 0
    moment += (ahead // 400) * _CYCLE
    if isinstance(zone, timedelta):
        return moment + zone, ahead
    if not ahead:
        return moment.astimezone(zone), 0
    return moment + (zone.utcoffset(moment - (ahead // 400) * _CYCLE) or timedelta()), ahead


def _atoi(text: str) -> int:
    try:
        return atoi(text)
    except ValueError as error:
        raise CelError(str(error)) from None


def zone_of(name: str) -> tzinfo | timedelta:
    """A zone by name, or an offset as `+02:00`."""
    if ":" in name:
        hours, _, minutes = name.partition(":")
        signed, rest = _atoi(hours), _atoi(minutes)
        # Go computes in 64 bits of nanoseconds, and a day is as far as anybody goes.
        offset = (signed * 60 + (-rest if hours.startswith("-") else rest)) * 60 * SECOND
        return timedelta(microseconds=((offset + (1 << 63)) % (1 << 64) - (1 << 63)) // 1000)
    try:
        return load_location(name)
    except ValueError as error:
        raise CelError(str(error)) from None


def part(name: str, clock: tuple[datetime, int], ns: int) -> Any:
    """Returns the result of a method of timestamps. `clock` comes from `in_zone`."""
    moment, ahead = clock
    match name:
        case "getFullYear":
            return moment.year - ahead
        case "getMonth":
            return moment.month - 1
        case "getDayOfYear":
            return moment.timetuple().tm_yday - 1
        case "getDayOfMonth":
            return moment.day - 1
        case "getDate":
            return moment.day
        case "getDayOfWeek":
            return moment.isoweekday() % 7
        case "getHours":
            return moment.hour
        case "getMinutes":
            return moment.minute
        case "getSeconds":
            return moment.second
    return ns % SECOND // 10**6
