"""Plans the deletion of one object, as pure functions: finalizers, timestamps, preconditions.

Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go (deletionFinalizersForGarbageCollection, markAsDeleting) and
pkg/registry/rest/delete.go (BeforeDelete).
"""

from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.errors import StatusError, new_conflict
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object, finalizers, is_terminating, metadata, resource_version, uid
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.registry.generic.strategy import Strategy

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
_HINTS: Final = {
    "UID": "The object might have been deleted and then recreated",
    "ResourceVersion": "The object might have been modified",
}


class Deletion(Struct, frozen=True):
    """DeleteOptions as the store reads them; None: not given."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None


def check_preconditions(
    obj: Object, deletion: Deletion, strategy: Strategy, resource: GroupResource, kind: GroupKind, name: str
) -> StatusError | None:
    """409 if the client expects another object, or another version of it; None if the preconditions hold."""
    expected = (("UID", deletion.uid, uid(obj)), ("ResourceVersion", deletion.resource_version, resource_version(obj)))
    for what, precondition, actual in expected:
        if precondition is None or precondition == actual:
            continue
        if strategy.ends_in_two_steps:
            reason = f"Precondition failed: {what} in precondition: {precondition}, {what} in object meta: {actual}"
            return new_conflict(resource, name, reason)
        reason = f"the {what} in the precondition ({precondition}) does not match the {what} in record ({actual}). {_HINTS[what]}"
        # Upstream names the kind here, not the resource.
        return new_conflict(GroupResource(kind.group, kind.kind), name, reason)
    return None


class Plan(Struct, frozen=True):
    """The steps of a DELETE: `marked` is the object to store first (None: it stays as it is); `ends`: the object is then removed."""

    marked: Object | None
    ends: bool

    @property
    def acts(self) -> bool:
        """False if the object is being deleted already, and this DELETE changes nothing about it."""
        return self.marked is not None or self.ends

    @property
    def removes_marked(self) -> bool:
        """Reports whether the object is first marked and then removed."""
        return self.marked is not None and self.ends


def plan(obj: Object, deletion: Deletion, strategy: Strategy, now: float) -> Plan:
    """The steps of this deletion at the time `now` (seconds since the epoch); `obj` isn't changed.

    Upstream: BeforeDelete and updateForGracefulDeletionAndFinalizers."""
    if strategy.ends_in_two_steps:
        if not is_terminating(obj):
            marked = {**obj, "metadata": dict(metadata(obj))}
            strategy.begin_deletion(marked, deletion, now)
            return Plan(marked, ends=False)
        if strategy.deletion_blocked(obj):
            return Plan(None, ends=False)
    requested_period = deletion.grace_period_seconds
    if requested_period is not None and requested_period < 0:
        requested_period = 1
    meta = dict(metadata(obj))
    left = meta.get("deletionGracePeriodSeconds") or 0
    graceful, period = False, 0
    if strategy.graceful and "deletionTimestamp" not in meta:
        graceful, period = True, strategy.grace_period(obj, requested_period)
        _begin(meta, now + period, period)
    elif strategy.graceful and left:
        if requested_period is None or requested_period >= left:
            return Plan(None, ends=False)  # a running grace period can only be shortened
        graceful, period = True, requested_period
        _shorten(meta, left, requested_period, now)
    kept = collector_finalizers(obj, deletion, strategy)
    _set_finalizers(meta, kept)
    if not graceful:
        if not kept:
            return Plan(None, ends=True)
        _end(meta, now)
    return Plan({**obj, "metadata": meta}, ends=not kept and period == 0)


def _begin(meta: Object, at: float, period: int) -> None:
    if meta.get("generation", 0) > 0:
        meta["generation"] += 1
    meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = rfc3339(at), period


def _shorten(meta: Object, left: int, period: int, now: float) -> None:
    """Moves the end earlier by as much as the grace period shrinks, but never into the past."""
    at = _time(meta) - left + period
    if at < now:
        at, period = now, min(period, 1)
    meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = rfc3339(at), period


def _time(meta: Object) -> float:
    return seconds_of(meta["deletionTimestamp"]) or 0


def _end(meta: Object, now: float) -> None:
    """Upstream: markAsDeleting."""
    if "deletionTimestamp" not in meta:
        _begin(meta, now, 0)
    elif _time(meta) > now:
        meta["deletionTimestamp"] = rfc3339(now)
    meta["deletionGracePeriodSeconds"] = 0


def _set_finalizers(meta: Object, finalizer_list: list[str]) -> None:
    if set(finalizer_list) == set(meta.get("finalizers") or ()):
        return
    if finalizer_list:
        meta["finalizers"] = finalizer_list
    else:
        meta.pop("finalizers", None)


def collector_finalizers(obj: Object, deletion: Deletion, strategy: Strategy) -> list[str]:
    """The object's own finalizers, and those of the garbage collector that this deletion needs."""
    present = finalizers(obj)
    kept = [finalizer for finalizer in present if finalizer not in (ORPHAN, FOREGROUND)]
    if strategy.default_propagation == "Unsupported":
        return kept
    if _orphans(present, deletion, strategy):
        kept.append(ORPHAN)
    if _waits_for_dependents(present, deletion):
        kept.append(FOREGROUND)
    return kept


def _orphans(present: list[str], deletion: Deletion, strategy: Strategy) -> bool:
    if deletion.orphan_dependents is not None:
        return deletion.orphan_dependents
    if deletion.propagation_policy is not None:
        return deletion.propagation_policy == "Orphan"
    for finalizer in present:
        if finalizer in (ORPHAN, FOREGROUND):
            return finalizer == ORPHAN
    return strategy.default_propagation == "Orphan"


def _waits_for_dependents(present: list[str], deletion: Deletion) -> bool:
    if deletion.orphan_dependents is not None:
        return False
    if deletion.propagation_policy is not None:
        return deletion.propagation_policy == "Foreground"
    for finalizer in present:
        if finalizer in (ORPHAN, FOREGROUND):
            return finalizer == FOREGROUND
    return False


def ends_now(new: Object, old: Object) -> bool:
    """Reports whether an update removes a terminating object, because nothing is left to wait for (upstream: ShouldDeleteDuringUpdate)."""
    meta = metadata(old)
    return "deletionTimestamp" in meta and not finalizers(new) and not meta.get("deletionGracePeriodSeconds")
