"""A schedule chooses, among the requests that match a fault, those that are struck."""

import random

import pytest

from fakeapiserver.faults.schedule import Schedule, Turns


@pytest.mark.parametrize(
    ("schedule", "struck"),
    [
        (Schedule(), [1, 2, 3, 4, 5, 6]),
        (Schedule(times=2), [1, 2]),
        (Schedule(nth=3), [3]),
        (Schedule(every=2), [2, 4, 6]),
        (Schedule(every=2, times=2), [2, 4]),
        (Schedule(after=3.0), [4, 5, 6]),
        (Schedule(until=2.0), [1, 2]),
        (Schedule(after=1.0, until=4.0, nth=2), [3]),
    ],
)
def test_one_request_a_second(schedule: Schedule, struck: list[int]) -> None:
    turns = Turns(schedule, 100.0, random.Random(0))
    assert [second + 1 for second in range(6) if turns.take(100.0 + second)] == struck
    assert turns.hits == len(struck)


def test_dice_of_one_seed_fall_alike() -> None:
    schedule = Schedule(probability=0.3, seed=7)
    first, second = (Turns(schedule, 0.0, random.Random()) for _ in range(2))
    falls = [first.take(0.0) for _ in range(1000)]
    assert falls == [second.take(0.0) for _ in range(1000)]
    assert 200 < sum(falls) < 400
