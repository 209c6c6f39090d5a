"""A promise, and what a run of it has shown."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct


class Skipped(Exception):
    """This machine lacks what the run needs. The text is one sentence."""


class Report(Struct, frozen=True):
    """figures: measured values with their units, by what was measured. problems: what broke the promise; empty if it was kept."""

    figures: Mapping[str, str]
    problems: Sequence[str]


class Guarantee(Struct, frozen=True):
    """promise: one sentence. run: takes True for the full size, which may take an hour, and False for the size of CI; raises Skipped."""

    promise: str
    run: Callable[[bool], Report]


def progress(text: str) -> None:
    """Shows on the standard error what a long run has found so far, with the time of day."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def mebibytes(count: float) -> str:
    return f"{count / 2**20:.1f} MiB"


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value below which a share of the values is; 0 without values."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0
