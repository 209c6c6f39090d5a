"""The perturbations that are worth trying, from a recording of the scenario."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.perturbation import KINDS, Kind, Perturbation, WritePoint

_OTHERS: Final = frozenset(("leases", "events"))
_CHANGES: Final = ("update", "patch")
_APPLY: Final = "application/apply-patch+yaml"
# A patch without a resourceVersion can't be refused as a conflict by a real server.
_CONFLICTS: Final = ("update",)


def points_of(run: Run) -> list[tuple[WritePoint, RequestEntry]]:
    """The successful writes of the operator that change something, in order, without those of leader election and events."""
    counts: dict[tuple[str, ...], int] = {}
    found = []
    for entry in run.writes:
        if entry.resource in _OTHERS or entry.status >= 300 or entry.dry_run or entry.verb == "deletecollection":
            continue
        resource = f"{entry.resource}.{entry.group}" if entry.group else entry.resource
        name = entry.name if run.names.by_text.get(entry.name, entry.name) == entry.name else ""
        key = (entry.verb, resource, entry.subresource, entry.namespace, name)
        counts[key] = counts.get(key, 0) + 1
        if entry.changed:
            found.append((WritePoint(*key, counts[key]), entry))
    return found


def plan(first: Run, second: Run, kinds: Sequence[Kind] = KINDS) -> list[Perturbation]:
    """Every perturbation of these kinds at a point that both runs have, the most promising first."""
    steps = len(first.states)
    again = {point for point, _ in points_of(second)}
    points = [(point, entry) for point, entry in points_of(first) if point in again]
    makers = {
        "crash": _crashes(points),
        "refuse": _refusals(points),
        "conflict": _conflicts(points),
        "stale": _stale(points, first, steps),
        "unobserved": _unobserved(first, points, steps),
        "late": (Perturbation("late", resource=resource) for resource in first.watched),
        "restart": (Perturbation("restart", point) for point, _ in points[:1] + points[-1:]),
        "lease": _leases(first, steps),
    }
    return list(dict.fromkeys(each for kind in kinds for each in makers[kind]))


def _crashes(points: Sequence[tuple[WritePoint, RequestEntry]]) -> Iterator[Perturbation]:
    """After each write: before the next one is the same state. Before the first, nothing of the operator's is there."""
    for point, _ in points[:1]:
        yield Perturbation("crash", point, "before")
    for point, _ in points:
        yield Perturbation("crash", point, "after")


def _refusals(points: Sequence[tuple[WritePoint, RequestEntry]]) -> Iterator[Perturbation]:
    for point, _ in points:
        yield Perturbation("refuse", point, "before", 500)
    for point, _ in points:
        yield Perturbation("refuse", point, "after", 504)
    for point, _ in points:
        if point.verb in _CONFLICTS:
            yield Perturbation("refuse", point, "before", 409)


def _conflicts(points: Sequence[tuple[WritePoint, RequestEntry]]) -> Iterator[Perturbation]:
    for point, entry in points:
        if point.name and (point.verb == "delete" or (point.verb in _CHANGES and entry.patch_type != _APPLY)):
            yield Perturbation("conflict", point)


def _stale(points: Sequence[tuple[WritePoint, RequestEntry]], run: Run, steps: int) -> Iterator[Perturbation]:
    """The state after each earlier step, and the state before each write that deletes or lets go: in that view an object ends that a
    later step has made again."""
    for until in range(1, steps):
        for step in range(until - 1, -1, -1):
            yield Perturbation("stale", step=step, until=until)
    for point, entry in points:
        if point.verb == "delete" or _lets_go(entry):
            for until in range(_step_of(run, entry, steps), steps):
                yield Perturbation("stale", point, until=until)


def _step_of(run: Run, entry: RequestEntry, steps: int) -> int:
    return next((number for number, mark in enumerate(run.marks) if entry.seq <= mark), steps - 1)


def _lets_go(entry: RequestEntry) -> bool:
    """Reports whether the write removes the last finalizer of an object that is being deleted."""
    if entry.verb not in _CHANGES:
        return False
    meta = (entry.answer or entry.after or {}).get("metadata") or {}
    return bool(meta.get("deletionTimestamp")) and not meta.get("finalizers")


def _unobserved(run: Run, points: Sequence[tuple[WritePoint, RequestEntry]], steps: int) -> Iterator[Perturbation]:
    """Not in steps that end only when the operator has let something go: it can't, while it sees nothing."""
    held = {_step_of(run, entry, steps) for _, entry in points if _lets_go(entry)}
    for resource in run.watched:
        for step in range(steps):
            if step not in held:
                yield Perturbation("unobserved", step=step, until=step, resource=resource)
        for step in range(steps - 1):
            if step not in held and step + 1 not in held:
                yield Perturbation("unobserved", step=step, until=step + 1, resource=resource)


def _leases(run: Run, steps: int) -> Iterator[Perturbation]:
    if any(entry.resource == "leases" for entry in run.writes):
        yield Perturbation("lease", step=0, until=0)
        if steps > 1:
            yield Perturbation("lease", step=steps - 1, until=steps - 1)


def only(planned: Iterable[Perturbation], names: Sequence[str]) -> list[Perturbation]:
    """The perturbations with these names. Raises ValueError for an unknown name."""
    by_name = {each.id: each for each in planned}
    for name in names:
        if name not in by_name:
            raise ValueError(f"there is no perturbation {name!r} in this scenario; --plan lists them")
    return [by_name[name] for name in names]
