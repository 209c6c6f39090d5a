"""Compares a perturbed run with the unperturbed one."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from fakeapiserver.sweep import states
from fakeapiserver.sweep.case import Expected, Run, panics
from fakeapiserver.sweep.invariants import violations
from fakeapiserver.sweep.scenario import Scenario
from fakeapiserver.sweep.states import Difference

SymptomKind = Literal[
    "panic", "lost", "state", "restless", "step", "invariant", "back", "fresh", "ready",
]  # fmt: skip


class Symptom(Struct, frozen=True, order=True):
    """A thing that is wrong. `subject` is the object or field it is about: symptoms with the same kind and subject have one cause."""

    kind: SymptomKind
    subject: str
    text: str


class Finding(Struct):
    """A bug of the operator, with the names of the cases that show it, the simplest first, and the time line of that one."""

    symptoms: Sequence[Symptom]
    causes: list[str]
    seconds: float = 0.0
    timeline: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The worst symptom, in a line: `after a crash after create secrets shop/db: statefulsets.apps shop/db is missing`."""
        worst = self.symptoms[0]
        more = f" (and {len(self.symptoms) - 1} more)" if len(self.symptoms) > 1 else ""
        return f"{worst.text}{more}"


def judge(run: Run, learnt: Run, expected: Expected, scenario: Scenario) -> list[Symptom]:
    """The symptoms, the worst first."""
    symptoms = [*_panics(run, learnt), *_losses(run, learnt)]
    for problem in run.problems:
        kind: SymptomKind = "step" if problem.startswith("step ") else "restless"
        symptoms.append(Symptom(kind, problem.partition(":")[0], problem))
    symptoms += _differences(run, expected, scenario.ignore)
    for broken in violations(run.changes, scenario.invariants):
        text = f": {broken.text}" if broken.text else ""
        symptoms.append(Symptom("invariant", broken.invariant, f"{broken.invariant} doesn't hold{text}"))
    return symptoms


class Judged(Protocol):
    """The result of a case. `repeats`: the symptoms were seen a second time."""

    symptoms: Sequence[Symptom]
    repeats: bool


J = TypeVar("J", bound=Judged)


def certain(result: J, again: Callable[[], Sequence[Symptom]], seen: set[tuple[str, str]]) -> J:
    """The result with those symptoms that are `seen` again: what doesn't repeat is no finding. A case whose symptoms other cases have
    shown twice isn't run a second time."""
    subjects = {(each.kind, each.subject) for each in result.symptoms}
    if subjects <= seen:
        return result
    both = subjects & {(each.kind, each.subject) for each in again()}
    seen |= both
    result.symptoms = [each for each in result.symptoms if (each.kind, each.subject) in both]
    result.repeats = bool(both)
    return result


def group(results: Sequence[tuple[str, Sequence[Symptom], float, Sequence[str]]]) -> list[Finding]:
    """The findings: cases with the same symptoms have one cause."""
    findings: dict[frozenset[tuple[str, str]], Finding] = {}
    for cause, symptoms, seconds, timeline in results:
        if not symptoms:
            continue
        key = frozenset((each.kind, each.subject) for each in symptoms)
        if key in findings:
            findings[key].causes.append(cause)
        else:
            findings[key] = Finding(symptoms, [cause], seconds, timeline)
    return [*findings.values()]


def _differences(run: Run, expected: Expected, ignore: Sequence[str]) -> list[Symptom]:
    """The differences of the last state, or, if that is right, of the first step whose state isn't."""
    for step in range(len(run.states) - 1, -1, -1):
        wanted = expected.states[step] if run.known[step] else None
        if wanted is None:
            continue
        found = states.differences(wanted, run.states[step], expected.noise, ignore)
        when = "" if step == len(expected.states) - 1 else f"after step {step + 1}, "
        if found:
            return [Symptom("state", f"{when}{_subject(each)}", f"{when}{each.shown}") for each in found]
    return []


def _subject(each: Difference) -> str:
    return f"{each.title} {each.path}" if each.path else f"{each.title} {each.text}"


def _panics(run: Run, learnt: Run) -> list[Symptom]:
    known = set(panics(learnt.output))
    return [
        Symptom("panic", text, f"the operator crashes: {text}")
        for text in dict.fromkeys(panics(run.output))
        if text not in known
    ]


def _losses(run: Run, learnt: Run) -> list[Symptom]:
    """Objects that the perturbed step has deleted, and the unperturbed one keeps: their content is lost, even if they are made again."""
    lost = []
    for step in range(1, min(len(run.uids), len(learnt.uids))):
        before, after = learnt.uids[step - 1], learnt.uids[step]
        kept = [title for title, uid in before.items() if after.get(title) == uid and title in run.uids[step - 1]]
        lost += [title for title in kept if run.uids[step].get(title) != run.uids[step - 1][title]]
    return [
        Symptom("lost", title, f"{title} is deleted, and stays without the perturbation")
        for title in dict.fromkeys(lost)
    ]
