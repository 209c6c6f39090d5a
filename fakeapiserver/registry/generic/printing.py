"""Formats times and counts as table cells show them (upstream: k8s.io/apimachinery/pkg/util/duration/duration.go, pkg/printers)."""

from typing import Final

from fakeapiserver.apimachinery.timestamp import seconds_of

# Go's durations are nanoseconds in 64 bits: 292 years.
_LONGEST: Final = (2**63 - 1) // 10**9


def translate_timestamp_since(timestamp: str | None, now: float) -> str:
    """An RFC 3339 time as its age; `<unknown>` without a time (upstream: translateTimestampSince)."""
    seconds = seconds_of(timestamp) if timestamp else None
    return "<unknown>" if seconds is None else duration_since(seconds, now)


def duration_since(seconds: float, now: float) -> str:
    return human_duration(int(now - seconds))


def human_duration(seconds: int) -> str:
    """`5s`, `2m10s`, `3h5m`, `2d4h`, `10d`, `2y30d`: the precision falls with the length (HumanDuration)."""
    seconds = min(seconds, _LONGEST)
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 60 * 2:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 60 * 3:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _pair(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years = days // 365
    return _pair(years, "y", days % 365, "d") if hours < 24 * 365 * 8 else f"{years}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
