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


class Histogram(Struct):
    """A histogram: the number of values below each bound, and their sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    sum: float = 0.0

    def observe(self, value: float) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it), ending with all of them."""
        total, rows = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            rows.append(("+Inf" if bound == float("inf") else f"{bound:g}", float(total)))
        return rows


class Instruments(Struct):
    """The instruments of one server.

    Label values come from what is stored or served, so no client can create many of them.
    """

    numbers: dict[Family, Counter[Values]] = field(default_factory=dict)
    histograms: dict[Family, dict[Values, Histogram]] = field(default_factory=dict)

    def count(self, family: Family, *values: str, by: int = 1) -> None:
        numbers = self.numbers.get(family)
        if numbers is None:
            numbers = self.numbers[family] = Counter()
        numbers[values] += by

    def set(self, family: Family, value: int, *values: str) -> None:
        self.numbers.setdefault(family, Counter())[values] = value

    def observe(self, family: Family, value: float, *values: str) -> None:
        histograms = self.histograms.setdefault(family, {})
        histogram = histograms.get(values)
        if histogram is None:
            histogram = histograms[values] = Histogram(family.bounds)
        histogram.observe(value)

    def reset(self) -> None:
        self.numbers.clear()
        self.histograms.clear()


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds of buckets.

    >>> exponential(1, 2, 3)
    (1, 2, 4)
    """
    return tuple(start * factor**power for power in range(count))
