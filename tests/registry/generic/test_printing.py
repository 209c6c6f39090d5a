"""Ages as tables show them (upstream: k8s.io/apimachinery/pkg/util/duration/duration_test.go has the same edges)."""

import pytest

from fakeapiserver.registry.generic.printing import human_duration, translate_timestamp_since

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (10 * _MINUTE - 1, "9m59s"),
        (10 * _MINUTE + 30, "10m"),
        (3 * _HOUR - 1, "179m"),
        (3 * _HOUR + 30, "3h"),
        (8 * _HOUR - 1, "7h59m"),
        (8 * _HOUR + _MINUTE, "8h"),
        (2 * _DAY - 1, "47h"),
        (2 * _DAY + _HOUR - 1, "2d"),
        (8 * _DAY - 1, "7d23h"),
        (8 * _DAY, "8d"),
        (2 * _YEAR - 1, "729d"),
        (2 * _YEAR + 5 * _DAY, "2y5d"),
        (8 * _YEAR - 1, "7y364d"),
        (8 * _YEAR + 5 * _DAY, "8y"),
        (292 * _YEAR, "292y"),
        (1000 * _YEAR, "292y"),  # the longest of Go's durations
    ],
)
def test_human_duration(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown


@pytest.mark.parametrize(
    ("timestamp", "shown"),
    [
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("1970-01-01T00:00:00Z", "30d"),
        ("1970-01-30T23:59:58.500000Z", "1s"),
        ("1970-01-31T00:00:01Z", "0s"),
        ("1970-01-31T00:00:02Z", "<invalid>"),
        ("0001-01-02T00:00:00Z", "292y"),
    ],
)
def test_timestamps_are_shown_as_their_age(timestamp: str | None, shown: str) -> None:
    assert translate_timestamp_since(timestamp, 30 * _DAY) == shown
