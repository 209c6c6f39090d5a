"""A trial of a spec: a custom resource is created with it, and another one is changed to it and back."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.sweep import case, invariants
from fakeapiserver.sweep.case import Expected, Run, Target
from fakeapiserver.sweep.clusters import Base
from fakeapiserver.sweep.exploring import cases, subject
from fakeapiserver.sweep.exploring.cases import Case
from fakeapiserver.sweep.exploring.subject import Subject
from fakeapiserver.sweep.process import panics
from fakeapiserver.sweep.scenario import Step
from fakeapiserver.sweep.states import State
from fakeapiserver.sweep.timeline import Event, timeline

# Statuses that say that the object of a write is invalid, which no other try mends.
_INVALID: Final = frozenset((400, 403, 405, 413, 415, 422))
# An operator that writes an object so often in a step that doesn't end is in a loop.
_MANY: Final = 10


class Seen(Struct):
    """The cluster after a step. `restless`: what doesn't come to rest, or "". `refused`: writes of the operator that the API server finally
    refused as invalid. `broken`: invariants that don't hold, with the words of their assertions. `former`: the state before the
    operator was started again, if it was. `told`: whether the operator has written an Event."""

    state: State
    restless: str = ""
    panics: Sequence[str] = ()
    refused: Sequence[str] = ()
    broken: Sequence[tuple[str, str]] = ()
    former: State | None = None
    told: bool = False


class Trial(Struct):
    """A spec that was tried. `created` is None if the server refused such an object or nothing is changed, `back` if the server refused to
    go back or nothing was changed. `between`: the state after the first of several moves, if the trial was run by itself."""

    created: Seen | None
    there: Seen
    back: Seen | None
    timeline: Sequence[Event] = ()
    between: State | None = None


def isolated(target: Target, chosen: Subject, base: Base, learnt: Expected, tried: Case) -> Trial:
    """Tries a case with a new cluster, a fork of `base`, and an operator that is started in each. `learnt`: the state without changes.
    Raises as `case.run`, and StatusError if the server refuses the changes."""
    created = _created(target, chosen, tried, learnt.pause)
    is_known = created is not None and not created.refused
    refused_back = list[bool]()

    def go_back(cluster: Cluster) -> None:
        try:
            cluster.patch(chosen.reference, chosen.back(), namespace=chosen.namespace or None)
        except StatusError:
            refused_back.append(True)

    steps = [_moving(chosen, tried, number) for number in range(len(tried))] or [
        Step("start again", lambda cluster: None)
    ]
    wanted = [*([None] * (len(steps) - 1)), created.state if created is not None and is_known else None]
    wanted = [*wanted, *learnt.states] if tried else [*learnt.states]
    scenario = subject.with_steps(target.scenario, [*steps, *([Step("go back", go_back)] if tried else [])])
    run = case.run(
        structs.replace(target, scenario=scenario), expected=structs.replace(learnt, states=wanted), base=base
    )
    there = min(len(steps), len(run.states)) - 1
    is_back = tried and not refused_back and len(run.states) > len(steps)
    back = _seen(run, len(steps), target) if is_back else None
    between = run.states[0] if len(tried) > 1 else None
    return Trial(created, _seen(run, there, target), back, timeline(run), between)


def refused_writes(requests: RequestList) -> list[str]:
    """The objects of which the operator's last write was refused as invalid, each with the server's words."""
    last = {(each.resource, each.namespace, each.name, each.subresource): each for each in requests.writes}
    return [
        f"{each.verb} {each.resource} {each.name}: {each.message}"[:300]
        for each in last.values()
        if each.status in _INVALID
    ]


def restless(text: str, requests: RequestList) -> str:
    """The text, or "" if the operator only reads, repeats writes that are refused, or others go on for longer than it does."""
    writes = Counter((each.resource, each.namespace, each.name) for each in requests.writes if each.status < 300)
    return (
        "" if text.startswith("the operator doesn't come to rest") and max(writes.values(), default=0) < _MANY else text
    )


def broken_invariants(run: Run, target: Target) -> list[tuple[str, str]]:
    """The invariants of the scenario that don't hold, with the words of their assertions."""
    return [(each.invariant, each.text) for each in invariants.violations(run.changes, target.scenario.invariants)]


def _created(target: Target, chosen: Subject, tried: Case, pause: float) -> Seen | None:
    """Creates the object with the changes. `pause`: seconds for which the operator may sleep between two writes."""
    if not tried:
        return None
    manifest = chosen.manifest_of(cases.changed(chosen.current, tried))
    scenario = subject.with_manifest(target.scenario, chosen.manifest, manifest)
    try:
        timing = structs.replace(target.timing, calm=pause * case.LONGER)
        run, restarted = _undisturbed(structs.replace(target, scenario=scenario, timing=timing))
    except case.StepFailed as failed:
        if isinstance(failed.__cause__, StatusError):
            return None
        raise
    if not run.states:
        return None
    return structs.replace(_seen(run, len(run.states) - 1, target), state=restarted, former=run.states[-1])


def _undisturbed(target: Target) -> tuple[Run, State]:
    """Runs the scenario as `case.run_with_restart` does. An operator that ends by itself is started again, a few times."""
    try:
        return case.run_with_restart(target)
    except case.DoesNotStart:
        run = case.run(target, expected=Expected(()))
        return run, run.states[-1] if run.states else {}


def _moving(chosen: Subject, tried: Case, number: int) -> Step:
    patch = cases.patch_of(tried[number])

    def go(cluster: Cluster) -> None:
        cluster.patch(chosen.reference, patch, namespace=chosen.namespace or None)

    return Step(f"change {cases.id_of((tried[number],))}", go)


def _seen(run: Run, step: int, target: Target) -> Seen:
    """The cluster after a step of a run. The problems of a whole run count for its last step."""
    since, until = (run.marks[step - 1] if step else 0), run.marks[step]
    requests = RequestList(each for each in run.requests.since(since) if each.seq <= until)
    texts = [run.restless[step], *(run.problems if step == len(run.states) - 1 else ())]
    text = next((each for each in (restless(text, requests) for text in texts) if each), "")
    is_last = step == len(run.states) - 1
    return Seen(
        run.states[step],
        text,
        panics(run.output) if is_last else (),
        refused_writes(requests),
        broken_invariants(run, target) if is_last else (),
        told=any(each.resource == "events" for each in requests.writes),
    )
