"""Counters, gauges and histograms that a server's parts keep, and a scrape shows. To count is an update of a dict.

Upstream: k8s.io/component-base/metrics.
"""

from bisect import bisect_left
from collections import Counter

from msgspec import Struct, field

Values = tuple[str, ...]


class Family(Struct, frozen=True, eq=False):
    """A metric by its upstream name; `bounds` are the upper ones of a histogram's buckets. Compared by identity."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...] = ()
    gauge: bool = False


class Histogram:
    """The number of values up to each bound, the last one without a bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.reset()

    def reset(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[0 if value <= self.bounds[0] else bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it), ending with all of them."""
        total, rows = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            rows.append(("+Inf" if bound == float("inf") else f"{bound:g}", float(total)))
        return rows


class Instruments(Struct):
    """The metrics registry of one server.

    Who counts often keeps the counter or the histogram, which stays the same when all are reset. Label values come from what is
    stored or served, so no client can create many of them.
    """

    numbers: dict[Family, Counter[Values]] = field(default_factory=dict)
    histograms: dict[Family, dict[Values, Histogram]] = field(default_factory=dict)

    def counter(self, family: Family) -> Counter[Values]:
        """Returns the family's numbers by their labels' values."""
        numbers = self.numbers.get(family)
        if numbers is None:
            numbers = self.numbers[family] = Counter()
        return numbers

    def histogram(self, family: Family, *values: str) -> Histogram:
        """Returns the family's histogram for these labels' values."""
        histograms = self.histograms.setdefault(family, {})
        histogram = histograms.get(values)
        if histogram is None:
            histogram = histograms[values] = Histogram(family.bounds)
        return histogram

    def count(self, family: Family, *values: str, by: int = 1) -> None:
        self.counter(family)[values] += by

    def set(self, family: Family, value: int, *values: str) -> None:
        self.counter(family)[values] = value

    def observe(self, family: Family, value: float, *values: str) -> None:
        self.histogram(family, *values).observe(value)

    def reset(self) -> None:
        for numbers in self.numbers.values():
            numbers.clear()
        for histograms in self.histograms.values():
            for histogram in histograms.values():
                histogram.reset()


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds of buckets.

    >>> exponential(1, 2, 3)
    (1, 2, 4)
    """
    return tuple(start * factor**power for power in range(count))
