"""What reconcilers do all the time (upstream: sigs.k8s.io/controller-runtime/pkg/controller/controllerutil)."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.controller_runtime.cache import copied
from fakeapiserver.controller_runtime.client import Client
from fakeapiserver.controller_runtime.scheme import gvk_for, to_object


class AlreadyOwnedError(ValueError):
    """Another controller has the object."""


class OperationResult(StrEnum):
    """What create_or_update did."""

    NONE = "unchanged"
    CREATED = "created"
    UPDATED = "updated"
    UPDATED_STATUS = "updatedStatus"
    UPDATED_STATUS_ONLY = "updatedStatusOnly"


def set_controller_reference(owner: Any, controlled: Object, *, block_owner_deletion: bool = True) -> None:
    """Makes `owner` the controller of the dict `controlled`, which goes with it. AlreadyOwnedError, ValueError for owners of other
    namespaces."""
    for reference in controlled["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["uid"] != to_object(owner)["metadata"].get("uid"):
            raise AlreadyOwnedError(
                f"Object {controlled['metadata'].get('namespace', '')}/{controlled['metadata'].get('name', '')} "
                f"is already owned by another {reference['kind']} controller {reference['name']}"
            )
    _own(owner, controlled, {"controller": True, "blockOwnerDeletion": block_owner_deletion})


def set_owner_reference(owner: Any, owned: Object) -> None:
    """Makes `owner` one of the owners. ValueError for owners of other namespaces."""
    _own(owner, owned, {})


def _own(owner: Any, owned: Object, flags: dict[str, bool]) -> None:
    found = to_object(owner)
    mine, metadata = found["metadata"], owned.setdefault("metadata", {})
    namespace, theirs = mine.get("namespace", ""), metadata.get("namespace", "")
    if namespace and not theirs:
        raise ValueError(
            f"cluster-scoped resource must not have a namespace-scoped owner, owner's namespace {namespace}"
        )
    if namespace and namespace != theirs:
        raise ValueError(
            f"cross-namespace owner references are disallowed, owner's namespace {namespace}, obj's namespace {theirs}"
        )
    kind = gvk_for(found)
    reference = {
        "apiVersion": str(kind.group_version),
        "kind": kind.kind,
        "name": mine["name"],
        "uid": mine.get("uid", ""),
        **flags,
    }
    references = [*(metadata.get("ownerReferences") or ())]
    for place, other in enumerate(references):
        same_group = GroupVersion.parse(other["apiVersion"]).group == kind.group
        if same_group and (other["kind"], other["name"]) == (kind.kind, mine["name"]):
            references[place] = reference
            break
    else:
        references.append(reference)
    metadata["ownerReferences"] = references


def contains_finalizer(obj: Object, finalizer: str) -> bool:
    return finalizer in (obj["metadata"].get("finalizers") or ())


def add_finalizer(obj: Object, finalizer: str) -> bool:
    """Whether it wasn't there."""
    if contains_finalizer(obj, finalizer):
        return False
    obj["metadata"]["finalizers"] = [*(obj["metadata"].get("finalizers") or ()), finalizer]
    return True


def remove_finalizer(obj: Object, finalizer: str) -> bool:
    """Whether it was there."""
    found = obj["metadata"].get("finalizers") or []
    obj["metadata"]["finalizers"] = [other for other in found if other != finalizer]
    return len(obj["metadata"]["finalizers"]) != len(found)


async def create_or_update(
    client: Client, obj: Object, mutate: Callable[[Object], Awaitable[None] | None]
) -> tuple[Object, OperationResult]:
    """The object as it is stored afterwards. `obj` names it; `mutate` makes the object (the stored one, or `obj`) what it is to be,
    and may not change its name. StatusError (409) when somebody else wrote in between: reconcile again."""
    metadata = obj["metadata"]
    try:
        stored = await client.get(gvk_for(obj), metadata["name"], metadata.get("namespace", ""))
    except StatusError as error:
        if not is_not_found(error):
            raise
        wanted = copied(obj)
        await _mutated(wanted, mutate)
        return await client.create(wanted), OperationResult.CREATED
    wanted = copied(stored)
    await _mutated(wanted, mutate)
    if wanted == stored:
        return stored, OperationResult.NONE
    return await client.update(wanted), OperationResult.UPDATED


async def create_or_patch(
    client: Client, obj: Object, mutate: Callable[[Object], Awaitable[None] | None]
) -> tuple[Object, OperationResult]:
    """As create_or_update, but sends what changed only, the status apart."""
    metadata = obj["metadata"]
    stored = await client.find(gvk_for(obj), metadata["name"], metadata.get("namespace", ""))
    wanted = copied(stored or obj)
    await _mutated(wanted, mutate)
    if stored is None:
        created = await client.create(wanted)
        if "status" not in wanted:
            return created, OperationResult.CREATED
        return await client.patch_status(created, {"status": wanted["status"]}), OperationResult.CREATED
    outside, status = merge_patch(stored, wanted), {}
    if "status" in outside:
        status = {"status": outside.pop("status")}
    result = OperationResult.NONE
    found = stored
    if outside:
        found, result = await client.patch(found, outside), OperationResult.UPDATED
    if status:
        found = await client.patch_status(found, status)
        result = OperationResult.UPDATED_STATUS if outside else OperationResult.UPDATED_STATUS_ONLY
    return found, result


def merge_patch(old: Object, new: Object) -> Object:
    """The JSON merge patch (RFC 7396) that makes `new` of `old`."""
    patch: Object = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if nested := merge_patch(before, value):
                patch[key] = nested
        elif key not in old or value != before:
            patch[key] = value
    return patch


async def _mutated(obj: Object, mutate: Callable[[Object], Awaitable[None] | None]) -> None:
    key = (obj["metadata"].get("namespace"), obj["metadata"]["name"])
    result = mutate(obj)
    if result is not None:
        await result
    if (obj["metadata"].get("namespace"), obj["metadata"]["name"]) != key:
        raise ValueError("MutateFn cannot mutate object name and/or object namespace")
