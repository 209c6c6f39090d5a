"""Watchers that read, and watchers that don't."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from conformance.robustness.client import Client
from conformance.robustness.guarantees.guarantee import Report, mebibytes, milliseconds, percentile
from conformance.robustness.guarantees.watching import Arrivals, Watcher, open_watchers
from conformance.robustness.served import CONFIG_MAPS, config_map, done, served

# Seconds in which all events have to arrive after the last write.
_PATIENCE: Final = 300.0
_LONGEST_DELAY: Final = 2.0
# Deliveries of events a second: without a pause between writes the delays would be those of a queue that grows.
_RATE: Final = 200_000
# Bytes that a watcher may cost, and those that a stalled one may hold back.
_WATCHER: Final = 60 * 1024
_STALLED: Final = 4 * 2**20
# Bytes of an object, and events, which fill all buffers of a connection whatever the machine gives it.
_LARGE: Final = 200_000
_LARGE_EVENTS: Final = 80


def fan_out(full: bool) -> Report:
    """Writes events for many watchers, which must get each of them once, in order. In full, delays and memory are judged as well."""
    return asyncio.run(_fan_out(full))


async def _fan_out(full: bool) -> Report:
    watchers, events = (10_000, 1_000) if full else (100, 50)
    with served() as server:
        client, arrivals = server.client(), Arrivals()
        revision = _created(client)
        before = server.memory()
        opened = await open_watchers(server.credentials, CONFIG_MAPS, revision, watchers, arrivals.arrived)
        each = (server.memory() - before) / watchers
        began = time.monotonic()
        revisions = await asyncio.to_thread(_write, client, events, arrivals, "", watchers / _RATE)
        problems = await _lost(opened, revisions)
        seconds, late = time.monotonic() - began, percentile(arrivals.delays, 0.99)
        for watcher in opened:
            watcher.close()
    if full and late > _LONGEST_DELAY:
        problems.append(f"a hundredth of the events took {late:.1f} s or more")
    if full and each > _WATCHER:
        problems.append(f"a watcher costs {each / 1024:.0f} KiB")
    figures = {
        "watchers, events": f"{watchers:,}, {events:,}",
        "events a second": f"{watchers * events / seconds:,.0f}",
        "from the write to the event, p50": milliseconds(percentile(arrivals.delays, 0.5)),
        "... p99": milliseconds(late),
        "memory of a watcher": f"{each / 1024:.0f} KiB",
    }
    return Report(figures, problems)


def slow_readers(full: bool) -> Report:
    """A tenth of the watchers stops reading, and goes on later: none loses an event, and the server keeps little for them.

    In full, the memory is judged as well."""
    return asyncio.run(_slow_readers(full))


async def _slow_readers(full: bool) -> Report:
    watchers = 1_000 if full else 30
    stalled = watchers // 10
    with served() as server:
        # The writer shares its processor with a thousand readers.
        client, arrivals = server.client(_PATIENCE), Arrivals()
        revision = _created(client)
        opened = await open_watchers(server.credentials, CONFIG_MAPS, revision, watchers, arrivals.arrived)
        slow, quick = opened[:stalled], opened[stalled:]
        for watcher in slow:
            watcher.stall()
        server.forget_peak()
        before = server.memory()
        revisions = await asyncio.to_thread(_write, client, _LARGE_EVENTS, arrivals, "x" * _LARGE)
        problems = await _lost(quick, revisions)
        more, most = server.memory() - before, server.peak() - before
        for watcher in slow:
            watcher.go_on()
        rests = [
            asyncio.wait((watcher.reached(len(revisions)), watcher.ended), return_when=asyncio.FIRST_COMPLETED)
            for watcher in slow
        ]
        await asyncio.wait_for(asyncio.gather(*rests), _PATIENCE)
        gaps = sum(watcher.revisions != revisions[: len(watcher.revisions)] for watcher in slow)
        ended = sum(watcher.ended.done() for watcher in slow)
        for watcher in opened:
            watcher.close()
    history = _LARGE_EVENTS * _LARGE
    allowed = history + stalled * _STALLED
    if gaps:
        problems.append(f"{gaps} stalled watches have a gap")
    if full and most > allowed:
        problems.append(f"the server held {mebibytes(most)}, not {mebibytes(allowed)}")
    figures = {
        "watchers, of which stalled": f"{watchers:,}, {stalled:,}",
        "events of 200 KB": f"{len(revisions):,}",
        "from the write to the event, p99": milliseconds(percentile(arrivals.delays, 0.99)),
        "stalled watches that were ended; the others got everything": f"{ended}",
        f"more memory of the server at most, of which history {mebibytes(history)}": mebibytes(most),
        "... when all but the stalled watchers had everything": mebibytes(more),
    }
    return Report(figures, problems)


def _created(client: Client) -> str:
    created = done(client.ask("POST", CONFIG_MAPS, config_map("watched")), 201)
    return str(created["metadata"]["resourceVersion"])


def _write(client: Client, count: int, arrivals: Arrivals, text: str = "", pause: float = 0.0) -> list[int]:
    """Updates the object so often, at least `pause` seconds apart, and returns the revisions."""
    revisions: list[int] = []
    for number in range(count):
        began = time.monotonic()
        changed = config_map("watched", number=str(number), text=text)
        written = done(client.ask("PUT", f"{CONFIG_MAPS}/watched", changed), 200)
        revisions.append(int(written["metadata"]["resourceVersion"]))
        arrivals.written(revisions[-1], began)
        time.sleep(max(0.0, began + pause - time.monotonic()))
    return revisions


async def _lost(watchers: Sequence[Watcher], revisions: list[int]) -> list[str]:
    """Waits for the last event, and returns what differs from the log."""
    await asyncio.wait([watcher.reached(len(revisions)) for watcher in watchers], timeout=_PATIENCE)
    wrong = [watcher for watcher in watchers if watcher.revisions != revisions]
    return [f"{len(wrong)} of {len(watchers)} watchers saw other events than those that were written"] if wrong else []
