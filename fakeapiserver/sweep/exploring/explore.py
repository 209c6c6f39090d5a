"""Tries the specs of a custom resource, each in a fork of the cluster in which its operator has come to rest."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.sweep import case, invariants, states
from fakeapiserver.sweep.case import Expected, Run, Target
from fakeapiserver.sweep.clusters import Base
from fakeapiserver.sweep.exploring import cases, chain, changes, findings, joint, subject
from fakeapiserver.sweep.exploring.cases import Case
from fakeapiserver.sweep.exploring.changes import Change
from fakeapiserver.sweep.exploring.findings import SpecResult
from fakeapiserver.sweep.exploring.oracles import Awaited, Judge, failures
from fakeapiserver.sweep.exploring.subject import Subject
from fakeapiserver.sweep.exploring.workers import Experiment, Workers
from fakeapiserver.sweep.judging import Finding
from fakeapiserver.sweep.process import panics
from fakeapiserver.sweep.scenario import with_other_chances
from fakeapiserver.sweep.start_up import has_webhooks

# A case with symptoms is run again, and the operator gets more time to begin with something.
_PATIENT: Final = 4.0
# Seconds for which an operator that isn't disturbed may sleep between two writes.
_CALM: Final = 5.0
# Seconds within which an undisturbed operator must come to rest after a step.
_LEARNING_PATIENCE: Final = 90.0


class Learnt(Struct):
    """The operator at rest with the scenario's own spec. `target` is the beginning of the scenario. `every`: the changes that the schema
    suggests. `plan` adds those that the server's admission doesn't allow to `refused`."""

    target: Target
    base: Base
    subject: Subject
    expected: Expected
    every: Sequence[Change]
    refused: list[Change]
    seconds: float

    @property
    def reported(self) -> Sequence[str]:
        """The errors that the custom resource reports with the scenario's own spec, such as `phase Failed`."""
        state = self.expected.states[0] or {}
        return sorted(failures(state.get(self.subject.title, {}).get("status") or {}))


class Exploration(Struct):
    """The result. `planned` is the number of cases, of which `results` were run within the budget. `fields` are those of the schema, and
    `not_reached` says why some weren't changed."""

    findings: Sequence[Finding]
    results: Sequence[SpecResult]
    planned: int
    refused: int
    fields: Sequence[str]
    not_reached: dict[str, str]
    seconds: float

    @property
    def tried(self) -> Sequence[str]:
        """The fields that were changed."""
        return sorted({each for result in self.results for each in result.fields})

    @property
    def without_effect(self) -> Sequence[str]:
        """The fields whose changes alone, all without symptoms, changed nothing else."""
        singles = [each for each in self.results if len(each.fields) == 1 and not each.error]
        effective = {each.fields[0] for each in singles if each.effects or each.symptoms or each.refused}
        return sorted({each.fields[0] for each in singles} - effective)

    @property
    def unsure(self) -> Sequence[SpecResult]:
        """The cases that couldn't be run, or whose symptoms were seen only once."""
        return [each for each in self.results if each.error or not each.repeats]

    @property
    def states(self) -> int:
        """The number of different states."""
        return len({each.effects for each in self.results if each.effects})


Progress = Callable[[int, int, SpecResult], None]


@contextmanager
def learn(target: Target, wanted: str = "") -> Iterator[Learnt]:
    """Runs the beginning of the scenario twice. Raises ValueError if there is no such object or the operator fails, and as `case.run`."""
    beginning = subject.beginning_of(target.scenario)
    target = structs.replace(target, scenario=beginning)
    with case.at_rest(_calm(target, _CALM)) as (first, base):
        other = structs.replace(target, scenario=with_other_chances(beginning))
        second, restarted = case.run_with_restart(_calm(other, first.pause * case.LONGER))
        for run in (first, second):
            _require_well(run, beginning.invariants)
        noise = states.noise_of(first.states[-1], restarted)
        noise |= states.brought_up_to_date(second.states[-1], restarted)
        expected = Expected([first.states[-1]], noise, pause=max(first.pause, second.pause))
        chosen = subject.find(base.cluster, beginning, wanted)
        every = changes.of_schema(chosen.schema, chosen.current)
        slowest = 2 * max(*first.step_seconds, *second.step_seconds)
        timing = structs.replace(target.timing, patience=max(target.timing.patience, slowest))
        target = structs.replace(target, timing=timing)
        yield Learnt(target, base, chosen, expected, every, [], first.seconds + second.seconds)


def _calm(target: Target, seconds: float) -> Target:
    """The target with an operator that may sleep for so long between two writes, and that needs long for all of them."""
    timing = structs.replace(target.timing, calm=seconds, patience=max(target.timing.patience, _LEARNING_PATIENCE))
    return structs.replace(target, timing=timing)


