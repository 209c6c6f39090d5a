"""Functions that most reconcilers need (upstream: sigs.k8s.io/controller-runtime/pkg/controller/controllerutil)."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.controller_runtime.cache import copied
from fakeapiserver.controller_runtime.client import Client
from fakeapiserver.controller_runtime.scheme import gvk_for, to_object

__all__ = [
    "AlreadyOwnedError",
    "Mutate",
    "OperationResult",
    "add_finalizer",
    "contains_finalizer",
    "create_or_patch",
    "create_or_update",
    "has_controller_reference",
    "has_owner_reference",
    "merge_patch",
    "remove_controller_reference",
    "remove_finalizer",
    "remove_owner_reference",
    "set_controller_reference",
    "set_owner_reference",
]

# Changes an object in place into what it should be; may be an `async def`.
Mutate = Callable[[Object], Awaitable[None] | None]


class AlreadyOwnedError(ValueError):
    """Another controller, that of the reference `owner`, has the object."""

    def __init__(self, obj: Object, owner: Object) -> None:
        metadata = obj["metadata"]
        super().__init__(
            f"Object {metadata.get('namespace', '')}/{metadata.get('name', '')} is already owned by another "
            f"{owner['kind']} controller {owner['name']}"
        )
        self.object = obj
        self.owner = owner


class OperationResult(StrEnum):
    """The result of create_or_update."""

    NONE = "unchanged"
    CREATED = "created"
    UPDATED = "updated"
    UPDATED_STATUS = "updatedStatus"
    UPDATED_STATUS_ONLY = "updatedStatusOnly"


def set_controller_reference(owner: Any, controlled: Object, *, block_owner_deletion: bool = True) -> None:
    """Makes `owner` the controller of the dict `controlled`, which goes with it. AlreadyOwnedError, ValueError for owners of other
    namespaces."""
    reference = _reference(owner, controlled)
    for other in _references(controlled):
        if other.get("controller") and not _same(other, reference):
            raise AlreadyOwnedError(controlled, other)
    _put(controlled, {**reference, "controller": True, "blockOwnerDeletion": block_owner_deletion})


def set_owner_reference(owner: Any, owned: Object, *, block_owner_deletion: bool | None = None) -> None:
    """Makes `owner` one of the owners. ValueError for owners of other namespaces."""
    flags = {} if block_owner_deletion is None else {"blockOwnerDeletion": block_owner_deletion}
    _put(owned, {**_reference(owner, owned), **flags})


def remove_owner_reference(owner: Any, owned: Object) -> None:
    """Removes `owner` from the owners. ValueError if it isn't one."""
    if not _references(owned):
        raise ValueError(f"{_kind(owned)} does not have any owner references")
    reference = _named(owner)
    left = [other for other in _references(owned) if not _same(other, reference)]
    if len(left) == len(_references(owned)):
        raise ValueError(f"{_kind(owned)} does not have an owner reference for {reference['kind']}")
    owned["metadata"]["ownerReferences"] = left


def remove_controller_reference(owner: Any, controlled: Object) -> None:
    """Makes `owner` none of the owners. ValueError: it isn't the controller."""
    kind, reference = _kind(controlled), _named(owner)
    if not has_controller_reference(controlled):
        raise ValueError(f"{kind} does not have a owner reference with controller equals true")
    kept = [other for other in _references(controlled) if _same(other, reference)]
    if not kept:
        raise ValueError(f"{kind} does not have an controller reference for {reference['kind']}")
    if not kept[0].get("controller"):
        raise ValueError(f"{reference['kind']} owner is not the controller reference for {kind}")
    remove_owner_reference(owner, controlled)


def has_controller_reference(obj: Object) -> bool:
    """Reports whether it has a controller."""
    return any(reference.get("controller") for reference in _references(obj))


def has_owner_reference(obj: Object, owner: Any) -> bool:
    """Reports whether `owner` is one of its owners; its uid isn't looked at."""
    reference = _named(owner)
    return any(_same(other, reference) for other in _references(obj))


