"""Learns a scenario, plans what to try, runs each case, and judges it."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct, field, structs

from fakeapiserver.evidence.table import object_of
from fakeapiserver.sweep import case, habits, invariants, states
from fakeapiserver.sweep.case import Expected, Run, Target
from fakeapiserver.sweep.clusters import Base
from fakeapiserver.sweep.grouping import Evidence, group
from fakeapiserver.sweep.judging import Comparison, Finding, Symptom, SymptomKind, certain, comparisons, gravity, judge
from fakeapiserver.sweep.parallel import in_parallel
from fakeapiserver.sweep.perturbation import KINDS, Kind, Perturbation
from fakeapiserver.sweep.planning import naming
from fakeapiserver.sweep.planning import plan as planning
from fakeapiserver.sweep.process import panics, unanswered
from fakeapiserver.sweep.report import wording
from fakeapiserver.sweep.scenario import with_other_chances
from fakeapiserver.sweep.states import State
from fakeapiserver.sweep.timeline import Event, timeline
from fakeapiserver.sweep.timing import Timing

# The cause of symptoms that an undisturbed run shows.
NOTHING: Final = "no surprise"
_UNDISTURBED: Final = "Nothing was done to the operator."
_MOST_TRIES: Final = 3
# If the undisturbed runs have other objects, they are watched so much longer.
_SLOWER: Final = 3
# Symptoms that no later work of the operator makes undone.
_LASTING: Final[frozenset[SymptomKind]] = frozenset(("panic", "lost", "invariant", "exit", "forbidden"))
# With the default patience, longer than the half a minute after which many operators look again.
_PATIENCES: Final = 4


class Learnt(Struct):
    """Two unperturbed runs, and what they have in common. `later`: what is expected if a quarter of an hour passes in each step, None
    before a case asks for that. `base`: the cluster that cases are forks of, None for new ones. `symptoms`: what is wrong without any.
    `uncertain`: the titles of objects that one of the runs has and the other hasn't, so that they can't be compared. `unanswered`: an
    address that the operator calls in vain, so that its statuses depend on how fast it was, and can't be compared, or ""."""

    first: Run
    second: Run
    expected: Expected
    plan: Sequence[Perturbation]
    later: Expected | None = None
    base: Base | None = None
    symptoms: Sequence[Symptom] = ()
    uncertain: Sequence[str] = ()
    unanswered: str = ""

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
    """The result of a sweep. `planned` is the number of cases, of which `results` were run within the budget. `uncertain`: as in
    Learnt."""

    findings: Sequence[Finding]
    results: Sequence[CaseResult]
    planned: int
    seconds: float
    unsure: Sequence[CaseResult] = field(default_factory=list)
    uncertain: Sequence[str] = ()


Progress = Callable[[int, int, CaseResult], None]


def learn(target: Target, kinds: Sequence[Kind] = KINDS, base: Base | None = None) -> Learnt:
    """Runs the scenario twice unperturbed. Raises ValueError if the operator doesn't come to rest or doesn't arrive at the same state,
    and as `case.run`."""
    slow = 0.0
    first, second, restarted = _both(target, base)
    uncertain = _uncertain(first, second, target.scenario.ignore)
    if uncertain:  # perhaps one of them was left in the midst of its work
        target = structs.replace(target, timing=_slower(target.timing))
        slow = target.timing.quiet
        first, second, restarted = _both(target, base)
        uncertain = _uncertain(first, second, target.scenario.ignore)
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
    noise |= states.brought_up_to_date(second.states[-1] if second.states else {}, restarted)
    if in_vain := unanswered(first.output):
        noise |= _written_statuses(first)
    pause = max(first.pause, second.pause, slow)
    step_seconds = [*map(max, first.step_seconds, second.step_seconds)]
    watched = first.watched_first & second.watched_first
    replaced = states.replaced(first.uids, second.uids, target.scenario.ignore)
    expected = Expected(first.states, noise, watched, pause, step_seconds, replaced=replaced)
    if not target.scenario.options.get("nodes"):  # which have a clock for their pods
        kinds = [kind for kind in kinds if kind != "clock"]
    planned = planning.plan(first, second, kinds, looks_between_steps=target.scenario.looks_between_steps)
    return Learnt(first, second, expected, planned, None, base, habits.forbidden(first), uncertain, in_vain)


