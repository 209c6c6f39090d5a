"""Tries the specs of a custom resource, each in a fork of the cluster in which its operator has come to rest."""

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct, structs

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.sweep import case, invariants, states
from fakeapiserver.sweep.case import Base, Expected, Run, Target
from fakeapiserver.sweep.exploring import changes, oracles, subject
from fakeapiserver.sweep.exploring.changes import Change
from fakeapiserver.sweep.exploring.subject import Subject
from fakeapiserver.sweep.judging import Comparison, Finding, Symptom, SymptomKind, certain, gravity
from fakeapiserver.sweep.parallel import in_parallel
from fakeapiserver.sweep.scenario import Step
from fakeapiserver.sweep.states import State
from fakeapiserver.sweep.timeline import Event, timeline

NOTHING: Final = "no change"
_THEN: Final = ", then "
# A case with symptoms is run again, and the operator gets more time to begin with something.
_PATIENT: Final = 4.0


class Learnt(Struct):
    """The operator at rest with the scenario's own spec. `target` is the beginning of the scenario, `refused` the number of changes that
    the server's admission doesn't allow."""

    target: Target
    base: Base
    subject: Subject
    state: State
    noise: frozenset[str]
    singles: Sequence[Change]
    refused: int
    seconds: float


class SpecResult(Struct):
    """A case: the object was created with one or two changes, and was changed to that and back. `way_back` is False if the server
    refused to go back. `effects`: a digest of the state, "" if nothing but the field itself changed. `repeats`: the symptoms were seen a
    second time."""

    id: str
    fields: Sequence[str]
    symptoms: Sequence[Symptom]
    seconds: float
    effects: str = ""
    way_back: bool = True
    repeats: bool = True
    error: str = ""
    comparisons: Sequence[Comparison] = ()
    timeline: Sequence[Event] = ()


class Exploration(Struct):
    """The result. `planned` is the number of cases, of which `results` were run within the budget. `fields` are those of the schema."""

    findings: Sequence[Finding]
    results: Sequence[SpecResult]
    planned: int
    refused: int
    fields: Sequence[str]
    seconds: float

    @property
    def tried(self) -> Sequence[str]:
        """The fields that were changed."""
        return sorted({each for result in self.results for each in result.fields})

    @property
    def without_effect(self) -> Sequence[str]:
        """The fields whose changes alone, all without symptoms, changed nothing else."""
        singles = [each for each in self.results if len(each.fields) == 1 and not each.error]
        effective = {each.fields[0] for each in singles if each.effects or each.symptoms}
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
Case = tuple[Change, ...]


@contextmanager
def learn(target: Target, wanted: str = "") -> Iterator[Learnt]:
    """Runs the beginning of the scenario twice, and finds out which changes of the custom resource the server allows. Raises ValueError
    if there is no such object or the operator fails, and as `case.run`."""
    beginning = subject.beginning_of(target.scenario)
    target = structs.replace(target, scenario=beginning)
    with case.at_rest(target) as (first, base):
        second = case.run(target)
        for run in (first, second):
            _require_well(run, beginning.invariants)
        noise = states.noise_of(first.states[-1], second.states[-1])
        chosen = subject.find(base.cluster, beginning, wanted)
        every = changes.of_schema(chosen.schema, chosen.current)
        allowed = [each for each in every if _is_allowed(base.cluster, chosen, (each,))]
        seconds = first.seconds + second.seconds
        yield Learnt(target, base, chosen, first.states[-1], noise, allowed, len(every) - len(allowed), seconds)


def plan(learnt: Learnt, most: int, depth: int = 2) -> list[Case]:
    """At most so many cases: nothing, each change alone, and with `depth` 2 changes of two fields, in an order without a pattern."""
    singles: list[Case] = [(each,) for each in learnt.singles]
    if depth > 1 and len(singles) + 1 < most:
        pairs = [
            (one, other)
            for one, other in itertools.permutations(learnt.singles, 2)
            if one.path != other.path[: len(one.path)] and other.path != one.path[: len(other.path)]
        ]
        pairs.sort(key=lambda pair: hashlib.sha256(id_of(pair).encode()).digest())
        room = most - 1 - len(singles)
        singles += itertools.islice(
            (pair for pair in pairs if _is_allowed(learnt.base.cluster, learnt.subject, pair)), room
        )
    return [(), *singles][:most]


