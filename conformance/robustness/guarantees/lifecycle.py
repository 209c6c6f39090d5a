"""Clusters in one process, one after the other and side by side: nothing stays behind."""

import asyncio
import gc
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from conformance.robustness.guarantees.guarantee import Report, milliseconds, percentile
from fakeapiserver import Cluster

# The first clusters of a process load modules and fill tables.
_WARM: Final = 5
_OBJECT: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def one_after_the_other(full: bool) -> Report:
    """Starts and stops clusters, each with a write."""
    count = 1_000 if full else 30
    for _ in range(_WARM):
        _life()
    before, starts = _resources(), [_life() for _ in range(count)]
    return _report(before, {"clusters": f"{count:,}", "start, p50": milliseconds(percentile(starts, 0.5))})


def side_by_side(full: bool) -> Report:
    """Runs clusters at the same time: what one holds, the others don't see."""
    count = 50 if full else 5
    for _ in range(_WARM):
        _life()
    before, problems = _resources(), []
    with ExitStack() as stack:
        clusters = [stack.enter_context(Cluster(controllers=())) for _ in range(count)]
        for number, cluster in enumerate(clusters):
            cluster.apply({**_OBJECT, "data": {"number": str(number)}})
        for number, cluster in enumerate(clusters):
            if cluster.get("cm/a")["data"] != {"number": str(number)}:
                problems.append(f"cluster {number} has the object of another one")
    return _report(before, {"clusters at the same time": str(count)}, problems)


def _life() -> float:
    """Returns the seconds of the start."""
    began = time.monotonic()
    with Cluster() as cluster:
        started = time.monotonic() - began
        cluster.apply(_OBJECT)
    return started


def _resources() -> dict[str, int]:
    gc.collect()
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "event loops": sum(
            isinstance(obj, asyncio.AbstractEventLoop) and not obj.is_closed() for obj in gc.get_objects()
        ),
    }


def _report(before: dict[str, int], figures: dict[str, str], problems: list[str] | None = None) -> Report:
    after = _resources()
    grown = [f"{name}: {before[name]} before, {after[name]} after" for name in before if after[name] > before[name]]
    return Report(
        {**figures, **{f"{name} left": str(after[name] - before[name]) for name in before}}, [*(problems or ()), *grown]
    )
