"""Go's durations as text: `1h30m`, `1.5s`, `-2ms`.

Upstream: time.ParseDuration, time.Duration.String.
"""

import re
from typing import Final

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]*(?:\.[0-9]*)?)([^0-9.]*)")
_MAX_SECONDS: Final = (1 << 63) * 1e-9
# How the package time quotes: what isn't plain ASCII byte by byte.
_QUOTED: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x80, 0x100))} | {0x22: '\\"', 0x5C: "\\\\"}


def parse_duration(text: str) -> float:
    """Seconds. ValueError worded as Go words it.

    >>> parse_duration("1h30m"), parse_duration("-.5s"), parse_duration("0")
    (5400.0, -0.5, 0.0)
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f"time: invalid duration {_quote(text)}")
    seconds = 0.0
    while rest:
        part = _PART.match(rest)
        number, unit = part.groups() if part else ("", "")
        if not number.strip("."):
            raise ValueError(f"time: invalid duration {_quote(text)}")
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quote(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
        seconds += float(number) * _UNITS[unit]
        if seconds >= _MAX_SECONDS:
            raise ValueError(f"time: invalid duration {_quote(text)}")
        rest = rest[len(number) + len(unit) :]
    return -seconds if text.startswith("-") else seconds


def _quote(text: str) -> str:
    return '"' + text.encode().decode("latin-1").translate(_QUOTED) + '"'


def format_duration(seconds: float) -> str:
    """As Go shows it.

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
