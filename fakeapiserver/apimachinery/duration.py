"""Go's durations as text: `1h30m`, `1.5s`, `-2ms`.

Upstream: time.ParseDuration, time.Duration.String.
"""

import re
from typing import Final

# In nanoseconds.
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(?!\Z)([0-9]*+)((?:\.[0-9]*+)?)([^0-9.]*+)")
_LIMIT: Final = 1 << 63
_LIMIT_DIGITS: Final = len(str(_LIMIT))
# How the package time quotes: what isn't plain ASCII byte by byte.
_QUOTED: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x80, 0x100))} | {0x22: '\\"', 0x5C: "\\\\"}


def parse_duration(text: str) -> float:
    """Returns a duration in seconds.

    Raises ValueError: in Go's words, for text that isn't a duration or is longer than about 292 years.

    >>> parse_duration("1h30m"), parse_duration("-.5s"), parse_duration("0")
    (5400.0, -0.5, 0.0)
    """
    return parse_nanoseconds(text) / 1e9


def parse_nanoseconds(text: str) -> int:
    """Returns a duration in nanoseconds; what is smaller is cut off in each of its parts, as Go does.

    The text is read once from left to right, so that long text takes time in proportion to its length.

    Raises ValueError: in Go's words, for text that isn't a duration, or doesn't fit into 64 bits.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    if not rest:
        raise _invalid(text)
    if rest == "0":
        return 0
    limit = _LIMIT if text.startswith("-") else _LIMIT - 1
    total = 0
    for part in _PART.finditer(rest):
        total += _nanoseconds(text, *part.groups())
        if total > limit:
            raise _invalid(text)
    return -total if text.startswith("-") else total


def _nanoseconds(text: str, whole: str, fraction: str, unit: str) -> int:
    """Returns the length of one part of `text`."""
    if len(whole) > _LIMIT_DIGITS:
        whole = whole.lstrip("0") or "0"
    if not (whole or fraction.strip(".")) or len(whole) > _LIMIT_DIGITS or (number := int(whole or "0")) > _LIMIT:
        raise _invalid(text)
    if unit not in _UNITS:
        problem = f"unknown unit {_quote(unit)}" if unit else "missing unit"
        raise ValueError(f"time: {problem} in duration {_quote(text)}")
    duration = number * _UNITS[unit]
    if fraction:
        duration += _part_of(_UNITS[unit], fraction[1:])
    if duration > _LIMIT:
        raise _invalid(text)
    return duration


def _part_of(unit: int, digits: str) -> int:
    """Returns the nanoseconds of a fraction of a unit. Digits that don't fit into 64 bits are ignored, as in Go."""
    number, scale = 0, 1.0
    for digit in digits:
        longer = number * 10 + int(digit)
        if longer > _LIMIT:
            break
        number, scale = longer, scale * 10
    return int(number * (unit / scale))


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {_quote(text)}")


def _quote(text: str) -> str:
    return '"' + text.encode().decode("latin-1").translate(_QUOTED) + '"'


def format_duration(seconds: float) -> str:
    """Formats a duration as Go does.

    >>> format_duration(5400), format_duration(0.25), format_duration(0), format_duration(-1.5)
    ('1h30m0s', '250ms', '0s', '-1.5s')
    """
    nanoseconds = abs(round(seconds * 1e9))
    sign = "-" if seconds < 0 and nanoseconds else ""
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if 0 < nanoseconds < size * 1_000:
            return f"{sign}{_decimal(nanoseconds, size)}{unit}"
    minutes, rest = divmod(nanoseconds, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 1_000_000_000)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(value: int, size: int) -> str:
    whole, rest = divmod(value, size)
    if not rest:
        return str(whole)
    digits = len(str(size)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0")
