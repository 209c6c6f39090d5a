"""Judges a trial: an object that is changed to a spec is like one created with it, changing back leads back, and `Ready` means ready."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.sweep import kinds, states
from fakeapiserver.sweep.case import Expected
from fakeapiserver.sweep.exploring import excuses
from fakeapiserver.sweep.exploring.comparable import comparable
from fakeapiserver.sweep.exploring.trial import Seen, Trial
from fakeapiserver.sweep.judging import Comparison, Symptom, SymptomKind, gravity
from fakeapiserver.sweep.states import Difference, State

_READY: Final = ("Ready", "Available")
_MOST: Final = 6
# Fields of a status that record how an object came to its spec.
_RECORDS: Final = re.compile(
    r".*([rR]eason|[mM]essage|[rR]evision|[gG]eneration|[hH]ash|[hH]istory|Time|[cC]ount|[aA]ttempts?|[rR]etries|[vV]ersion|[lL]ast[A-Z]\w*)"
)
# Annotations that count the versions of another object.
_COUNTS: Final = re.compile(r'.*\.annotations\["?[^\]]*([vV]ersion|[rR]evision|[gG]eneration)"?\]')
_NUMBER: Final = re.compile(r'"?\d+"?')
_ERROR: Final = re.compile(r"error|fail|degraded|invalid|rejected", re.IGNORECASE)
_SUCCESS: Final = re.compile(r"reconcil|success|valid|accepted|synced|healthy", re.IGNORECASE)


class Judge(Struct, frozen=True):
    """The state without changes, in which `title` is the custom resource, of the kind `kind`; fields that differ by chance, and fields that
    don't matter. `given`: the kinds and names of the objects that the user has made."""

    learnt: State
    title: str
    kind: str
    noise: frozenset[str]
    ignore: Sequence[str] = ()
    given: Collection[tuple[str, str]] = ()

    def symptoms(self, trial: Trial, name: str) -> list[Symptom]:
        """All symptoms, the worst first. `name` is that of the changes, "" if nothing was changed."""
        created, there, back = trial.created, trial.there, trial.back
        found = [
            *_problems(created, f"created with {name}"),
            *_problems(there, f"changed to {name}" if name else "restarted"),
            *_problems(back, f"changed to {name} and back"),
        ]
        way = f"when changed to {name}, unlike when created with it"
        found += [
            Symptom("fresh", subject_of(each), f"{each.shown}, {way}") for each in self._of_creation(created, there)
        ]
        when = f"after {name} and back" if name else "after a restart"
        found += [Symptom("back", subject_of(each), f"{each.shown}, {when}") for each in self._of_return(trial, name)]
        for seen in (there, created):
            if seen is not None and not seen.refused:
                found += [Symptom("ready", about, f"{text}, with {name}") for about, text in self._claims(seen.state)]
        several: dict[tuple[str, str], Symptom] = {}
        for each in found:
            several.setdefault((each.kind, each.subject), each)
        return sorted(several.values(), key=gravity)

    def comparisons(self, trial: Trial, name: str) -> list[Comparison]:
        """The differences of the states that should be equal."""
        of_creation, of_return = self._of_creation(trial.created, trial.there), self._of_return(trial, name)
        when = f"after {name} and back" if name else "after a restart"
        found = [
            Comparison("in the end", f"created with {name}", f"changed to {name}", of_creation),
            Comparison("in the end", "before", when, of_return),
        ]
        return [each for each in found if each.differences]

    def is_like(self, wanted: State, found: State, known: Collection[str] = ()) -> bool:
        """Reports whether the states differ in nothing that counts, and the second one's status claims nothing wrong. `known`: subjects
        that don't matter."""
        differences = self._differences(wanted, found, self.title)
        subjects = [*map(subject_of, differences), *(about for about, _ in self._claims(found))]
        return all(each in known for each in subjects)

    def _claims(self, state: State) -> Iterator[tuple[str, str]]:
        """The false claims in the status of the custom resource, each with a sentence about it."""
        yield from too_early(state, self.title, self.kind)
        if not failures(state.get(self.title, {}).get("status") or {}):
            yield from unnoticed(self.learnt, state, self.title)

    def effects(self, trial: Trial) -> str:
        """A digest of all that has changed apart from the fields themselves, or "" if nothing has."""
        parts = [
            f"{each.title} {each.text}"
            for each in states.differences(self.learnt, trial.there.state, self.noise, self.ignore)
            if each.title != self.title or each.path.startswith("status")
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12] if parts else ""

    def _of_creation(self, created: Seen | None, there: Seen) -> list[Difference]:
        """The differences from an object that is created with the spec."""
        if created is None or self._is_rejected(created, there):
            return []
        found = self._differences(created.state, there.state, self.title)
        if created.former is not None:  # what a restart brings up to date is right both ways
            before = self._differences(created.former, there.state, self.title)
            found = [each for each in found if any(excuses.overlap(each, other) for other in before)]
        return self._unexcused(found, self.learnt, there.state)[:_MOST]

    def _of_return(self, trial: Trial, name: str) -> list[Difference]:
        """The differences from the state before the changes."""
        last = trial.back if name else trial.there
        if last is None or last.refused:
            return []
        found = self._differences(self.learnt, last.state)
        return self._unexcused(found, trial.there.state if name else last.state, last.state)[:_MOST]

    def _unexcused(self, several: list[Difference], former: State, now: State) -> list[Difference]:
        """Without those that keep the `former` values, if the custom resource reports an error."""
        if not self.is_reported(now):
            return several
        moved = states.differences(comparable(former), comparable(now), self.noise, self.ignore)
        return excuses.moved_only(several, moved, self.title)

    def _is_rejected(self, created: Seen, there: Seen) -> bool:
        """Whether the operator doesn't carry out the spec: the API server refuses what it writes, or it makes nothing when the
        object is created, and changes nothing when it is changed."""
        if created.refused or there.refused:
            return True
        is_unchanged = all(each.title == self.title for each in self._differences(self.learnt, there.state))
        return is_unchanged and excuses.is_nothing_but(created.state, self.given)

    def is_reported(self, state: State) -> bool:
        """Whether the custom resource says, other than before, that the operator doesn't carry out its spec."""
        was, now = (each.get(self.title, {}).get("status") or {} for each in (self.learnt, state))
        return bool(failures(now) - failures(was))

    def is_back(self, state: State) -> bool:
        """Whether nothing differs from the state without changes."""
        return not states.differences(comparable(self.learnt), comparable(state), self.noise, self.ignore)

    def _differences(self, wanted: State, found: State, without_spec: str = "") -> list[Difference]:
        """The differences that are the operator's. `without_spec`: an object whose spec is the user's."""
        wanted, found = comparable(wanted, without_spec), comparable(found, without_spec)
        both = states.differences(wanted, found, self.noise, self.ignore)
        left = excuses.without_excused(both, wanted, found, self.title)
        return [
            each
            for each in left
            if not (each.title == self.title and (_is_record(each.path) or _is_open(each))) and not _is_count(each)
        ]


