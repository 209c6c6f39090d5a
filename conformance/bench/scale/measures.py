"""Measures requests on a small server, a large server as a whole, watchers, and several servers on one etcd."""

import json
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from conformance.bench.beside import beside
from conformance.bench.requests import load_of
from conformance.bench.scale import stores
from conformance.bench.scale.stores import Running
from conformance.bench.servers import TOKEN
from conformance.bench.table import Note

_WATCHERS: Final = 1000
_EVENTS: Final = 100
# Deleting one object after the other takes some milliseconds each, except in memory.
_MAX_DELETED: Final = 10_000


def requests(running: Running, program: Path, note: Note) -> None:
    """Measures requests one after another, and of 16 clients, on a server that was empty."""
    load = load_of(program, running.server)
    note("rss_idle", running.rss())
    load("create", 300, prefix="warm")
    for mode in ("create", "get", "update", "patch"):
        printed = load(mode, 500, prefix="single", objects=500)
        note(f"{mode}_p50", printed["p50_ms"])
        note(f"{mode}_p99", printed["p99_ms"])
    note("page", load("page", 50)["p50_ms"])
    for mode, count in (("create", 3000), ("get", 6000)):
        before = running.seconds()
        note(f"{mode}s", load(mode, count, clients=16, prefix="many", objects=3000)["per_second"])
        note(f"{mode}s_processor", (running.seconds() - before) * 1000 / count)


def size(running: Running, program: Path, note: Note, objects: int, idle: Mapping[str, float]) -> None:
    """Measures a server with many pods and nodes. `idle`: the memory of empty servers in MiB, by their names."""
    load = load_of(program, running.server)
    note("open", running.server.ready_seconds)
    note("open_processor", running.seconds())
    note("rss", running.rss())
    if running.name in idle:
        note("bytes", (running.rss() - idle[running.name]) * 2**20 / objects)
    with _probing(program, running, note, "list_wait"):
        note("list", load("list", 3, resource="pods")["p50_ms"])
    note("pages", load("pages", 2, resource="pods")["p50_ms"])
    note("selector", load("selector", 5, resource="pods")["p50_ms"])
    get = load("get", 500, resource="pods", prefix="pod", objects=min(objects // 2, 500))
    note("large_get_p50", get["p50_ms"])
    note("large_get_p99", get["p99_ms"])
    note("large_create_p50", load("create", 300, prefix="late")["p50_ms"])
    if running.name == stores.MEMORY or objects <= 2 * _MAX_DELETED:
        with _probing(program, running, note, "deletecollection_wait"):
            note("deletecollection", load("deletecollection", 1, resource="pods")["seconds"])


def watchers(running: Running, program: Path, note: Note) -> None:
    """Measures a thousand watchers of one collection."""
    load = load_of(program, running.server)
    before, processor = running.rss(), running.seconds()
    with _most(running.rss) as most:
        note("watch", load("watch", _EVENTS, clients=_WATCHERS, prefix="watched")["seconds"])
    note("watch_processor", (running.seconds() - processor) * 1e6 / (_EVENTS * _WATCHERS))
    note("watcher", (max(most) - before) * 1024 / _WATCHERS)


def farm(running: list[Running], program: Path, note: Note) -> None:
    """Measures one server, or several on one etcd, with 16 and 32 clients that are spread over them."""
    load = load_of(program, *(each.server for each in running))
    load("create", 300, clients=4, prefix="warm")
    for clients in (16, 32):
        for mode, count in (("create", 2000), ("get", 4000)):
            prefix = f"farm{clients}"
            rate = load(mode, count, clients=clients, prefix=prefix, objects=2000)["per_second"]
            note(f"{mode}_{clients}_{len(running)}", rate)


@contextmanager
def _probing(program: Path, running: Running, note: Note, key: str) -> Iterator[None]:
    """Notes the longest time that a GET of another process takes meanwhile."""
    command = [str(program), f"-url={running.server.url}", f"-token={TOKEN}", "-mode=probe"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield
        finally:
            printed, _ = process.communicate()
        note(key, json.loads(printed)["max_ms"])


@contextmanager
def _most(value: Callable[[], float]) -> Iterator[list[float]]:
    """Yields a list that gets the value four times a second."""
    values = [value()]
    with beside(lambda: values.append(value()), 0.25):
        yield values


def medians(figures: Mapping[str, Mapping[str, list[float]]]) -> dict[str, dict[str, float]]:
    """The medians of all rounds."""
    return {name: {key: statistics.median(values) for key, values in noted.items()} for name, noted in figures.items()}
