"""The perturbations that are worth trying, from a recording of the scenario."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from msgspec import structs

from fakeapiserver.evidence import election
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.perturbation import KINDS, Kind, Perturbation, WritePoint
from fakeapiserver.sweep.planning import observations, ordering, slowness
from fakeapiserver.sweep.planning.observations import Observed
from fakeapiserver.sweep.scenario import WAIT
from fakeapiserver.sweep.states import CONVERSION

_EVENTS: Final = "events"
_CHANGES: Final = ("update", "patch")
_APPLY: Final = "application/apply-patch+yaml"
# A patch without a resourceVersion can't be refused as a conflict by a real server.
_CONFLICTS: Final = ("update",)
# The other ways in which a write may fail, which seldom differ from 500: tried once for each verb and resource.
_RARE_REFUSALS: Final = (("before", 429), ("before", 504), ("before", 0), ("after", 0))
# More states of an object within a step are not left out one by one.
_MOST_SINGLE_STATES: Final = 4


def points_of(run: Run) -> list[tuple[WritePoint, RequestEntry]]:
    """The successful writes of the operator that change something, in order, without those of leader election and events. Writes of an
    object are counted in each step; those of the first step in which there are some don't name it."""
    counts: dict[tuple[int, tuple[str, ...]], int] = {}
    begun: dict[tuple[str, ...], int] = {}
    found = []
    for entry in run.writes:
        if entry.resource == _EVENTS or entry.status >= 300 or entry.dry_run or entry.verb == "deletecollection":
            continue
        if election.concerns(entry):
            continue
        resource = f"{entry.resource}.{entry.group}" if entry.group else entry.resource
        name = entry.name if run.names.by_text.get(entry.name, entry.name) == entry.name else ""
        key = (entry.verb, resource, entry.subresource, entry.namespace, name)
        step = observations.step_of(run, entry)
        number = counts[step, key] = counts.get((step, key), 0) + 1
        is_first_step = begun.setdefault(key, step) == step
        if entry.changed:
            found.append((WritePoint(*key, number, -1 if is_first_step else step), entry))
    return found


def plan(
    first: Run, second: Run, kinds: Sequence[Kind] = KINDS, *, looks_between_steps: bool = False
) -> list[Perturbation]:
    """Every perturbation of these kinds at a point that both runs have, the most promising first. `looks_between_steps`: the operator
    must have done its work at the end of each step."""
    steps = len(first.states)
    again = {point for point, _ in points_of(second)}
    points = [(point, entry) for point, entry in points_of(first) if point in again]
    seen = observations.steps_of(first)
    acts = [step for step in range(steps) if not first.titles[step].startswith(WAIT)]
    held = {observations.step_of(first, entry) for _, entry in points if slowness.lets_go(entry)}
    blindable = [step for step in acts if step not in held]
    makers = {
        "crash": _crashes(points),
        "refuse": _refusals(points),
        "conflict": _conflicts(points),
        "away": () if looks_between_steps else _away(points, first, [*_away_spans(first, seen, _spans(acts, held))]),
        "slow": slowness.plan(points, first),
        "stale": _stale(points, first, seen),
        "unobserved": _unobserved(seen, blindable, [] if looks_between_steps else [*_spans(acts, held)]),
        "reordered": _reordered(seen, blindable),
        "late": (Perturbation("late", resource=resource) for resource in first.watched),
        "restart": (Perturbation("restart", point) for point, _ in points[:1] + points[-1:]),
        "lease": _leases(first, steps),
        "webhook": _webhooks(first, points, acts),
        "clock": _clock(seen),
    }
    return ordering.by_promise(dict.fromkeys(each for kind in kinds for each in makers[kind]))


def smaller(perturbation: Perturbation, first: Run) -> list[Perturbation]:
    """Perturbations that are a part of this one, to find the part that matters."""
    if perturbation.kind == "unobserved" and perturbation.states[0] < perturbation.states[1]:
        states = range(perturbation.states[0], perturbation.states[1] + 1)
        return [structs.replace(perturbation, states=(state, state)) for state in states]
    if perturbation.kind == "late" and perturbation.step < 0:
        steps = enumerate(observations.steps_of(first))
        touched = [
            step for step, seen in steps if any(each.resource == perturbation.resource for each in seen.values())
        ]
        return [structs.replace(perturbation, step=step, until=step) for step in touched]
    return []


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
    firsts = {(point.verb, point.resource, point.subresource): point for point, _ in reversed(points)}
    for when, status in _RARE_REFUSALS:
        for point in reversed(firsts.values()):
            yield Perturbation("refuse", point, when, status)


def _conflicts(points: Sequence[tuple[WritePoint, RequestEntry]]) -> Iterator[Perturbation]:
    for point, entry in points:
        if point.name and (point.verb == "delete" or (point.verb in _CHANGES and entry.patch_type != _APPLY)):
            yield Perturbation("conflict", point)


def _away(
    points: Sequence[tuple[WritePoint, RequestEntry]], run: Run, spans: Sequence[tuple[int, int]]
) -> Iterator[Perturbation]:
    """After each write, if the user does something else next. Nothing that users do then may need the operator."""
    later = dict(spans)
    for point, entry in points:
        step = observations.step_of(run, entry)
        if step in later:
            yield Perturbation("away", point, "after", step=step, until=later[step])


