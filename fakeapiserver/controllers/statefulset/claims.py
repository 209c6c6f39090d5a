"""The owners of the claims of a stateful set's pods, which decide when claims are deleted. Pure.

Upstream: pkg/controller/statefulset/stateful_set_utils.go. The set owns claims that are deleted with the set; a pod
owns claims that are deleted when the set shrinks; others
have no owner.
"""

from collections.abc import Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.workloads.controller_ref_manager import new_controller_ref
from fakeapiserver.controllers.statefulset.identity import KIND, claim_name, claim_templates, ordinal_of, ordinals

_POD: Final = GroupVersionKind("", "v1", "Pod")
_RETAIN: Final = "Retain"
_DELETE: Final = "Delete"


def new_claims(stateful_set: Object, pod: Object) -> Sequence[Object]:
    """Returns the claims that the pod needs by the set's templates."""
    selected = stateful_set["spec"]["selector"].get("matchLabels") or {}
    ordinal, claims = ordinal_of(pod), []
    for template in claim_templates(stateful_set):
        metadata = {
            **template["metadata"],
            "name": claim_name(stateful_set, template, ordinal),
            "namespace": stateful_set["metadata"]["namespace"],
        }
        if labels := {**(metadata.get("labels") or {}), **selected}:
            metadata["labels"] = labels
        claims.append({**template, "metadata": metadata})
    return claims


def retention_policy(stateful_set: Object) -> tuple[str, str]:
    """(when deleted, when scaled): Retain or Delete."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted", _RETAIN), policy.get("whenScaled", _RETAIN)


def _references(claim: Object) -> Sequence[dict[str, Any]]:
    references: Sequence[dict[str, Any]] = claim["metadata"].get("ownerReferences") or ()
    return references


def _means(reference: dict[str, Any], obj: Object, kind: GroupVersionKind) -> bool:
    """By kind and name, whatever the uid."""
    return (
        reference["apiVersion"] == str(kind.group_version)
        and reference["kind"] == kind.kind
        and bool(reference["name"] == obj["metadata"]["name"])
    )


def _uid(obj: Object) -> str:
    uid: str = obj["metadata"].get("uid", "")
    return uid


def _owns(claim: Object, owner: Object) -> bool:
    return any(reference["uid"] == _uid(owner) for reference in _references(claim))


def is_stale(claim: Object, obj: Object, kind: GroupVersionKind = _POD) -> bool:
    """Whether the claim's owner is an earlier object of that name."""
    owner = next((reference for reference in _references(claim) if _means(reference, obj, kind)), None)
    return owner is not None and owner["uid"] != _uid(obj)


def has_unexpected_controller(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Reports whether another object controls the claim, against the set's policy."""
    if retention_policy(stateful_set) == (_RETAIN, _RETAIN):
        return False
    for reference in _references(claim):
        owner = next((obj for obj, kind in ((stateful_set, KIND), (pod, _POD)) if _means(reference, obj, kind)), None)
        if reference["uid"] != _uid(owner) if owner is not None else reference.get("controller"):
            return True
    return False


def _wanted_owners(stateful_set: Object, pod: Object) -> tuple[bool, bool]:
    """(the set, the pod)."""
    when_deleted, when_scaled = retention_policy(stateful_set)
    leaves = ordinal_of(pod) not in ordinals(stateful_set)
    if when_scaled != _DELETE:
        return when_deleted == _DELETE, False
    return when_deleted == _DELETE and not leaves, leaves


def is_owner_up_to_date(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Reports whether the claim's owners need no change; also if other objects own the claim."""
    if is_stale(claim, stateful_set, KIND) or is_stale(claim, pod):
        return True
    owned = _owns(claim, stateful_set), _owns(claim, pod)
    if has_unexpected_controller(claim, stateful_set, pod):
        return not any(owned)
    ours = (_uid(stateful_set), _uid(pod))
    if any(reference["uid"] in ours and not reference.get("controller") for reference in _references(claim)):
        return False
    return owned == _wanted_owners(stateful_set, pod)


def with_owners(claim: Object, stateful_set: Object, pod: Object) -> Object:
    """Returns the claim with the owners that the policy wants; without set and pod if another object controls it."""
    references = [
        reference
        for reference in _references(claim)
        if not (_means(reference, stateful_set, KIND) or _means(reference, pod, _POD))
    ]
    if not has_unexpected_controller(claim, stateful_set, pod):
        by_set, by_pod = _wanted_owners(stateful_set, pod)
        references += [new_controller_ref(stateful_set, KIND)] if by_set else []
        references += [new_controller_ref(pod, _POD)] if by_pod else []
    return {**claim, "metadata": {**claim["metadata"], "ownerReferences": references}}
