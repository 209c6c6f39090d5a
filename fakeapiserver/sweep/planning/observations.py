"""The changes of objects that the operator could see in a run: how often each changed in each step, and who changed it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.evidence import election
from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.state.changes import ObjectChange
from fakeapiserver.sweep.case import Run

_COMPONENTS: Final = frozenset(
    ("csi-provisioner", "kube-controller-manager", "kube-scheduler", "kubelet", "local-path-provisioner")
)


class Observed(Struct):
    """The changes of an object of a watched resource within a step. `name` is `NAMESPACE/NAME`, with `*` for a part that is generated.
    `by_user`: users have changed what they want of it, and not the operator or a controller."""

    resource: str
    name: str
    changes: int = 0
    by_user: bool = False


def steps_of(run: Run) -> list[dict[tuple[str, str], Observed]]:
    """The objects that changed in each step, by resource and name, in the order in which they changed."""
    by_operator = {entry.revision for entry in run.writes if entry.changed}
    watched = {each.partition(".")[0]: each for each in run.watched}
    return [_observed(changes, watched, by_operator) for changes in _changes_of_steps(run)]


def step_of(run: Run, entry: RequestEntry) -> int:
    """The index of the step in which a request was answered."""
    return next((number for number, mark in enumerate(run.marks) if entry.seq <= mark), len(run.states) - 1)


def _changes_of_steps(run: Run) -> Iterator[Sequence[ObjectChange]]:
    marks = run.change_marks
    for start, end in itertools.pairwise(marks):
        yield run.changes[start:end]


def _observed(
    changes: Sequence[ObjectChange], watched: Mapping[str, str], by_operator: set[int]
) -> dict[tuple[str, str], Observed]:
    found: dict[tuple[str, str], Observed] = {}
    for change in changes:
        resource = watched.get(change.resource.partition(".")[0])
        obj = change.after if change.after is not None else change.before
        if resource is None or obj is None or election.is_record(obj):
            continue
        name = _name_of(obj)
        each = found.setdefault((resource, name), Observed(resource, name))
        each.changes += 1
        each.by_user |= change.revision not in by_operator and not _is_clusters(obj) and _is_wish(change)
    return found


def _is_clusters(obj: Object) -> bool:
    """Reports whether a controller owns the object, or only components of the cluster have written it, e.g. Endpoints."""
    meta = obj["metadata"]
    managers = {each.get("manager", "") for each in meta.get("managedFields") or ()}
    is_owned = any(owner.get("controller") for owner in meta.get("ownerReferences") or ())
    return is_owned or (bool(managers) and managers <= _COMPONENTS)


def _is_wish(change: ObjectChange) -> bool:
    """Reports whether a write changes what is wanted, and not only the status."""
    if change.before is None or change.after is None:
        return True
    before, after = change.before["metadata"], change.after["metadata"]
    return any(before.get(name) != after.get(name) for name in ("generation", "deletionTimestamp"))


def _name_of(obj: Object) -> str:
    meta = obj["metadata"]
    base = meta.get("generateName")
    is_generated = base and meta["name"].startswith(base) and not meta["name"].removeprefix(base).isdigit()
    name = f"{base}*" if is_generated else meta["name"]
    return f"{meta['namespace']}/{name}" if meta.get("namespace") else name
