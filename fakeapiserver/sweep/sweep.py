"""Learns a scenario, plans what to try, runs each case, and judges it."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct, field, structs

from fakeapiserver.sweep import case, habits, invariants, states
from fakeapiserver.sweep.case import Base, Expected, Run, Target
from fakeapiserver.sweep.grouping import Evidence, group
from fakeapiserver.sweep.judging import Comparison, Finding, Symptom, certain, comparisons, gravity, judge
from fakeapiserver.sweep.parallel import in_parallel
from fakeapiserver.sweep.perturbation import KINDS, Kind, Perturbation
from fakeapiserver.sweep.planning import plan as planning
from fakeapiserver.sweep.process import panics
from fakeapiserver.sweep.report import wording
from fakeapiserver.sweep.timeline import Event, timeline

# The cause of symptoms that an undisturbed run shows.
NOTHING: Final = "no surprise"
_UNDISTURBED: Final = "Nothing was done to the operator."


class Learnt(Struct):
    """Two unperturbed runs, and what they have in common. `later`: what is expected if a quarter of an hour passes in each step, None if
    that isn't planned. `base`: the cluster that cases are forks of, None for new ones. `symptoms`: what is wrong without any."""

    first: Run
    second: Run
    expected: Expected
    plan: Sequence[Perturbation]
    later: Expected | None = None
    base: Base | None = None
    symptoms: Sequence[Symptom] = ()

    @property
    def seconds(self) -> float:
        """The estimated duration of a case."""
        return max(self.first.seconds, self.second.seconds)


class CaseResult(Struct):
    """A case. `reached` is False if the point of the perturbation didn't come; `repeats`: the symptoms were seen a second time.
    If there are symptoms, `timeline` is what the operator did around the perturbation, and `comparisons` are the wrong states."""

    perturbation: Perturbation
    symptoms: Sequence[Symptom]
    seconds: float
    reached: bool = True
    repeats: bool = True
    error: str = ""
    timeline: Sequence[Event] = ()
    comparisons: Sequence[Comparison] = ()


class Report(Struct):
    """The result of a sweep. `planned` is the number of cases, of which `results` were run within the budget."""

    findings: Sequence[Finding]
    results: Sequence[CaseResult]
    planned: int
    seconds: float
    unsure: Sequence[CaseResult] = field(default_factory=list)


Progress = Callable[[int, int, CaseResult], None]


def learn(target: Target, kinds: Sequence[Kind] = KINDS, base: Base | None = None) -> Learnt:
    """Runs the scenario twice unperturbed. Raises ValueError if the operator doesn't come to rest or doesn't arrive at the same state,
    and as `case.run`."""
    with ThreadPoolExecutor(
        1 if target.scenario.runs_alone else 2
    ) as pool:  # the second one in a cluster of its own: a fork has the uids of its base
        runs = (pool.submit(case.run, target, base=base), pool.submit(case.run, _with_other_chances(target)))
        first, second = (run.result() for run in runs)
    if not first.writes:
        raise ValueError("the operator writes nothing during the scenario: there is nothing to disturb")
    for run in (first, second):
        if run.problems:
            raise ValueError(f"the operator fails without any perturbation: {run.problems[0]}")
        if found := panics(run.output):
            raise ValueError(f"the operator crashes without any perturbation: {found[0]}")
        for broken in invariants.violations(run.changes, target.scenario.invariants):
            raise ValueError(f"an invariant doesn't hold without any perturbation: {broken.invariant}")
    if len(first.states) != len(second.states):
        raise ValueError(f"the scenario has {len(first.states)} steps once and {len(second.states)} the next time")
    noise = frozenset[str]().union(*(states.noise_of(*pair) for pair in zip(first.states, second.states, strict=True)))
    pause = max(first.pause, second.pause)
    expected = Expected(first.states, noise, first.watched_first & second.watched_first, pause)
    planned = planning.plan(first, second, kinds, looks_between_steps=target.scenario.looks_between_steps)
    later = None
    if any(each.kind == "clock" for each in planned):
        in_time = case.run(target, Perturbation("clock", when="in time"), base=base)
        later = Expected(in_time.states, noise, expected.watched, pause)
    return Learnt(first, second, expected, planned, later, base, habits.forbidden(first))


