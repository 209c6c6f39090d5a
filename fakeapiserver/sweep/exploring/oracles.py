"""Judges a trial: an object that is changed to a spec is like one created with it, changing back leads back, and `Ready` means ready."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.state import diff
from fakeapiserver.sweep import states
from fakeapiserver.sweep.exploring.comparable import comparable
from fakeapiserver.sweep.exploring.trial import Seen, Trial
from fakeapiserver.sweep.judging import Comparison, Symptom, SymptomKind, gravity
from fakeapiserver.sweep.states import Difference, State

_READY: Final = ("Ready", "Available")
_MOST: Final = 6
# Fields that can't be changed once an object exists: the API server refuses what would make them equal.
_IMMUTABLE: Final = re.compile(
    r"statefulsets spec\.(volumeClaimTemplates|serviceName|selector|podManagementPolicy).*"
    r"|(deployments|daemonsets|replicasets) spec\.selector.*"
    r"|services spec\.(clusterIP|clusterIPs|ipFamilies|ipFamilyPolicy|healthCheckNodePort).*"
    r"|persistentvolumeclaims .*|persistentvolumes .*"
    r"|jobs .*"
    r"|statefulsets status\.(currentRevision|updateRevision|collisionCount).*"
    r"|secrets type|serviceaccounts secrets.*|pods spec\.volumes\[name=kube-api-access.*"
)
# Objects whose pods and status follow from their fields, immutable ones among them.
_OWNERS: Final = ("statefulsets", "deployments", "daemonsets")
# Objects that outlive the spec that they were made for, by intention.
_KEPT: Final = frozenset(("persistentvolumeclaims", "persistentvolumes", "jobs"))
# Fields of a status that record how an object came to its spec.
_RECORDS: Final = re.compile(
    r".*([rR]eason|[mM]essage|[rR]evision|[gG]eneration|[hH]ash|[hH]istory|Time|[cC]ount|[aA]ttempts?|[rR]etries|[vV]ersion|[lL]ast[A-Z]\w*)"
)
_ERROR: Final = re.compile(r"error|fail|degraded|invalid|rejected", re.IGNORECASE)
_SUCCESS: Final = re.compile(r"reconcil|success|valid|accepted|synced|healthy", re.IGNORECASE)
_WORKLOADS: Final = ("deployments ", "statefulsets ", "daemonsets ", "pods ", "jobs ")


class Judge(Struct, frozen=True):
    """The state without changes, in which `title` is the custom resource, of the kind `kind`; fields that differ by chance, and fields that
    don't matter."""

    learnt: State
    title: str
    kind: str
    noise: frozenset[str]
    ignore: Sequence[str] = ()

    def symptoms(self, trial: Trial, name: str) -> list[Symptom]:
        """All symptoms, the worst first. `name` is that of the changes, "" if nothing was changed."""
        created, there, back = trial.created, trial.there, trial.back
        found = [
            *_problems(created, f"created with {name}"),
            *_problems(there, f"changed to {name}" if name else "restarted"),
            *_problems(back, f"changed to {name} and back"),
        ]
        if created is not None and not self._is_rejected(created, there) and not self._is_reported(there.state):
            found += [
                Symptom("fresh", _subject(each), f"changed to {name}, {each.shown}, unlike one that is created so")
                for each in self._differences(created.state, there.state, self.title)
            ]
        last = back if name else there
        if last is not None and not last.refused and not self._is_reported(last.state):
            when = f"after {name} and back" if name else "after a restart"
            found += [
                Symptom("back", _subject(each), f"{when}, {each.shown}")
                for each in self._differences(self.learnt, last.state)
            ]
        for seen in (there, created):
            if seen is not None and not seen.refused:
                claims = [
                    *too_early(seen.state, self.title, self.kind),
                    *unnoticed(self.learnt, seen.state, self.title),
                ]
                found += [Symptom("ready", about, f"with {name}, {text}") for about, text in claims]
        several: dict[tuple[str, str], Symptom] = {}
        for each in found:
            several.setdefault((each.kind, each.subject), each)
        return sorted(several.values(), key=gravity)

    def comparisons(self, trial: Trial, name: str) -> list[Comparison]:
        """The differences of the states that should be equal."""
        created, there, back = trial.created, trial.there, trial.back if name else trial.there
        found = []
        if created is not None:
            unlike = self._differences(created.state, there.state, self.title)
            found.append(Comparison("in the end", f"created with {name}", f"changed to {name}", unlike))
        if back is not None:
            when = f"after {name} and back" if name else "after a restart"
            found.append(Comparison("in the end", "before", when, self._differences(self.learnt, back.state)))
        return [each for each in found if each.differences]

    def effects(self, trial: Trial) -> str:
        """A digest of all that has changed apart from the fields themselves, or "" if nothing has."""
        parts = [
            f"{each.title} {each.text}"
            for each in states.differences(self.learnt, trial.there.state, self.noise, self.ignore)
            if each.title != self.title or each.path.startswith("status")
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12] if parts else ""

    def _is_rejected(self, created: Seen, there: Seen) -> bool:
        """Whether the operator doesn't carry out the spec: the API server refuses what it writes, or it makes no workload for it."""
        return bool(created.refused or there.refused) or (
            _has_workloads(self.learnt) and not _has_workloads(created.state)
        )

    def _is_reported(self, state: State) -> bool:
        """Whether the custom resource says, other than before, that the operator doesn't carry out its spec."""
        was, now = (each.get(self.title, {}).get("status") or {} for each in (self.learnt, state))
        return bool(_failures(now) - _failures(was))

    def is_back(self, state: State) -> bool:
        """Whether nothing differs from the state without changes."""
        return not states.differences(comparable(self.learnt), comparable(state), self.noise, self.ignore)

    def _differences(self, wanted: State, found: State, without_spec: str = "") -> list[Difference]:
        """At most a few differences that are the operator's. `without_spec`: an object whose spec is the user's."""
        wanted, found = comparable(wanted, without_spec), comparable(found, without_spec)
        both = states.differences(wanted, found, self.noise, self.ignore)
        left = [each for each in both if not self._is_expected(each, wanted, found)]
        if any(_is_immutable(each) and each.title.partition(" ")[0] in _OWNERS for each in both):
            left = [each for each in left if not each.path.startswith("status") and not each.title.startswith("pods ")]
        return left[:_MOST]

    def _is_expected(self, each: Difference, wanted: State, found: State) -> bool:
        resource = each.title.partition(" ")[0]
        if not each.path:
            return resource in _KEPT or _is_of_job({**wanted, **found}[each.title])
        if _is_immutable(each):
            return True
        if each.title == self.title and each.path.startswith("status") and _RECORDS.fullmatch(each.path):
            return True
        return any(
            field.path == each.path and _is_same(field.old, field.new)
            for field in diff.fields(resource, wanted[each.title], found[each.title])
        )


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
            yield other, f"{title} says that it is {said[0]}, but {other} has {ready} of {wanted} replicas"


