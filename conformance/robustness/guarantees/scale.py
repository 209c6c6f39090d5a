"""A server with many objects: the memory of each is bounded, lists are quick, and other clients aren't kept waiting by them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from conformance.robustness.attacks.prober import Prober, processor_clock
from conformance.robustness.guarantees.guarantee import Report, mebibytes, milliseconds, percentile, progress
from conformance.robustness.served import CONFIG_MAPS, Served, config_map, done, served

_CLIENTS: Final = 8
_TEXT: Final = "x" * 2048
# Objects before the first measurement, so that what a server loads once doesn't count.
_WARM: Final = 500
_PAGE: Final = 500
_PAGES: Final = 200
_LISTS: Final = 3
# Bytes of memory that an object of 2 KiB may cost, and that all requests together may leave.
_EACH: Final = 4096
_ONCE: Final = 4 << 20
# Seconds of processor time that a page takes at most (99 of 100), and that another client waits.
_QUICK: Final = 0.1
_PATIENCE: Final = 120.0


def scale(full: bool) -> Report:
    """100,000 objects of 2 KiB in full, 2,000 for CI, which judges memory alone."""
    objects = 100_000 if full else 2_000
    with served() as server:
        _fill(server, range(_WARM))
        problems = list[str]()
        server.client(_PATIENCE).read(f"{CONFIG_MAPS}?limit={_PAGE}")
        before = server.memory()
        _fill(server, range(_WARM, _WARM + objects))
        after = server.memory()
        progress(f"{objects:,} objects: {mebibytes(after)}")
        client, used = server.client(_PATIENCE), processor_clock(server.process)
        listed = client.read(CONFIG_MAPS)
        if (seen := listed.count(_TEXT.encode())) != _WARM + objects:
            problems.append(f"a list has {seen:,} of {_WARM + objects:,} objects")
        pages = sorted(
            _spent(used, lambda: client.read(f"{CONFIG_MAPS}?limit={_PAGE}")) for _ in range(_PAGES if full else 10)
        )
        prober = Prober(server.kubeconfig, server.process)
        prober.begin()
        lists = [_spent(used, lambda: client.read(CONFIG_MAPS)) for _ in range(_LISTS)]
        waits = prober.end()
        prober.close()
    each = (after - before) / objects
    if after - before > objects * _EACH + _ONCE:
        problems.append(f"an object takes {each:,.0f} bytes of memory, and may take {_EACH:,}")
    if full and percentile(pages, 0.99) > _QUICK:
        problems.append(f"a page of {_PAGE} takes {milliseconds(percentile(pages, 0.99))} of the processor (p99)")
    if full and waits.held > _QUICK:
        problems.append(f"another client waited {milliseconds(waits.held)}")
    figures = {
        "objects of 2 KiB": f"{objects:,}",
        "memory": f"{mebibytes(before)} before, {mebibytes(after)} with them: {each:,.0f} bytes each",
        f"list of {_PAGE}, processor time": f"{milliseconds(percentile(pages, 0.5))} (p50), {milliseconds(percentile(pages, 0.99))} (p99)",
        f"list of all, {mebibytes(len(listed))}, processor time": f"{milliseconds(percentile(lists, 0.5))} (p50)",
        "longest wait of another client meanwhile": milliseconds(waits.held),
    }
    return Report(figures, problems)


def _fill(server: Served, numbers: range) -> None:
    """Raises RuntimeError if the server refuses an object."""

    def create(numbers: range) -> None:
        client = server.client(_PATIENCE)
        for number in numbers:
            done(client.ask("POST", CONFIG_MAPS, config_map(f"large-{number}", text=_TEXT)), 201)
        client.close()

    with ThreadPoolExecutor(_CLIENTS) as pool:
        for _ in pool.map(create, [numbers[first::_CLIENTS] for first in range(_CLIENTS)]):
            pass


def _spent(clock: Callable[[], float], work: Callable[[], object]) -> float:
    began = clock()
    work()
    return clock() - began