def named(learnt: Learnt, name: str) -> list[Perturbation]:
    """The perturbation with this name, which may also be a part of a planned one, none for NOTHING. Raises ValueError for an unknown
    name."""
    if name == NOTHING:
        return []
    for each in learnt.plan:
        for perturbation in (each, *planning.smaller(each, learnt.first)):
            if perturbation.id == name:
                return [perturbation]
    raise ValueError(f"there is no perturbation {name!r} in this scenario; --plan lists them")


def _with_other_chances(target: Target) -> Target:
    """The target in clusters with other uids, generated names and addresses: all that follows from them is no difference."""
    scenario = target.scenario
    return structs.replace(
        target, scenario=structs.replace(scenario, options={**scenario.options, "seed": case.OTHER_SEED})
    )


def sweep(
    target: Target,
    learnt: Learnt,
    perturbations: Sequence[Perturbation],
    *,
    jobs: int = 2,
    budget: float = float("inf"),
    progress: Progress = lambda done, total, result: None,
    known: Sequence[CaseResult] = (),
) -> Report:
    """Runs the cases, `jobs` at a time, and begins none after `budget` seconds. A case with symptoms is run a second time: what doesn't
    repeat is no finding. `known`: results of an earlier sweep, which are not run again."""
    began = time.monotonic()
    done = {result.perturbation: result for result in known if result.perturbation in set(perturbations)}
    left = [each for each in perturbations if each not in done]
    seen = set[tuple[str, str]]()

    def tried(perturbation: Perturbation) -> CaseResult:
        return certain(_try(target, perturbation, learnt), lambda: _try(target, perturbation, learnt).symptoms, seen)

    for result in in_parallel(tried, left, jobs, began + budget):
        done[result.perturbation] = result
        progress(len(done), len(perturbations), result)
    results = [done[each] for each in perturbations if each in done]
    findings = group([_evidence(each) for each in results])
    if learnt.symptoms:
        findings.append(Finding(learnt.symptoms, [NOTHING], learnt.first.seconds, surprise=_UNDISTURBED))
    for finding in findings:
        _shrink(target, finding, learnt, began + budget)
    unsure = [each for each in results if not each.repeats or each.error]
    return Report(findings, results, len(perturbations), time.monotonic() - began, unsure)


def _shrink(target: Target, finding: Finding, learnt: Learnt, deadline: float) -> None:
    """Looks for a part of the first cause that has the same symptoms, and makes it the first one."""
    whole = {(each.kind, each.subject) for each in finding.symptoms}
    cause = next((each for each in learnt.plan if each.id == finding.causes[0]), None)
    for part in planning.smaller(cause, learnt.first) if cause is not None else ():
        if part.id in finding.causes or time.monotonic() > deadline:
            return
        result = _try(target, part, learnt)
        if {(each.kind, each.subject) for each in result.symptoms} >= whole:
            finding.causes.insert(0, part.id)
            finding.timeline, finding.comparisons = result.timeline, result.comparisons
            finding.surprise = wording.of(part)
            return


def _try(target: Target, perturbation: Perturbation, learnt: Learnt) -> CaseResult:
    began = time.monotonic()
    expected = learnt.later if perturbation.kind == "clock" and learnt.later is not None else learnt.expected
    try:
        run = case.run(target, perturbation, expected, learnt.base)
    except Exception as error:
        return CaseResult(perturbation, [], time.monotonic() - began, error=f"{type(error).__name__}: {error}")
    symptoms: list[Symptom] = []
    if run.reached:
        symptoms = [
            *judge(run, learnt.first, expected, target.scenario),
            *habits.symptoms(run, learnt.first, perturbation),
        ]
        symptoms.sort(key=gravity)
    result = CaseResult(perturbation, symptoms, run.seconds, run.reached)
    if symptoms:
        result.timeline = timeline(run, perturbation)
        result.comparisons = comparisons(run, expected, target.scenario.ignore)
    return result


def _evidence(each: CaseResult) -> Evidence:
    perturbation = each.perturbation
    return Evidence(
        perturbation.id,
        perturbation.kind,
        each.symptoms,
        each.seconds,
        each.timeline,
        each.comparisons,
        wording.of(perturbation),
    )