def unnoticed(before: State, after: State, title: str) -> Iterator[tuple[str, str]]:
    """The fields `observedGeneration` of a custom resource that were current before a change, and aren't any more."""
    if title not in before or title not in after:
        return
    now = dict(_generations("status", after[title].get("status")))
    for path, seen in _generations("status", before[title].get("status")):
        if (seen, now.get(path)) == ("current", "behind"):
            yield f"{title} {path}", f"{title} is never taken note of: {path} stays behind"


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


def _failures(status: Object) -> set[str]:
    """The conditions and phases of a status that report an error, not only that something isn't ready yet."""
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


def _subject(each: Difference) -> str:
    """Without the object's name, which is another one in each case: `configmaps data.title`, `configmaps additional`."""
    return f"{each.title.partition(' ')[0]} {each.path or each.change}"


def _is_immutable(each: Difference) -> bool:
    return bool(each.path) and _IMMUTABLE.fullmatch(f"{each.title.partition(' ')[0]} {each.path}") is not None


def _has_workloads(state: State) -> bool:
    return any(title.startswith(_WORKLOADS) for title in state)


def _is_of_job(obj: Object) -> bool:
    return any(each.get("kind") == "Job" for each in obj["metadata"].get("ownerReferences") or ())


def _is_same(old: Any, new: Any) -> bool:
    """Whether two values are the same quantity, written in two ways."""
    if not (isinstance(old, str | int) and isinstance(new, str | int)):
        return False
    try:
        return parse(str(old)) == parse(str(new))
    except ValueError:
        return False
