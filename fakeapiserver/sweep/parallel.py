"""Cases side by side."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], items: Iterable[T], jobs: int, deadline: float) -> Iterator[R]:
    """The results as they come, `jobs` at a time. Nothing is begun after the deadline, a time of time.monotonic()."""
    waiting = iter(items)
    with ThreadPoolExecutor(jobs) as pool:
        running: set[Future[R]] = set()
        while True:
            while len(running) < jobs and time.monotonic() < deadline and (item := next(waiting, None)) is not None:
                running.add(pool.submit(work, item))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
