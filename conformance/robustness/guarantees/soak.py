"""Hours of writes, of watches and of definitions that come and go: a server's memory, descriptors and threads stay as they are."""

import threading
import time
from collections.abc import Callable, Sequence
from statistics import linear_regression
from typing import Final

from msgspec import Struct

from conformance.robustness.client import LOST
from conformance.robustness.guarantees.guarantee import Report, mebibytes, progress
from conformance.robustness.kinds import definition
from conformance.robustness.served import CONFIG_MAPS, Served, config_map, done, served

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_COMPACTION: Final = "/fakeapiserver/compact"
# Different objects, which are written again and again, so that the state keeps its size.
_OBJECTS: Final = 500
_WRITES: Final = 200  # a second
_WATCHERS: Final = 20
# Shares: of the time before the first measurement, and by which memory may grow in an hour.
_WARM_UP: Final = 0.3
_GROWTH: Final = 0.01
_MEASUREMENTS: Final = 8
_LOOK: Final = 1.0


class _Measurement(Struct, frozen=True):
    """seconds: since the beginning. all_of_it: bytes of memory before the history was compacted; compacted: after it."""

    seconds: float
    all_of_it: int
    compacted: int

    def text(self) -> str:
        return f"{self.seconds / 60:.0f} min {mebibytes(self.all_of_it)} ({mebibytes(self.compacted)} without history)"


def soak(full: bool) -> Report:
    """An hour in full, 20 seconds for CI, which are too short to judge memory."""
    seconds = 3600.0 if full else 20.0
    with served() as server:
        stop, failures = threading.Event(), list[str]()
        tasks = (_writes, _definitions, *[_watches] * _WATCHERS)
        threads = [threading.Thread(target=_until, args=(stop, failures, task, server), daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        time.sleep(seconds * _WARM_UP)
        descriptors, count = server.descriptors(), server.threads()
        measured = _measurements(server, seconds * _WARM_UP, seconds)
        stop.set()
        for thread in threads:
            thread.join(30)
        time.sleep(_LOOK)
        after = server.descriptors(), server.threads()
    hourly = hourly_growth([each.seconds for each in measured], [each.compacted for each in measured])
    problems = [*failures]
    if full and hourly > _GROWTH:
        problems.append(f"memory grows by {hourly:.1%} an hour")
    if after[0] > descriptors or after[1] > count:
        problems.append(
            f"descriptors and threads: {descriptors} and {count} under load, {after[0]} and {after[1]} at rest"
        )
    figures = {
        "seconds": f"{seconds:,.0f}",
        "memory": ", ".join(each.text() for each in measured),
        "growth in an hour": f"{hourly:.1%}",
        "descriptors and threads at rest": f"{after[0]}, {after[1]}",
    }
    return Report(figures, problems)


def _measurements(server: Served, warm_up: float, seconds: float) -> list[_Measurement]:
    """Measures memory _MEASUREMENTS times between the end of the warm-up and the last second."""
    began, pause = time.monotonic() - warm_up, (seconds - warm_up) / (_MEASUREMENTS - 1)
    measured = list[_Measurement]()
    for number in range(_MEASUREMENTS):
        time.sleep(max(0.0, began + warm_up + number * pause - time.monotonic()))
        since, all_of_it = time.monotonic() - began, server.memory()
        measured.append(_Measurement(since, all_of_it, without_history(server)))
        progress(measured[-1].text())
    return measured


def hourly_growth(seconds: Sequence[float], memory: Sequence[float]) -> float:
    """Returns the share by which memory grows in an hour: the slope of the straight line that fits best, over the first point of it."""
    slope, first = linear_regression([each - seconds[0] for each in seconds], memory)
    return slope * 3600 / first


def without_history(server: Served) -> int:
    """Returns the memory once the history is compacted: it grows with the writes until it has 100,000 events, or 64 MiB."""
    client = server.client()
    listed = done(client.ask("GET", f"{CONFIG_MAPS}?limit=1"), 200)
    done(client.ask("POST", _COMPACTION, {"revision": int(listed["metadata"]["resourceVersion"])}), 200)
    client.close()
    time.sleep(_LOOK)
    return server.memory()


def _until(
    stop: threading.Event, failures: list[str], task: Callable[[Served, threading.Event], None], server: Served
) -> None:
    try:
        task(server, stop)
    except (*LOST, RuntimeError) as error:
        failures.append(f"{task.__name__.strip('_')}: {error}")


def _writes(server: Served, stop: threading.Event) -> None:
    client, number = server.client(), 0
    began = time.monotonic()
    while not stop.is_set():
        name = f"soaked-{number % _OBJECTS}"
        if number < _OBJECTS:
            done(client.ask("POST", CONFIG_MAPS, config_map(name, number=str(number))), 201)
        else:
            done(client.ask("PUT", f"{CONFIG_MAPS}/{name}", config_map(name, number=str(number))), 200)
        number += 1
        stop.wait(max(0.0, began + number / _WRITES - time.monotonic()))


def _definitions(server: Served, stop: threading.Event) -> None:
    client = server.client()
    while not stop.is_set():
        created = done(client.ask("POST", DEFINITIONS, definition()), 201)
        path = f"{DEFINITIONS}/{created['metadata']['name']}"
        stop.wait(_LOOK)
        done(client.ask("DELETE", path), 200)
        while not stop.is_set() and client.ask("GET", path)[0] == 200:
            stop.wait(0.05)


def _watches(server: Served, stop: threading.Event) -> None:
    while not stop.is_set():
        for _ in server.client().watch(CONFIG_MAPS, {"timeoutSeconds": 2}):
            if stop.is_set():
                return