def plan(learnt: Learnt, most: int, depth: int = 2) -> list[Case]:
    """At most so many cases that the server's admission allows: nothing, each change alone, and with `depth` 2 changes of two fields, in an
    order without a pattern."""
    if not has_webhooks(learnt.target.operator, learnt.target.scenario.surroundings):
        return _planned(learnt, learnt.base.cluster, most, depth)
    planned: list[Case] = []
    chain.with_operator(
        learnt.target, learnt.base, lambda cluster: planned.extend(_planned(learnt, cluster, most, depth))
    )
    return planned


def _planned(learnt: Learnt, cluster: Cluster, most: int, depth: int) -> list[Case]:
    """`cluster`: the one whose admission is asked."""
    chosen = learnt.subject

    def is_allowed(tried: Case) -> bool:
        return _is_allowed(cluster, chosen, tried)

    moves = [*islice(joint.allowed(chosen.schema, learnt.every, is_allowed, learnt.refused), most)]
    planned: list[Case] = [(), *((move,) for move in moves)]
    if depth > 1 and len(planned) < most:
        planned += islice(cases.pairs(moves, is_allowed), most - len(planned))
    return planned[:most]


def named(learnt: Learnt, name: str) -> list[Case]:
    """The case of this name. Raises ValueError for an unknown name."""
    return [cases.named(learnt.every, name)]


def explore(
    learnt: Learnt,
    planned: Sequence[Case],
    *,
    jobs: int = 2,
    budget: float = float("inf"),
    progress: Progress = lambda done, total, result: None,
    known: Sequence[SpecResult] = (),
) -> Exploration:
    """Runs the cases, `jobs` at a time, and begins none after `budget` seconds. What doesn't repeat is no finding. `known`: results of
    an earlier exploration, which are not run again."""
    began = time.monotonic()
    by_id = {cases.id_of(each): each for each in planned}
    done = {result.id: result for result in known if result.id in by_id or not result.is_planned}
    left = [each for name, each in by_id.items() if name not in done]
    target, chosen = learnt.target, learnt.subject
    timing = target.timing
    longer = structs.replace(timing, quiet=timing.quiet * _PATIENT, activity=timing.patience * _PATIENT)
    patient = structs.replace(target, timing=longer)
    [state] = learnt.expected.states
    assert state is not None
    scenario = target.scenario
    objects = [*scenario.objects, *(obj for step in scenario.steps for obj in step.applied)]
    given = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    noise = learnt.expected.noise
    judge = Judge(state, chosen.title, chosen.manifest["kind"], noise, scenario.ignore, given)
    expected = Awaited([state], noise, pause=learnt.expected.pause, judge=judge)
    experiment = Experiment(target, patient, chosen, learnt.base, expected)
    for result in Workers(experiment, left, list(done.values())).results(jobs, began + budget):
        done[result.id] = result
        progress(len(done), len({**by_id, **done}), result)
    results = [done[name] for name in {**by_id, **done} if name in done]
    fields = [*changes.fields_of(chosen.schema)]
    not_reached = _not_reached(learnt, fields, {each for result in results for each in result.fields})
    found = findings.grouped(results)
    return Exploration(
        found, results, len({**by_id, **done}), len(learnt.refused), fields, not_reached, time.monotonic() - began
    )


def _not_reached(learnt: Learnt, fields: Sequence[str], tried: set[str]) -> dict[str, str]:
    refused = {each.field for each in learnt.refused}
    suggested = {change.field for change in learnt.every}
    reasons = {}
    for field in fields:
        if field in tried:
            continue
        if field in refused:
            reasons[field] = "the server refuses its values"
        else:
            reasons[field] = "no case was left for it" if field in suggested else "it is too deep in unset objects"
    return reasons


def _is_allowed(cluster: Cluster, chosen: Subject, tried: Case) -> bool:
    """Whether the server accepts the first move, and all moves together."""
    try:
        cases.changed(chosen.current, tried)
        for moves in dict.fromkeys((tried[:1], tried)):
            patch = [each for move in moves for each in cases.patch_of(move)]
            cluster.patch(chosen.reference, patch, namespace=chosen.namespace or None, dry_run=True)
    except (StatusError, LookupError, TypeError):
        return False
    return True


def _require_well(run: Run, held: Sequence[invariants.Invariant]) -> None:
    if not run.writes:
        raise ValueError("the operator writes nothing when the custom resource is created: there is nothing to judge")
    if run.problems:
        raise ValueError(f"the operator fails with the scenario's own spec: {run.problems[0]}")
    if crashes := panics(run.output):
        raise ValueError(f"the operator crashes with the scenario's own spec: {crashes[0]}")
    for broken in invariants.violations(run.changes, held):
        raise ValueError(f"an invariant doesn't hold with the scenario's own spec: {broken.invariant}")
