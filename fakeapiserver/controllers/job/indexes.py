"""Sets of completion indexes, as `0,2-5`; pure (upstream: pkg/controller/job/indexed_job_utils.go, orderedIntervals)."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Self

from msgspec import Struct

from fakeapiserver.apimachinery.go.strconv import atoi


class Indexes(Struct, frozen=True):
    """`intervals`: (first, last), ascending, neither overlapping nor adjacent.

    >>> str(Indexes.parse("0,2-3,9", 8) | Indexes.of([1, 6]))
    '0-3,6'
    """

    intervals: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Self:
        return cls(_joined((index, index) for index in sorted(indexes)))

    @classmethod
    def parse(cls, text: str, completions: int) -> Self:
        """Parses intervals below `completions`; invalid numbers are skipped."""
        intervals: list[tuple[int, int]] = []
        for part in text.split(",") if text else ():
            first, _, last = part.partition("-")
            try:
                low, high = atoi(first), atoi(last or first)
            except ValueError:
                continue
            if low >= completions:
                break
            intervals.append((low, min(high, completions - 1)))
        return cls(_joined(intervals))

    def __or__(self, other: "Indexes") -> "Indexes":
        return Indexes(_joined(sorted((*self.intervals, *other.intervals))))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __contains__(self, index: int) -> bool:
        at = bisect_left(self.intervals, index, key=lambda interval: interval[1])
        return at < len(self.intervals) and self.intervals[at][0] <= index

    def __str__(self) -> str:
        return ",".join(_shown(first, last) for first, last in self.intervals)

    def common(self, other: "Indexes") -> int:
        """Returns how many indexes both have."""
        return len(self) + len(other) - len(self | other)

    def missing(self, end: int) -> Iterator[int]:
        """Yields the indexes below `end` that are missing, ascending."""
        candidate = 0
        for first, last in self.intervals:
            yield from range(candidate, min(first, end))
            candidate = last + 1
        yield from range(candidate, end)


def _joined(intervals: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Joins ascending intervals that touch."""
    joined: list[tuple[int, int]] = []
    for first, last in intervals:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def _shown(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