def _reference(owner: Any, owned: Object) -> Object:
    mine = to_object(owner)["metadata"]
    namespace, theirs = mine.get("namespace", ""), owned.setdefault("metadata", {}).get("namespace", "")
    if namespace and not theirs:
        raise ValueError(
            f"cluster-scoped resource must not have a namespace-scoped owner, owner's namespace {namespace}"
        )
    if namespace and namespace != theirs:
        raise ValueError(
            f"cross-namespace owner references are disallowed, owner's namespace {namespace}, obj's namespace {theirs}"
        )
    return {**_named(owner), "uid": mine.get("uid", "")}


def _named(owner: Any) -> Object:
    obj = to_object(owner)
    kind = gvk_for(obj)
    return {"apiVersion": str(kind.group_version), "kind": kind.kind, "name": obj["metadata"]["name"]}


def _references(obj: Object) -> list[Object]:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def _same(a: Object, b: Object) -> bool:
    """Reports whether both name the same owner, in whichever version."""
    return _identity(a) == _identity(b)


def _identity(reference: Object) -> tuple[str, str, str]:
    return reference["apiVersion"].rpartition("/")[0], reference["kind"], reference["name"]


def _put(owned: Object, reference: Object) -> None:
    references = [reference if _same(other, reference) else other for other in _references(owned)]
    owned["metadata"]["ownerReferences"] = references if reference in references else [*references, reference]


def _kind(obj: Object) -> str:
    return obj.get("kind") or "object"


def contains_finalizer(obj: Object, finalizer: str) -> bool:
    return finalizer in (obj["metadata"].get("finalizers") or ())


def add_finalizer(obj: Object, finalizer: str) -> bool:
    """Reports whether it wasn't there."""
    if contains_finalizer(obj, finalizer):
        return False
    obj["metadata"]["finalizers"] = [*(obj["metadata"].get("finalizers") or ()), finalizer]
    return True


def remove_finalizer(obj: Object, finalizer: str) -> bool:
    """Whether it was there."""
    finalizers = obj["metadata"].get("finalizers") or []
    obj["metadata"]["finalizers"] = [other for other in finalizers if other != finalizer]
    return len(obj["metadata"]["finalizers"]) != len(finalizers)


async def create_or_update(client: Client, obj: Object, mutate: Mutate | None) -> tuple[Object, OperationResult]:
    """Creates or updates the object and returns it as it is stored afterwards.

    `obj` names it; `mutate` changes the object (the stored one, or `obj`) to the wanted state, and may not change
    its name. Raises
    StatusError (409) if another client wrote in between: reconcile again.
    """
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


async def create_or_patch(client: Client, obj: Object, mutate: Mutate | None) -> tuple[Object, OperationResult]:
    """Does what create_or_update does with a patch of the changes, and one of the status.

    Writes in between aren't noticed. The status of a new object is written the next time.
    """
    metadata = obj["metadata"]
    stored = await client.find(gvk_for(obj), metadata["name"], metadata.get("namespace", ""))
    wanted = copied(stored or obj)
    await _mutated(wanted, mutate)
    if stored is None:
        return await client.create(wanted), OperationResult.CREATED
    outside, status = merge_patch(stored, wanted), {}
    if "status" in outside:
        status = {"status": outside.pop("status")}
    result = OperationResult.NONE
    written = stored
    if outside:
        written, result = await client.patch(written, outside), OperationResult.UPDATED
    if status:
        written = await client.patch_status(written, status)
        result = OperationResult.UPDATED_STATUS if outside else OperationResult.UPDATED_STATUS_ONLY
    return written, result


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


async def _mutated(obj: Object, mutate: Mutate | None) -> None:
    key = (obj["metadata"].get("namespace"), obj["metadata"]["name"])
    result = mutate(obj) if mutate is not None else None
    if result is not None:
        await result
    if (obj["metadata"].get("namespace"), obj["metadata"]["name"]) != key:
        raise ValueError("MutateFn cannot mutate object name and/or object namespace")