def named(learnt: Learnt, name: str) -> list[Case]:
    """The case of this name. Raises ValueError for an unknown name."""
    by_id = {each.id: each for each in learnt.singles}
    parts = name.split(_THEN)
    if name == NOTHING:
        return [()]
    if unknown := [part for part in parts if part not in by_id]:
        raise ValueError(f"there is no change {unknown[0]!r} of this custom resource; --plan lists some")
    return [tuple(by_id[part] for part in parts)]


def id_of(changed: Case) -> str:
    """`spec.size = 5, then spec.tls unset`"""
    return _THEN.join(each.id for each in changed) or NOTHING


def explore(
    learnt: Learnt,
    cases: Sequence[Case],
    *,
    jobs: int = 2,
    budget: float = float("inf"),
    progress: Progress = lambda done, total, result: None,
    known: Sequence[SpecResult] = (),
) -> Exploration:
    """Runs the cases, `jobs` at a time, and begins none after `budget` seconds. What doesn't repeat is no finding. `known`: results of
    an earlier exploration, which are not run again."""
    began = time.monotonic()
    by_id = {id_of(each): each for each in cases}
    done = {result.id: result for result in known if result.id in by_id}
    left = [each for name, each in by_id.items() if name not in done]
    timing = learnt.target.timing
    patient = structs.replace(learnt.target, timing=structs.replace(timing, quiet=timing.quiet * _PATIENT))
    seen = set[tuple[str, str]]()

    def tried(changed: Case) -> SpecResult:
        result = _try(learnt, changed, learnt.target)
        return certain(result, lambda: _try(learnt, changed, patient).symptoms, seen)

    for result in in_parallel(tried, left, jobs, began + budget):
        done[result.id] = result
        progress(len(done), len(by_id), result)
    results = [done[name] for name in by_id if name in done]
    findings = _grouped(results)
    fields = [*changes.fields_of(learnt.subject.schema)]
    return Exploration(findings, results, len(by_id), learnt.refused, fields, time.monotonic() - began)


# ---------------------------------------------------------------- a case


def _try(learnt: Learnt, changed: Case, target: Target) -> SpecResult:
    began = time.monotonic()
    fields = list(dict.fromkeys(each.field for each in changed))
    try:
        result = _run(learnt, changed, target)
    except Exception as error:
        text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        return SpecResult(id_of(changed), fields, [], time.monotonic() - began, error=text)
    result.fields, result.seconds = fields, time.monotonic() - began
    return result


def _run(learnt: Learnt, changed: Case, target: Target) -> SpecResult:
    """The result without the fields and the seconds."""
    title, ignore, name = learnt.subject.title, target.scenario.ignore, id_of(changed)
    fresh = _fresh(learnt, changed, target)
    created = fresh.states[-1] if fresh is not None and fresh.states else None
    moved, way_back = _there_and_back(learnt, changed, target, created)
    there = moved.states[0]
    symptoms = [
        *_problems(fresh, target, f"created with {name}" if changed else ""),
        *_problems(moved, target, f"changed to {name}" if changed else "restarted"),
    ]
    compared: list[Comparison] = []
    if created is not None:
        unlike = states.differences(created, there, learnt.noise, ignore)
        compared.append(Comparison("in the end", f"created with {name}", f"changed to {name}", unlike))
        for each in unlike[:1]:
            text = f"changed to {name}, {each.shown}, unlike one that is created so"
            symptoms.append(Symptom("fresh", _subject(each), text))
    if way_back:
        when = f"after {name} and back" if changed else "after a restart"
        left = states.differences(learnt.state, moved.states[-1], learnt.noise, ignore)
        compared.append(Comparison("in the end", "before the change", when, left))
        for each in left[:1]:
            symptoms.append(Symptom("back", _subject(each), f"{when}, {each.shown}"))
    for state in (there, *([created] if created is not None else [])):
        claims = [
            *oracles.too_early(state, title, learnt.subject.manifest["kind"]),
            *oracles.unnoticed(learnt.state, state, title),
        ]
        symptoms += [Symptom("ready", about, f"with {name}, {text}") for about, text in claims]
    seen = oracles.effects(learnt.state, there, title, learnt.noise, ignore)
    digest = hashlib.sha256(json.dumps([(each.title, each.text) for each in seen]).encode()).hexdigest()[:12]
    result = SpecResult(name, [], sorted(dict.fromkeys(symptoms), key=gravity), 0.0, digest if seen else "", way_back)
    if symptoms:
        result.comparisons = [each for each in compared if each.differences]
        result.timeline = timeline(moved)
    return result


