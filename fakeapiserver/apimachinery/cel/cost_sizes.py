"""Estimated sizes and costs, saturating at the greatest uint64."""

import math
from typing import Final, NamedTuple

MAX: Final = (1 << 64) - 1
Path = tuple[str, ...]


class Size(NamedTuple):
    """The least and the most elements, characters or bytes."""

    least: int
    most: int

    def union(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: "Size") -> "Size":
        return Size(added(self.least, other.least), added(self.most, other.most))

    def times(self, other: "Size") -> "Size":
        return Size(product(self.least, other.least), product(self.most, other.most))

    def cost(self, factor: float) -> int:
        return scaled(self.most, factor)


UNKNOWN_SIZE: Final = Size(0, MAX)
ONE_ITEM: Final = Size(1, 1)


class Entries(NamedTuple):
    """Sizes of a container's keys and values."""

    kind: str
    key: Size
    value: Size


class Estimate(NamedTuple):
    """A call's own cost, and the size of its result if that is known."""

    cost: int
    size: Size | None = None


def added(one: int, other: int) -> int:
    return min(one + other, MAX)


def product(one: int, other: int) -> int:
    return min(one * other, MAX)


def scaled(size: int, factor: float) -> int:
    if size > 0 and factor > 0 and float(size) > MAX / factor:
        return MAX
    scaled = math.ceil(float(size) * factor)
    return MAX if scaled >= 2.0**64 else scaled