def _stale(
    points: Sequence[tuple[WritePoint, RequestEntry]], run: Run, seen: Sequence[Mapping[tuple[str, str], Observed]]
) -> Iterator[Perturbation]:
    """The states of all resources, and then those of a resource that users write: a server has a watch cache for each."""
    whole = [*_old_states(points, run)]
    yield from whole
    for resource in sorted({each.resource for step in seen for each in step.values() if each.by_user}):
        if {*run.watched} - {resource}:
            yield from (structs.replace(each, resource=resource) for each in whole)


def _old_states(points: Sequence[tuple[WritePoint, RequestEntry]], run: Run) -> Iterator[Perturbation]:
    """The state after each earlier step, and the state before each write that deletes or lets go: in that view an object ends that a
    later step has made again."""
    steps = len(run.states)
    for until in range(1, steps):
        for step in range(until - 1, -1, -1):
            yield Perturbation("stale", step=step, until=until)
    for point, entry in points:
        if point.verb == "delete" or slowness.lets_go(entry):
            for until in range(observations.step_of(run, entry), steps):
                yield Perturbation("stale", point, until=until)


def _spans(acts: Sequence[int], held: Set[int]) -> Iterator[tuple[int, int]]:
    """Two things that users do one after the other, while the operator needn't let anything go."""
    for step, then in itertools.pairwise(acts):
        if step not in held and then not in held:
            yield step, then


def _unobserved(
    seen: Sequence[Mapping[tuple[str, str], Observed]], steps: Sequence[int], spans: Sequence[tuple[int, int]]
) -> Iterator[Perturbation]:
    """Leaves out all states of an object but the last of a step, for objects that users change also over two steps, and then single
    states. Among objects whose names differ in a number the first and the last are chosen."""
    for step in steps:
        for each in _representatives(seen[step].values()):
            if each.changes > 1:
                yield _unseen(each, step, step, (1, each.changes - 1))
    for step, then in spans:
        for key, each in seen[step].items():
            later = seen[then].get(key)
            if later is not None and each.by_user and later.by_user:
                yield _unseen(each, step, then, (1, each.changes + later.changes - 1))
    for step in steps:
        for each in _representatives(seen[step].values()):
            if 2 < each.changes <= _MOST_SINGLE_STATES + 1:
                for state in range(1, each.changes):
                    yield _unseen(each, step, step, (state, state))


def _unseen(each: Observed, step: int, until: int, states: tuple[int, int]) -> Perturbation:
    return Perturbation("unobserved", step=step, until=until, resource=each.resource, object=each.name, states=states)


def _representatives(objects: Iterable[Observed]) -> list[Observed]:
    groups: dict[tuple[str, str], list[Observed]] = {}
    for each in objects:
        groups.setdefault((each.resource, each.name.rstrip("0123456789")), []).append(each)
    ends = [(group[0], group[-1]) for group in groups.values()]
    return [each for first, last in ends for each in ((first, last) if first is not last else (first,))]


def _reordered(seen: Sequence[Mapping[tuple[str, str], Observed]], steps: Sequence[int]) -> Iterator[Perturbation]:
    """Not in steps in which only one resource has events."""
    for step in steps:
        resources = sorted({each.resource for each in seen[step].values()})
        for resource in resources if len(resources) > 1 else ():
            yield Perturbation("reordered", step=step, until=step, resource=resource)


def _webhooks(
    run: Run, points: Sequence[tuple[WritePoint, RequestEntry]], acts: Sequence[int]
) -> Iterator[Perturbation]:
    """Each webhook that is called for what the operator writes in a step."""
    admission = {name: each for name, each in run.webhooks.items() if not name.startswith(CONVERSION)}
    for name, resources in admission.items():
        for step in acts:
            written = {
                point.resource.partition(".")[0] for point, entry in points if observations.step_of(run, entry) == step
            }
            if _concerns(resources, written):
                yield Perturbation("webhook", step=step, until=step, object=name)


def _concerns(resources: Sequence[str], written: Set[str]) -> bool:
    """Reports whether a webhook for these resources is called for writes of the others."""
    return bool(written) and any("*" in each or each.partition("/")[0] in written for each in resources)


def _away_spans(
    run: Run, seen: Sequence[Mapping[tuple[str, str], Observed]], spans: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Leaves out those in which users write at last what a webhook is called for: while the operator is away, such a write is refused."""
    for step, then in spans:
        written = {each.resource.partition(".")[0] for each in seen[then].values() if each.by_user}
        if not any(_concerns(resources, written) for resources in run.webhooks.values()):
            yield step, then


def _clock(seen: Sequence[Mapping[tuple[str, str], Observed]]) -> Iterator[Perturbation]:
    """Only if there are pods that become ready, and the operator sees that."""
    if any(each.changes > 1 and each.resource == "pods" for step in seen for each in step.values()):
        yield Perturbation("clock")


def _leases(run: Run, steps: int) -> Iterator[Perturbation]:
    if any(entry.resource == "leases" for entry in run.writes):
        yield Perturbation("lease", step=0, until=0)
        if steps > 1:
            yield Perturbation("lease", step=steps - 1, until=steps - 1)