def _fresh(learnt: Learnt, changed: Case, target: Target) -> Run | None:
    """Creates the object with the changes. Returns None without changes, and if the server refuses such an object."""
    if not changed:
        return None
    manifest = learnt.subject.manifest_of(_changed(learnt.subject, changed))
    scenario = subject.with_manifest(target.scenario, learnt.subject.manifest, manifest)
    try:
        return case.run(structs.replace(target, scenario=scenario))
    except case.StepFailed as failed:
        if isinstance(failed.__cause__, StatusError):
            return None
        raise


def _there_and_back(learnt: Learnt, changed: Case, target: Target, created: State | None) -> tuple[Run, bool]:
    """Changes the object in a fork, and takes the changes back. `created`: the state of an object that was created with the changes."""
    chosen, refused = learnt.subject, list[str]()
    patch = [each for change in changed for each in change.patch]

    def go(cluster: Cluster) -> None:
        if patch:
            cluster.patch(chosen.reference, patch, namespace=chosen.namespace or None)

    def go_back(cluster: Cluster) -> None:
        try:
            cluster.patch(chosen.reference, chosen.back(), namespace=chosen.namespace or None)
        except StatusError as error:
            refused.append(str(error))

    steps = [Step(f"change {id_of(changed)}", go), *([Step("go back", go_back)] if changed else [])]
    scenario = subject.with_steps(target.scenario, steps)
    expected = Expected([created, learnt.state] if changed else [learnt.state], learnt.noise)
    run = case.run(structs.replace(target, scenario=scenario), expected=expected, base=learnt.base)
    return run, not refused and len(run.states) == len(steps)


def _changed(chosen: Subject, changed: Case) -> dict[str, object]:
    obj = chosen.current
    for each in changed:
        obj = each.of(obj)
    return obj


def _is_allowed(cluster: Cluster, chosen: Subject, changed: Case) -> bool:
    patch = [each for change in changed for each in change.patch]
    try:
        cluster.patch(chosen.reference, patch, namespace=chosen.namespace or None, dry_run=True)
        _changed(chosen, changed)
    except (StatusError, LookupError):
        return False
    return True


def _problems(run: Run | None, target: Target, when: str) -> list[Symptom]:
    if run is None:
        return []
    symptoms = [Symptom("panic", text, f"{when}, the operator crashes: {text}") for text in case.panics(run.output)]
    for problem in dict.fromkeys((*run.problems, *filter(None, run.restless))):
        kind: SymptomKind = "step" if problem.startswith("step ") else "restless"
        symptoms.append(Symptom(kind, problem.partition(":")[0], f"{when}, {problem}"))
    for broken in invariants.violations(run.changes, target.scenario.invariants):
        text = f": {broken.text}" if broken.text else ""
        symptoms.append(
            Symptom("invariant", broken.invariant, f"{when}, the invariant {broken.invariant!r} is broken{text}")
        )
    return symptoms


def _require_well(run: Run, held: Sequence[invariants.Invariant]) -> None:
    if not run.writes:
        raise ValueError("the operator writes nothing when the custom resource is created: there is nothing to judge")
    if run.problems:
        raise ValueError(f"the operator fails with the scenario's own spec: {run.problems[0]}")
    if crashes := case.panics(run.output):
        raise ValueError(f"the operator crashes with the scenario's own spec: {crashes[0]}")
    for broken in invariants.violations(run.changes, held):
        raise ValueError(f"an invariant doesn't hold with the scenario's own spec: {broken.invariant}")


def _subject(each: states.Difference) -> str:
    """Without the object's name, which is another one in each case: `configmaps data.title`, `configmaps additional`."""
    return f"{each.title.partition(' ')[0]} {each.path or each.change}"


def _grouped(results: Sequence[SpecResult]) -> list[Finding]:
    """The findings: cases that have a symptom in common have one cause."""
    findings: list[tuple[set[str], Finding]] = []
    for result in results:
        if not result.symptoms:
            continue
        subjects, finding = {each.subject for each in result.symptoms}, Finding(result.symptoms, [], result.seconds)
        finding.comparisons, finding.timeline = result.comparisons, result.timeline
        same = [each for each in findings if each[0] & subjects]
        for other_subjects, other in same:
            findings.remove((other_subjects, other))
            subjects |= other_subjects
        if same:
            finding = same[0][1]
            finding.causes += [cause for _, other in same[1:] for cause in other.causes]
        finding.causes.append(result.id)
        findings.append((subjects, finding))
    return sorted((finding for _, finding in findings), key=lambda finding: gravity(finding.symptoms[0]))
