"""Differences between two ways to a spec that are not the operator's: the API server doesn't allow to change a field, or data is kept."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.state import diff
from fakeapiserver.sweep.states import Difference, State

# Fields that can't be changed once an object exists: the API server refuses what would make them equal.
_IMMUTABLE: Final = re.compile(
    r"statefulsets spec\.(volumeClaimTemplates|serviceName|selector|podManagementPolicy).*"
    r"|(deployments|daemonsets|replicasets) spec\.selector.*"
    r"|services spec\.(clusterIP|clusterIPs|ipFamilies|ipFamilyPolicy|healthCheckNodePort).*"
    r"|persistentvolumeclaims spec\.(accessModes|storageClassName|volumeMode|volumeName|selector|dataSource).*"
    r"|jobs spec\.(template|selector|completions|completionMode|podFailurePolicy|managedBy).*"
    r"|secrets type"
)
# Fields that controllers and nodes fill in, as a consequence of others.
_FOLLOWING: Final = re.compile(
    r"statefulsets status\.(currentRevision|updateRevision|currentReplicas|updatedReplicas|collisionCount).*"
    r"|persistentvolumeclaims (status\..*|metadata\.(finalizers|annotations\[\"(.+\.)?kubernetes\.io/).*)"
    r"|persistentvolumes .*"
    r"|jobs status\..*"
    r"|serviceaccounts secrets.*|pods spec\.volumes\[name=kube-api-access.*"
)
# Objects whose pods and status follow from their fields, immutable ones among them.
_OWNERS: Final = ("statefulsets", "deployments", "daemonsets", "jobs")
# The size of a claim, which never shrinks.
_SIZE: Final = "persistentvolumeclaims spec.resources.requests.storage"


def without_excused(several: Sequence[Difference], wanted: State, found: State, title: str) -> list[Difference]:
    """The differences that the operator could have avoided. `title`: the custom resource."""
    kept = {*_kept_pods(wanted), *_kept_pods(found)}
    left = [each for each in several if not (each.path and each.title in kept) and not _is_excused(each, wanted, found)]
    fixed = {each.title for each in several if _is_immutable(each) and _resource(each) in _OWNERS}
    if not fixed:
        return left
    followers = {*fixed, title, *_pods_of(fixed, wanted), *_pods_of(fixed, found)}
    return [
        each
        for each in left
        if each.title not in followers or not (each.path.startswith("status") or each.title.startswith("pods "))
    ]


def moved_only(several: Sequence[Difference], moved: Sequence[Difference], title: str) -> list[Difference]:
    """The differences in what has `moved`, of a custom resource that reports an error: an operator that doesn't carry out a spec leaves
    everything as it was. `title`: the custom resource, whose status reports the error."""
    return [
        each
        for each in several
        if not (each.title == title and each.path.startswith("status")) and any(overlap(each, other) for other in moved)
    ]


def is_nothing_but(state: State, given: Collection[tuple[str, str]]) -> bool:
    """Reports whether there are only objects of these kinds and names, which the user has made."""
    return all((obj["kind"], obj["metadata"]["name"]) in given for obj in state.values())


def _is_excused(each: Difference, wanted: State, found: State) -> bool:
    resource, obj = _resource(each), {**wanted, **found}[each.title]
    if resource == "persistentvolumes" or _is_of_job(obj):
        return True
    if resource == "persistentvolumeclaims" and any(_is_made_for(each.title, state) for state in (wanted, found)):
        return True
    if each.change == "additional":  # data outlives the spec that needs it, and so do jobs that are over
        return resource == "persistentvolumeclaims" or (resource == "jobs" and _is_finished(obj))
    if not each.path:
        return False
    if _is_immutable(each) or _FOLLOWING.fullmatch(f"{resource} {each.path}"):
        return True
    return any(
        field.path == each.path and is_same_quantity(field.old, field.new, f"{resource} {field.path}" == _SIZE)
        for field in diff.fields(resource, wanted[each.title], found[each.title])
    )


def _is_made_for(claim: str, state: State) -> bool:
    """Reports whether a StatefulSet has a template for the claim, which is used once, and whose claims are never updated."""
    return any(
        re.fullmatch(f"{re.escape(template['metadata']['name'])}-{re.escape(obj['metadata']['name'])}-[0-9]+", name)
        for title, obj in state.items()
        if title.startswith("statefulsets ")
        for template in obj["spec"].get("volumeClaimTemplates") or ()
        for name in (claim.rpartition("/")[2],)
    )


def _pods_of(owners: Collection[str], state: State) -> Iterator[str]:
    names = {title.rpartition("/")[2] for title in owners}
    for title, obj in state.items():
        references = obj["metadata"].get("ownerReferences") or ()
        if title.startswith("pods ") and any(each.get("name") in names for each in references):
            yield title


def _kept_pods(state: State) -> Iterator[str]:
    """The pods that get a new template only when the operator deletes them, which it does when the programs in them agree."""
    owners = [
        title
        for title, obj in state.items()
        if _resource_of(title) in ("statefulsets", "daemonsets")
        and (obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
    ]
    return _pods_of(owners, state)


def overlap(one: Difference, other: Difference) -> bool:
    """Reports whether one difference is about a part of the other one."""
    shorter = min(len(one.path), len(other.path))
    return one.title == other.title and one.path[:shorter] == other.path[:shorter]


def _resource(each: Difference) -> str:
    return _resource_of(each.title)


def _resource_of(title: str) -> str:
    return title.partition(" ")[0]


def _is_immutable(each: Difference) -> bool:
    return bool(each.path) and _IMMUTABLE.fullmatch(f"{_resource(each)} {each.path}") is not None


def _is_of_job(obj: Object) -> bool:
    return any(each.get("kind") == "Job" for each in obj["metadata"].get("ownerReferences") or ())


def _is_finished(job: Object) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(each.get("type") in ("Complete", "Failed") and each.get("status") == "True" for each in conditions)


def is_same_quantity(old: Any, new: Any, or_more: bool = False) -> bool:
    """Reports whether two values are the same quantity, written in two ways. `or_more`: the second one may be greater."""
    if not (isinstance(old, str | int) and isinstance(new, str | int)):
        return False
    try:
        before, after = parse(str(old)), parse(str(new))
    except ValueError:
        return False
    return before == after or (or_more and before < after)
