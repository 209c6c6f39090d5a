"""Times on the wire (upstream: k8s.io/apimachinery/pkg/apis/meta/v1/{time.go,micro_time.go})."""

from datetime import UTC, datetime
from functools import lru_cache

__all__ = ["rfc3339", "rfc3339_micro", "seconds_of"]


def rfc3339(seconds: float) -> str:
    """metav1.Time on the wire: UTC, whole seconds, `2026-01-02T15:04:05Z`."""
    return f"{_to_the_second(int(seconds))}Z"


def rfc3339_micro(seconds: float) -> str:
    """metav1.MicroTime on the wire: UTC, microseconds, `2026-01-02T15:04:05.000000Z`."""
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_to_the_second(whole)}.{micros:06}Z"


@lru_cache(16)
def _to_the_second(seconds: int) -> str:
    """Asked for again and again."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def seconds_of(text: str | None) -> float | None:
    """An RFC 3339 time as seconds since the Unix epoch; None for what isn't one."""
    try:
        return None if text is None else datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
