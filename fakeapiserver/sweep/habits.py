"""Judges what the operator does, whatever state it leads to: it exits, is refused what it has no right to, or writes again and again."""

from collections.abc import Iterator
from typing import Final

from fakeapiserver.evidence.findings import Finding
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.evidence.table import object_of
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.judging import Symptom
from fakeapiserver.sweep.perturbation import Kind, Perturbation

# After these an operator may exit: it was killed, lost its lease, or can't know whether its cache is right.
_MAY_EXIT: Final[frozenset[Kind]] = frozenset(("crash", "away", "stale", "restart", "lease"))
# After these an operator can't know the versions of objects: conflicts, after which it tries again, are what there must be.
_IS_BLIND: Final[frozenset[Kind]] = frozenset(("stale", "unobserved", "reordered", "late"))
# In the last step, for one object. An undisturbed operator with half as many does it anyway.
_MOST_WRITES: Final = 50
_MOST_UNCHANGED: Final = 10
_CONFLICT: Final = 409


def symptoms(run: Run, learnt: Run, perturbation: Perturbation) -> list[Symptom]:
    """The symptoms that the undisturbed run hasn't."""
    return [*_exits(run, perturbation), *_refusals(run, learnt), *_loops(run, learnt, perturbation)]


def _exits(run: Run, perturbation: Perturbation) -> Iterator[Symptom]:
    if run.exits and perturbation.kind not in _MAY_EXIT:
        yield Symptom("exit", f"status {run.exits[0]}", f"the operator exits with status {run.exits[0]}")


def _refusals(run: Run, learnt: Run) -> Iterator[Symptom]:
    """Missing rights, if the operator runs with those of a service account."""
    if not run.has_limited_rights:
        return
    known = set(_forbidden(learnt.requests))
    for what in dict.fromkeys(_forbidden(run.requests)):
        if what not in known:
            yield Symptom("forbidden", what, f"the operator has no right to {what}")


def forbidden(run: Run) -> list[Symptom]:
    """The rights that the operator lacks in the undisturbed run."""
    missing = dict.fromkeys(_forbidden(run.requests)) if run.has_limited_rights else ()
    return [Symptom("forbidden", what, f"the operator has no right to {what}") for what in missing]


def _forbidden(requests: RequestList) -> Iterator[str]:
    """`create secrets`"""
    for entry in requests:
        if entry.status == 403 and not entry.fault and entry.resource:
            resource = f"{entry.resource}.{entry.group}" if entry.group else entry.resource
            yield f"{entry.verb} {resource}{f'/{entry.subresource}' if entry.subresource else ''}"


def _loops(run: Run, learnt: Run, perturbation: Perturbation) -> Iterator[Symptom]:
    known = {_subject(each) for each in _repeated(learnt, 2)}
    for each in _repeated(run, 1, without_conflicts=perturbation.kind in _IS_BLIND):
        if _subject(each) not in known:
            yield Symptom("loop", _subject(each), f"the operator {each.message} in the last step")


def _repeated(run: Run, share: int, *, without_conflicts: bool = False) -> list[Finding]:
    start = run.marks[-2] if len(run.marks) > 1 else 0
    writes = run.requests.since(start).writes
    if without_conflicts:
        writes = RequestList(entry for entry in writes if entry.status != _CONFLICT)
    return writes.findings(
        "hot_loops", "unchanged_writes", hot_loops=_MOST_WRITES // share, unchanged_writes=_MOST_UNCHANGED // share
    )


def _subject(each: Finding) -> str:
    return f"{each.detector} {object_of(each.requests[0])}"