def _written_statuses(run: Run) -> frozenset[str]:
    """The statuses that the operator writes, as noise."""
    writes = (each for each in run.requests.writes if each.subresource == "status")
    return frozenset(f"{object_of(structs.replace(each, subresource=''))} status" for each in writes)


def _expected_by(perturbation: Perturbation, target: Target, learnt: Learnt) -> Expected:
    """The states that are right with this perturbation. Those after a quarter of an hour are only learnt when they are needed."""
    if perturbation.kind != "clock":
        return learnt.expected
    if learnt.later is None:
        in_time = case.run(target, Perturbation("clock", when="in time"), base=learnt.base)
        learnt.later = structs.replace(learnt.expected, states=in_time.states)
    return learnt.later


def _both(target: Target, base: Base | None) -> tuple[Run, Run, State]:
    """Two undisturbed runs, and the state of the second one after the operator was started again."""
    workers = 1 if target.scenario.runs_alone else 2
    with ThreadPoolExecutor(workers) as pool:  # the second one in a cluster of its own: a fork has the uids of its base
        one = pool.submit(case.run, target, base=base)
        shifted = structs.replace(target, scenario=with_other_chances(target.scenario))
        other = pool.submit(case.run_with_restart, shifted)
        return one.result(), *other.result()


def _uncertain(first: Run, second: Run, ignore: Sequence[str]) -> list[str]:
    """The titles of the objects that only one of two undisturbed runs has after a step."""
    pairs = zip(first.states, second.states, strict=False)
    found = (each for pair in pairs for each in states.differences(*pair, frozenset(), ignore))
    return sorted({each.title for each in found if not each.path})


def _slower(timing: Timing) -> Timing:
    return structs.replace(timing, quiet=timing.quiet * _SLOWER, calm=timing.calm * _SLOWER)


def named(learnt: Learnt, name: str) -> list[Perturbation]:
    """The perturbation with this name, planned or not, since chance decides which points a recording has; none for NOTHING. Raises
    ValueError for another text."""
    if name == NOTHING:
        return []
    perturbation = next((each for each in learnt.plan if each.id == name), None) or naming.read(name)
    if perturbation is None:
        raise ValueError(f"there is no perturbation {name!r}; --plan lists them")
    return [perturbation]


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
    repeat, or is put right after a while, is no finding. A single case is tried up to three times, since it is the repetition of a finding,
    which a race may hide. `known`: results of an earlier sweep, which are not run again."""
    began = time.monotonic()
    done = {result.perturbation: result for result in known if result.perturbation in set(perturbations)}
    left = [each for each in perturbations if each not in done]
    seen = set[tuple[str, str]]()

    def judged(perturbation: Perturbation) -> CaseResult:
        result = _try(target, perturbation, learnt)
        return certain(result, lambda: _try(_patient(target, result.symptoms), perturbation, learnt).symptoms, seen)

    def tried(perturbation: Perturbation) -> CaseResult:
        result = judged(perturbation)
        for _ in range(_MOST_TRIES - 1 if len(perturbations) == 1 else 0):
            if result.symptoms or result.error:
                break
            result = judged(perturbation)
        return result

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
    return Report(findings, results, len(perturbations), time.monotonic() - began, unsure, learnt.uncertain)


def _patient(target: Target, symptoms: Sequence[Symptom]) -> Target:
    """The target with time for an operator that puts right what it has missed, if that can be put right."""
    if any(each.kind in _LASTING for each in symptoms):
        return target
    return structs.replace(target, timing=structs.replace(target.timing, healing=target.timing.patience * _PATIENCES))


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
    try:
        expected = _expected_by(perturbation, target, learnt)
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
        result.timeline = timeline(run, perturbation, shows_events=any(" events " in each.subject for each in symptoms))
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