class Awaited(Expected, frozen=True, kw_only=True):
    """States that explore waits for, no longer than until nothing differs that a judge finds, or that is `known`."""

    judge: Judge
    known: Collection[str] = ()

    def is_reached(self, wanted: State, state: State, ignore: Sequence[str]) -> bool:
        """Reports whether the state needs no more time to become the wanted one."""
        return self.judge.is_like(wanted, state, self.known)


def _problems(seen: Seen | None, when: str) -> Iterator[Symptom]:
    if seen is None:
        return
    for text in seen.panics:
        yield Symptom("panic", text, f"{when}, the operator crashes: {text}")
    if seen.restless:
        kind: SymptomKind = "step" if seen.restless.startswith("step ") else "restless"
        yield Symptom(kind, seen.restless.partition(":")[0], f"{when}, {seen.restless}")
    for invariant, words in seen.broken:
        yield Symptom(
            "invariant", invariant, f"{when}, the invariant {invariant!r} is broken{f': {words}' if words else ''}"
        )


def too_early(state: State, title: str, kind: str) -> Iterator[tuple[str, str]]:
    """The workloads of a custom resource that aren't ready although it says so, each with a sentence about it."""
    said = [name for name in _READY if title in state and _is_true(state[title], name)]
    if not said:
        return
    name = title.rpartition("/")[2]
    for other, workload in state.items():
        if _belongs(workload, kind, name) and _lacks_replicas(other.partition(" ")[0], workload):
            ready = (workload.get("status") or {}).get("readyReplicas") or 0
            wanted = workload["spec"].get("replicas", 1)
            about, of_kind = kinds.spoken(title, kind), kinds.spoken(other, workload.get("kind", ""))
            yield other, f"{about} says that it is {said[0]}, but {of_kind} has {ready} of {wanted} replicas"


