"""Cron schedules as robfig/cron reads them. What it refuses is in the recorded exchanges."""

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
