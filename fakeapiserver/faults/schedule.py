"""Chooses which of the requests that match a fault are struck."""

import random

from msgspec import Struct


class Schedule(Struct, frozen=True):
    """`times`: at most so many. `nth`: only this one, from 1. `every`: each so many'th. `probability`: by dice, whose `seed` repeats them.

    `after`, `until`: seconds on the cluster's clock since the fault was added.
    """

    times: int = 0
    nth: int = 0
    every: int = 0
    probability: float = 1.0
    seed: int | None = None
    after: float = 0.0
    until: float = 0.0

    def check(self) -> None:
        """Raises ValueError with one sentence if parts exclude each other."""
        if self.nth and (self.every or self.times > 1):
            raise ValueError("nth strikes one request: leave every and times out")
        if self.until and self.until <= self.after:
            raise ValueError(f"until ({self.until:g} s) is not later than after ({self.after:g} s)")
        if self.seed is not None and self.probability == 1.0:
            raise ValueError("seed is for probability: add it, for example probability=0.1")


class Turns:
    """Decides for each request that matches whether it is struck. `begun`: when the fault was added; `dice`: for `probability`."""

    def __init__(self, schedule: Schedule, begun: float, dice: random.Random) -> None:
        self._schedule = schedule
        self._begun = begun
        self._dice = dice if schedule.seed is None else random.Random(schedule.seed)
        self.seen = 0
        self.hits = 0

    def take(self, now: float) -> bool:
        """Counts a request that matches at `now`, and reports whether it is struck."""
        schedule, since = self._schedule, now - self._begun
        if since < schedule.after or (schedule.until and since >= schedule.until):
            return False
        self.seen += 1
        if schedule.times and self.hits >= schedule.times:
            return False
        if schedule.nth and self.seen != schedule.nth:
            return False
        if schedule.every and self.seen % schedule.every:
            return False
        if schedule.probability < 1.0 and self._dice.random() >= schedule.probability:
            return False
        self.hits += 1
        return True
