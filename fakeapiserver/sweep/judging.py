"""Compares a perturbed run with the unperturbed one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeVar

from msgspec import Struct

from fakeapiserver.sweep import kinds, states
from fakeapiserver.sweep.case import Expected, Run
from fakeapiserver.sweep.invariants import violations
from fakeapiserver.sweep.process import panics
from fakeapiserver.sweep.scenario import Scenario
from fakeapiserver.sweep.states import Difference
from fakeapiserver.sweep.timeline import Event

SymptomKind = Literal[
    "panic", "lost", "missing", "additional", "changed", "restless", "step", "invariant", "back", "fresh", "ready", "exit",
    "forbidden", "loop", "ignored", "kept",
]  # fmt: skip
_GRAVEST_FIRST: Final[Sequence[SymptomKind]] = (
    "panic", "invariant", "lost", "missing", "additional", "step", "exit", "forbidden", "changed", "kept", "fresh", "back", "ignored",
    "ready", "restless", "loop",
)  # fmt: skip
_DATA: Final = ("persistentvolumeclaims ", "persistentvolumes ", "secrets ")
# The state after the last step.
IN_THE_END: Final = "in the end"


class Symptom(Struct, frozen=True, order=True):
    """A thing that is wrong. `subject` is the object or field it is about: symptoms with the same kind and subject have one cause."""

    kind: SymptomKind
    subject: str
    text: str


def gravity(symptom: Symptom) -> int:
    """The rank of a symptom, 0 for the gravest: lost data, a crash, a broken invariant, other deleted objects, missing and additional ones,
    a step that fails, an exit, a missing right, wrong fields, objects that aren't replaced, what `explore` finds, an operator that doesn't
    come to rest or writes in vain, and a wrong status."""
    if symptom.kind == "lost" and symptom.subject.startswith(_DATA):
        return 0
    if symptom.kind == "changed" and " status" in symptom.subject:
        return 1 + len(_GRAVEST_FIRST)
    return 1 + _GRAVEST_FIRST.index(symptom.kind)


class Comparison(Struct, frozen=True):
    """The differences between two states. `when`: "in the end", "after step 2 (patch databases/db)". `wanted` and `actual` name the
    states, as in "undisturbed"."""

    when: str
    wanted: str
    actual: str
    differences: Sequence[Difference]


class Finding(Struct):
    """A bug of the operator, with the names of the cases that show it, the simplest first, and the time line and the differences of the
    states of that one. `surprise`: what was done to the operator, in a sentence."""

    symptoms: Sequence[Symptom]
    causes: list[str]
    seconds: float = 0.0
    timeline: Sequence[Event] = ()
    comparisons: Sequence[Comparison] = ()
    surprise: str = ""

    @property
    def title(self) -> str:
        """The worst symptom, in a line: `the StatefulSet shop/db is missing (and 1 more)`."""
        worst = self.symptoms[0]
        more = f" (and {len(self.symptoms) - 1} more)" if len(self.symptoms) > 1 else ""
        return f"{worst.text}{more}"


def judge(run: Run, learnt: Run, expected: Expected, scenario: Scenario) -> list[Symptom]:
    """The symptoms, the gravest first."""
    losses = _losses(run, learnt)
    lost = {each.subject for each in losses}
    symptoms = [*_panics(run, learnt), *losses, *_kept(run, learnt, expected)]
    for problem in run.problems:
        kind: SymptomKind = "step" if problem.startswith("step ") else "restless"
        symptoms.append(Symptom(kind, problem.partition(":")[0], problem))
    for compared in comparisons(run, expected, scenario.ignore):
        symptoms += [
            _symptom(compared.when, each)
            for each in compared.differences
            if (each.change, each.title in lost) != ("missing", True)
        ]
    for broken in violations(run.changes, scenario.invariants):
        text = f": {broken.text}" if broken.text else ""
        symptoms.append(Symptom("invariant", broken.invariant, f"the invariant {broken.invariant!r} is broken{text}"))
    return sorted(symptoms, key=gravity)


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


def comparisons(run: Run, expected: Expected, ignore: Sequence[str]) -> list[Comparison]:
    """The differences of the last state, or, if that is right, of the last step whose state isn't. What differs before the surprise differs
    by chance."""
    for step in range(len(run.states) - 1, max(run.disturbed, 0) - 1, -1):
        wanted = expected.states[step] if run.known[step] else None
        if wanted is None:
            continue
        differences = states.differences(wanted, run.states[step], expected.noise, ignore)
        when = IN_THE_END if step == len(expected.states) - 1 else f"after step {step + 1}"
        if differences:
            return [Comparison(when, "undisturbed", "with the surprise", differences)]
    return []


def _symptom(when: str, each: Difference) -> Symptom:
    about = f"{each.title} {each.path}".rstrip()
    prefix = "" if when == IN_THE_END else f"{when}, "
    return Symptom(each.change, f"{prefix}{about}", f"{prefix}{each.shown}")


def _panics(run: Run, learnt: Run) -> list[Symptom]:
    known = set(panics(learnt.output))
    return [
        Symptom("panic", text, f"the operator crashes: {text}")
        for text in dict.fromkeys(panics(run.output))
        if text not in known
    ]


def _losses(run: Run, learnt: Run) -> list[Symptom]:
    """Objects that the perturbed step has deleted, and the unperturbed one keeps: their content is lost, even if they are made again.

    An object that the unperturbed run had replaced by then is rightly deleted: the operator has only learnt of it late.
    """
    lost = []
    for step in range(1, min(len(run.uids), len(learnt.uids))):
        before, after = learnt.uids[step - 1], learnt.uids[step]
        kept = [title for title, uid in before.items() if after.get(title) == uid and title in run.uids[step - 1]]
        lost += [
            title
            for title in kept
            if run.uids[step].get(title) != run.uids[step - 1][title]
            and _number(run.uids[:step], title) >= _number(learnt.uids[:step], title)
        ]
    return [
        Symptom(
            "lost",
            title,
            f"{kinds.spoken(title, _kind(title, learnt))} is deleted, although the undisturbed run keeps it",
        )
        for title in dict.fromkeys(lost)
    ]


def _kept(run: Run, learnt: Run, expected: Expected) -> list[Symptom]:
    """Objects that should have been replaced, and are still there: a pod that isn't restarted keeps its former configuration. An operator
    that hasn't seen all states needn't have had a reason."""
    if not run.uids or not all(run.known):
        return []
    return [
        Symptom(
            "kept",
            title,
            f"{kinds.spoken(title, _kind(title, learnt))} stays, although the undisturbed run replaces it",
        )
        for title in states.unreplaced(run.uids, run.uids[-1], expected.replaced)
    ]


def _number(uids: Sequence[Mapping[str, str]], title: str) -> int:
    """Returns the number of objects of this title until then."""
    return len({each[title] for each in uids if title in each})


def _kind(title: str, learnt: Run) -> str:
    return next((state[title].get("kind", "") for state in learnt.states if title in state), "")
