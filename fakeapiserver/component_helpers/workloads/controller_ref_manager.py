"""Claims objects for controllers: adopts orphans that the selector matches, and releases objects that it no longer matches.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_invalid, is_not_found
from fakeapiserver.component_helpers.objects import controller_of, is_terminating
from fakeapiserver.component_helpers.pods import selects

# Sends a strategic merge patch of the object of this name.
Patch = Callable[[str, Object], Awaitable[object]]


class AdoptionRefused(Exception):
    """The controller may not adopt anything, or adopting or releasing several objects failed; the text says why."""


def new_controller_ref(owner: Object, kind: GroupVersionKind) -> dict[str, Any]:
    """Returns the owner reference for objects that `owner`, of this kind, controls."""
    return {
        "apiVersion": str(kind.group_version),
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adoption_patch(owner: Object, kind: GroupVersionKind, uid: str, finalizers: Sequence[str] = ()) -> Object:
    """Makes `owner` the controller of the object with this uid; a server refuses it where there is one."""
    metadata: Object = {"uid": uid, "ownerReferences": [new_controller_ref(owner, kind)]}
    if finalizers:
        metadata["finalizers"] = [*finalizers]
    return {"metadata": metadata}


def release_patch(uid: str, owners: Iterable[str], finalizers: Sequence[str] = ()) -> Object:
    """Takes the owners with these uids from the object with this uid, and the finalizers too."""
    metadata: Object = {"uid": uid, "ownerReferences": [{"$patch": "delete", "uid": owner} for owner in owners]}
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = [*finalizers]
    return {"metadata": metadata}


class ControllerRefManager:
    """Claims objects for one controller during one sync; create a new one for each.

    owned_kind: e.g. `Pod`, for error messages. patch: patches an owned object. fresh: reads the controller from the server, before the
    first adoption; raises StatusError. finalizers: given with adoption, taken with release.
    """

    def __init__(
        self,
        controller: Object,
        kind: GroupVersionKind,
        selector: Selector,
        owned_kind: str,
        patch: Patch,
        fresh: Callable[[], Awaitable[Object]],
        finalizers: Sequence[str] = (),
    ) -> None:
        self._controller = controller
        self._kind = kind
        self._selector = selector
        self._owned_kind = owned_kind
        self._patch = patch
        self._fresh = fresh
        self._finalizers = finalizers
        self._refusal: str | None = None

    async def claim(self, objects: Iterable[Object], wanted: Callable[[Object], bool] | None = None) -> list[Object]:
        """Returns the `objects` that the controller owns now, in their state before an adoption.

        `wanted` filters what the selector matches. Raises StatusError or AdoptionRefused if an adoption or release failed, after all
        were tried.
        """
        uid, selected = self._controller["metadata"]["uid"], selects(self._selector)
        claimed: list[Object] = []
        failures: list[Exception] = []
        for obj in objects:
            owner = controller_of(obj)
            if owner is not None and owner["uid"] != uid:
                continue
            matching = selected(obj) and (wanted is None or wanted(obj))
            if owner is not None and matching:
                claimed.append(obj)
                continue
            if is_terminating(self._controller) or (owner is None and not self._adoptable(obj, matching)):
                continue
            try:
                if owner is not None:
                    await self._release(obj)
                elif await self._adopt(obj):
                    claimed.append(obj)
            except (StatusError, AdoptionRefused) as error:
                failures.append(error)
        if len(failures) > 1:
            raise AdoptionRefused(f"[{', '.join(map(str, failures))}]")
        if failures:
            raise failures[0]
        return claimed

    def _adoptable(self, obj: Object, matching: bool) -> bool:
        namespace = self._controller["metadata"].get("namespace")
        return matching and not is_terminating(obj) and namespace in (None, obj["metadata"].get("namespace"))

    async def _adopt(self, obj: Object) -> bool:
        metadata = obj["metadata"]
        name = f"{metadata.get('namespace', '')}/{metadata['name']} ({metadata['uid']})"
        await self.check_adoption(f"can't adopt {self._owned_kind} {name}")
        patch = adoption_patch(self._controller, self._kind, metadata["uid"], self._finalizers)
        try:
            await self._patch(metadata["name"], patch)
        except StatusError as error:
            if is_not_found(error):
                return False
            raise
        return True

    async def check_adoption(self, text: str) -> None:
        """The controller may be gone by now: the server is asked, once. AdoptionRefused, which begins with `text`."""
        if self._refusal is None:
            self._refusal = await self._ask()
        if self._refusal:
            raise AdoptionRefused(f"{text}: {self._refusal}")

    async def _ask(self) -> str:
        known = self._controller["metadata"]
        try:
            fresh = await self._fresh()
        except StatusError as error:
            return f"can't recheck DeletionTimestamp: {error}"
        metadata = fresh["metadata"]
        name = f"{known.get('namespace', '')}/{known['name']}"
        if metadata["uid"] != known["uid"]:
            gone = f"original {self._kind.kind} {name} is gone: got uid {metadata['uid']}, wanted {known['uid']}"
            return f"can't recheck DeletionTimestamp: {gone}"
        if is_terminating(fresh):
            return f"{name} has just been deleted at {metadata['deletionTimestamp']}"
        return ""

    async def _release(self, obj: Object) -> None:
        patch = release_patch(obj["metadata"]["uid"], [self._controller["metadata"]["uid"]], self._finalizers)
        try:
            await self._patch(obj["metadata"]["name"], patch)
        except StatusError as error:
            # It is gone, or another one of its name, or has no owners any more.
            if not (is_not_found(error) or is_invalid(error)):
                raise


__all__: Final = (
    "AdoptionRefused",
    "ControllerRefManager",
    "adoption_patch",
    "new_controller_ref",
    "release_patch",
)
