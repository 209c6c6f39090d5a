"""The writes after which an operator may be slow: other controllers do what follows from such a write before the operator goes on."""

from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.state.changes import ObjectChange
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.perturbation import Perturbation, WritePoint
from fakeapiserver.sweep.planning import observations

_CHANGES: Final = ("update", "patch")
# Objects of which there is always another write.
_PASSING: Final = frozenset(("events", "leases", "nodes"))


def plan(points: Sequence[tuple[WritePoint, RequestEntry]], run: Run) -> Iterator[Perturbation]:
    """After each write that deletes an object, removes its last finalizer or changes its owners, unless nothing follows from that."""
    for point, entry in points:
        ends = lets_go(entry)
        if (ends or point.verb == "delete" or _changes_owners(entry)) and _is_followed(run, point, entry):
            if ends:  # how many changes there are before is chance
                name = "/".join(part for part in (point.namespace, point.name or "*") if part)
                yield Perturbation("slow", resource=point.resource, object=name)
            else:
                yield Perturbation("slow", point)


def lets_go(entry: RequestEntry) -> bool:
    """Reports whether the write removes the last finalizer of an object that is being deleted."""
    if entry.verb not in _CHANGES:
        return False
    meta = (entry.answer or entry.after or {}).get("metadata") or {}
    return bool(meta.get("deletionTimestamp")) and not meta.get("finalizers")


def _changes_owners(entry: RequestEntry) -> bool:
    if entry.verb not in _CHANGES or entry.before is None or entry.after is None:
        return False
    return _owners(entry.before) != _owners(entry.after)


def _owners(obj: Object) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}


def _is_followed(run: Run, point: WritePoint, entry: RequestEntry) -> bool:
    """Reports whether another writer changes something after the write, in the same step."""
    step = observations.step_of(run, entry)
    if step + 1 >= len(run.change_marks):
        return False
    began_at = entry.content.began_at if entry.content is not None else 0
    own = {each.revision for each in run.writes}
    for change in run.changes[run.change_marks[step] : run.change_marks[step + 1]]:
        is_others = change.revision not in own and change.resource.partition(".")[0] not in _PASSING
        # the answer to a delete has no revision
        is_later = change.revision > entry.revision if entry.revision else _is_other(change, point, began_at)
        if is_others and is_later:
            return True
    return False


def _is_other(change: ObjectChange, point: WritePoint, began_at: int) -> bool:
    obj = change.after if change.after is not None else change.before
    is_same = obj is not None and (change.resource, obj["metadata"]["name"]) == (point.resource, point.name)
    return change.revision > began_at and not is_same