def unnoticed(before: State, after: State, title: str) -> Iterator[tuple[str, str]]:
    """The fields `observedGeneration` of a custom resource that were current before a change, and aren't any more."""
    if title not in before or title not in after:
        return
    now = dict(_generations("status", after[title].get("status")))
    for path, seen in _generations("status", before[title].get("status")):
        if (seen, now.get(path)) == ("current", "behind"):
            about = kinds.spoken(title, after[title].get("kind", ""))
            yield f"{title} {path}", f"the operator never notices the change: {path} of {about} stays behind"


def _generations(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The paths of fields `observedGeneration`, and their values."""
    if isinstance(value, list):
        value = {str(each.get("type", number)): each for number, each in enumerate(value) if isinstance(each, dict)}
    if not isinstance(value, dict):
        return
    for name, member in value.items():
        if name == "observedGeneration":
            yield f"{path}.{name}", member
        else:
            yield from _generations(f"{path}.{name}", member)


def _lacks_replicas(resource: str, workload: Object) -> bool:
    """A Deployment may lack a few of them, as its strategy says."""
    if resource == "deployments":
        return not _is_true(workload, "Available")
    ready = (workload.get("status") or {}).get("readyReplicas") or 0
    return resource == "statefulsets" and ready < workload["spec"].get("replicas", 1)


def _is_true(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        isinstance(each, dict) and (each.get("type"), each.get("status")) == (condition, "True") for each in conditions
    )


def _belongs(obj: Object, kind: str, name: str) -> bool:
    return any(
        (each.get("kind"), each.get("name")) == (kind, name) for each in obj["metadata"].get("ownerReferences") or ()
    )


def failures(status: Object) -> set[str]:
    """Returns the conditions and phases of a status that report an error, not only that something isn't ready yet."""
    conditions = status.get("conditions")
    texts = {
        f"{each.get('type')} {each.get('status')}"
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, dict) and _is_failure(str(each.get("type")), str(each.get("status")))
    }
    return texts | {
        f"{name} {value}"
        for name, value in status.items()
        if isinstance(value, str)
        and (_ERROR.search(value) if name in ("phase", "state") else value and _ERROR.search(name))
    }


def _is_failure(kind: str, status: str) -> bool:
    return status == ("True" if _ERROR.search(kind) else "False" if _SUCCESS.search(kind) else None)


def subject_of(each: Difference) -> str:
    """Without the object's name, which is another one in each case: `configmaps data.title`, `configmaps additional`."""
    return f"{each.title.partition(' ')[0]} {each.path or each.change}"


def _is_open(each: Difference) -> bool:
    """Reports whether a condition isn't decided yet."""
    return each.path.startswith("status.conditions[") and '"Unknown"' in (each.wanted, each.actual)


def _is_record(path: str) -> bool:
    return path.startswith("status") and _RECORDS.fullmatch(path) is not None


def _is_count(each: Difference) -> bool:
    """Reports whether an annotation has one number instead of another as the version of something."""
    values = (each.wanted, each.actual)
    return _COUNTS.fullmatch(each.path) is not None and all(_NUMBER.fullmatch(value) for value in values)
