"""What a DELETE asks of one object, as pure functions: finalizers, timestamps, preconditions.

Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go (deletionFinalizersForGarbageCollection, markAsDeleting) and
pkg/registry/rest/delete.go (BeforeDelete).
"""

from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError, new_conflict
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object, finalizers, metadata, resource_version, uid
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.registry.generic.strategy import Strategy

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class Deletion:
    """DeleteOptions as the store reads them; None means that the client said nothing."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None


def check_preconditions(obj: Object, deletion: Deletion, kind: GroupKind, name: str) -> StatusError | None:
    """409 where the client expects another object or another version of it. Upstream names the kind, not the resource."""
    named = GroupResource(kind.group, kind.kind)
    if deletion.uid is not None and deletion.uid != uid(obj):
        reason = (
            f"the UID in the precondition ({deletion.uid}) does not match the UID in record ({uid(obj)}). "
            "The object might have been deleted and then recreated"
        )
        return new_conflict(named, name, reason)
    expected = deletion.resource_version
    if expected is not None and expected != resource_version(obj):
        reason = (
            f"the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record "
            f"({resource_version(obj)}). The object might have been modified"
        )
        return new_conflict(named, name, reason)
    return None


def collector_finalizers(obj: Object, deletion: Deletion, strategy: Strategy) -> list[str]:
    """The object's finalizers with those of the garbage collector that this deletion asks for."""
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


def marked(obj: Object, finalizer_list: list[str], now: float, grace_period_seconds: int = 0) -> Object:
    """A copy of the object as it waits for its end. A shorter grace period shortens a running one."""
    meta = dict(metadata(obj))
    if finalizer_list:
        meta["finalizers"] = finalizer_list
    else:
        meta.pop("finalizers", None)
    if "deletionTimestamp" not in meta:
        if meta.get("generation", 0) > 0:
            meta["generation"] += 1
        meta["deletionTimestamp"] = rfc3339(now + grace_period_seconds)
        meta["deletionGracePeriodSeconds"] = grace_period_seconds
    elif grace_period_seconds < meta.get("deletionGracePeriodSeconds", 0):
        meta["deletionTimestamp"] = rfc3339(now + grace_period_seconds)
        meta["deletionGracePeriodSeconds"] = grace_period_seconds
    return {**obj, "metadata": meta}


def ends_now(obj: Object) -> bool:
    """An update that leaves a terminating object with nothing to wait for removes it (ShouldDeleteDuringUpdate)."""
    meta = metadata(obj)
    return "deletionTimestamp" in meta and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
