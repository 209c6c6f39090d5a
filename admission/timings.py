"""The duration of plugins and of the chain's two steps.

Upstream: k8s.io/apiserver/pkg/admission/metrics/metrics.go.
"""

from bisect import bisect_left
from typing import Final, Literal, NamedTuple

from msgspec import Struct, field

from fakeapiserver.admission.interfaces import Operation

Step = Literal["admit", "validate"]
# Upper bounds in seconds.
BOUNDS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)


class What(NamedTuple):
    """`plugin` is empty for a whole step."""

    plugin: str
    operation: Operation
    rejected: bool
    step: Step


class Timing(Struct):
    """The number of runs up to each bound (the last one: longer), and seconds in all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    sum: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[0 if seconds <= 0.005 else bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds


class Timings(dict[What, Timing]):
    """The observations since the last reset."""

    def of(self, plugin: str, step: Step, operation: Operation, *, rejected: bool) -> Timing:
        return self.setdefault(What(plugin, operation, rejected, step), Timing())

    def reset(self) -> None:
        for timing in self.values():
            timing.counts, timing.sum = [0] * (len(BOUNDS) + 1), 0.0
