"""Time zones by name, as Go loads them (upstream: time.LoadLocation)."""

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo


def load_location(name: str) -> tzinfo:
    """Returns a time zone of the zone database. No name, `UTC` and `Local` are UTC.

    Raises ValueError: in Go's words, for a name that could lead out of the database, or that isn't in it.
    """
    if ".." in name or name[:1] in ("/", "\\"):
        raise ValueError("time: invalid location name")
    if name in ("", "UTC", "Local"):
        return UTC

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name}") from None
