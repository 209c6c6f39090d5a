"""Cron schedules as robfig/cron reads them. What it refuses is in the recorded exchanges."""

from datetime import datetime

import pytest

from fakeapiserver.apimachinery.cron import Schedule, parse

DAYS, MONTHS, EVERY_DAY = range(1, 32), range(1, 13), range(7)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("* * * * *", (range(60), range(24), DAYS, MONTHS, EVERY_DAY)),
        ("5/15 */12 1,15 Jan-mar FRI", ((5, 20, 35, 50), (0, 12), (1, 15), (1, 2, 3), (5,))),
        ("? 8-18/5 10-12 dec sun-tue", (range(60), (8, 13, 18), (10, 11, 12), (12,), (0, 1, 2))),
        ("@weekly", ((0,), (0,), DAYS, MONTHS, (0,))),
    ],
)
def test_fields(text: str, fields: tuple[range | tuple[int, ...], ...]) -> None:
    assert parse(text).fields == tuple(map(frozenset, fields))


def test_descriptors_and_zones() -> None:
    assert parse("@every 1h30m") == Schedule(every=5400.0)
    assert parse("TZ=Europe/Berlin @hourly").zone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("*/15 * * * *", "2026-01-01T00:00:00+00:00", "2026-01-01T00:15:00+00:00"),
        ("*/15 * * * *", "2026-01-01T00:14:59+00:00", "2026-01-01T00:15:00+00:00"),
        ("0 0 * * *", "2026-12-31T12:00:00+00:00", "2027-01-01T00:00:00+00:00"),
        ("30 6 29 2 *", "2026-01-01T00:00:00+00:00", "2028-02-29T06:30:00+00:00"),
        ("0 0 31 2 *", "2026-01-01T00:00:00+00:00", None),
        ("0 12 * * mon", "2026-11-21T00:00:00+00:00", "2026-11-23T12:00:00+00:00"),
        # a day of the month or a day of the week, if both are said
        ("0 0 13 * fri", "2026-11-13T00:00:00+00:00", "2026-11-20T00:00:00+00:00"),
        ("0 0 1 * 0-6", "2026-11-13T00:00:00+00:00", "2026-11-14T00:00:00+00:00"),
        ("0 0 1 * *", "2026-11-13T00:00:00+00:00", "2026-12-01T00:00:00+00:00"),
        ("@every 90s", "2026-01-01T00:00:00+00:00", "2026-01-01T00:01:30+00:00"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"),
        # an hour that is skipped is not due, one that is repeated is due twice
        ("CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00+00:00", "2026-03-30T00:30:00+00:00"),
        ("CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30:00+00:00", "2026-10-25T01:30:00+00:00"),
        # where midnight is skipped, upstream takes the day after a Saturday for one
        ("TZ=Asia/Beirut 27 13 * * 6", "2026-03-28T11:27:00+00:00", "2026-03-29T10:27:00+00:00"),
        # clocks that are turned by half an hour
        ("TZ=Australia/Lord_Howe 0-5 4 * * 0", "2025-03-31T00:00:00+00:00", "2025-04-12T17:30:00+00:00"),
        ("@every 200ms", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"),  # a second at least
        ("@every 1.9s", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"),
    ],
)
def test_when_a_schedule_is_due_next(schedule: str, after: str, due: str | None) -> None:
    found = parse(schedule).next_after(datetime.fromisoformat(after).timestamp(), "UTC")
    assert found == (datetime.fromisoformat(due).timestamp() if due else None)
