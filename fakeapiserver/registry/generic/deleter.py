"""DELETE of one stored object or of many: marks them and removes them.

An object with finalizers or a grace period is marked only, by a write like any other (`Store.write`). One that is to be marked and
removed at once is removed when its watchers have seen the mark.

Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go (Delete, DeleteCollection), pkg/registry/rest/rest.go
(GracefulDeleter, CollectionDeleter).
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError, new_conflict, new_forbidden
from fakeapiserver.apimachinery.meta import Object, equal, is_terminating, metadata, uid
from fakeapiserver.registry.generic import deletion
from fakeapiserver.registry.generic.deletion import Deletion, Plan
from fakeapiserver.registry.generic.write_attempt import MODIFIED
from fakeapiserver.registry.generic.write_request import WriteRequest, Written
from fakeapiserver.storage.interface import KeyNotFound, ResourceVersionConflict, StoredObject

if TYPE_CHECKING:
    from fakeapiserver.registry.generic.store import Store

# A write that loses this many races in a row ends with a conflict.
WRITE_ATTEMPTS: Final = 100
# So many objects of a collection are marked before the first of them is removed.
_COLLECTION_BATCH: Final = 50


class GracefulDeleter:
    """Deletes the objects of one store."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def delete(self, request: WriteRequest, options: Deletion) -> Written:
        """DELETE: removes the object, or marks it as waiting for its finalizers or its grace period. Raises StatusError 403, 404,
        409."""
        begun = await self._begin(request, options)
        return begun if isinstance(begun, Written) else (await self._finish([begun]))[0]

    async def delete_collection(self, requests: Iterable[WriteRequest], options: Deletion) -> None:
        """Deletes each object as `delete` does; an object that is already gone is no error. Other requests are answered in between.
        Raises StatusError 403, 409: the objects before the refused one are deleted, those after it are not."""
        remaining = iter(requests)
        while batch := [*islice(remaining, _COLLECTION_BATCH)]:
            marked = []
            try:
                for request in batch:
                    await asyncio.sleep(0)
                    with _ignoring_not_found():
                        begun = await self._begin(request, options)
                        if isinstance(begun, _Marked):
                            marked.append(begun)
            finally:
                await self._finish(marked)

    async def remove(self, namespace: str, name: str, options: Deletion, *, dry_run: bool = False) -> None:
        """A deletion of the server's own, which bypasses admission. Raises StatusError 404, and 409 if its preconditions don't hold."""
        store, marking = self._store, Marking(self._store, name, options)
        for _ in range(WRITE_ATTEMPTS):
            current = await store.get(namespace, name)
            old = store.decode(current.value)
            marking(old)
            try:
                written = await self.carry_out(marking.plan, current, old, dry_run=dry_run)
            except (ResourceVersionConflict, KeyNotFound):
                continue
            if marking.plan.removes_marked and not dry_run:
                await self._finish([_Marked(current.key, marking.plan.marked or old, written)])
            return
        raise new_conflict(store.resource, name, MODIFIED)

    async def _begin(self, request: WriteRequest, options: Deletion) -> "Written | _Marked":
        """Marks the object or removes it; an object that is to be marked and then removed is returned in between."""
        store = self._store
        why = store.strategy.never_deleted.get(request.name)
        if why is not None and not request.of_collection:
            raise new_forbidden(store.resource, request.name, why)
        request.marking = marking = Marking(store, request.name, options)
        written = await store.write(request, marking)
        if not marking.plan.removes_marked:
            return written
        if request.dry_run:
            return Written(written.value, deleted=True)
        key = store.key(request.namespace, request.name)
        return _Marked(key, marking.plan.marked or marking.old, written, marking.attributes)

    async def carry_out(self, plan: Plan, current: StoredObject, old: Object, *, dry_run: bool) -> Written:
        """The first step of a deletion: marks the object, or removes it if it needs no mark. Raises StorageError."""
        if plan.marked is not None and not equal(plan.marked, old):
            return await self._store.swap(current, plan.marked, dry_run=dry_run)
        if plan.marked is not None or not plan.ends:
            return Written(current.value)  # the object is marked already
        removed = current if dry_run else await self._store.erase(current, old)
        return Written(removed.value, deleted=True)

    async def _finish(self, marked: "Sequence[_Marked]") -> list[Written]:
        """Removes marked objects once their watchers have seen them marked; once begun, a deletion is ended even if its request is
        cancelled. Raises the first StatusError of admission after the others are removed."""
        removed: list[Written] = []
        refused: list[StatusError] = []
        try:
            if marked:
                await self._store.storage.delivered(marked[-1].key)
        finally:
            for obj in marked:
                try:
                    removed.append(await self._remove_marked(obj))
                except StatusError as error:
                    refused.append(error)
        if refused:
            raise refused[0]
        return removed

    async def _remove_marked(self, marked: "_Marked") -> Written:
        """Removes the object, whatever was changed meanwhile: upstream compares nothing but the uid."""
        store = self._store
        while (stored := await store.storage.get(marked.key)) is not None:
            last = marked.obj if stored.value is marked.written.value else store.decode(stored.value)
            if uid(last) != uid(marked.obj):
                break
            if marked.attributes is not None:  # admission decides about the removal as well
                marked.attributes.old_object, marked.attributes.reinvocation = store.decode(stored.value), None
                await store.admission.admit(marked.attributes)
                await store.admission.validate(marked.attributes)
            with suppress(ResourceVersionConflict, KeyNotFound):
                return Written((await store.erase(stored, last)).value, deleted=True)
        return Written(marked.written.value, deleted=True)  # another request has removed the object


class Marking(Struct):
    """The change that a DELETE makes to an object: calling it plans the deletion, and returns the object as it is going to be marked.
    `old` and `plan` are those of the last call, and admission has let it pass with `attributes`."""

    store: "Store"
    name: str
    deletion: Deletion
    old: Object = field(default_factory=dict)
    plan: Plan = Plan(None, ends=False)
    attributes: Attributes | None = None

    def __call__(self, current: Object | None) -> Object:
        """Raises StatusError 409 if the DELETE's preconditions don't hold."""
        assert current is not None
        store, strategy = self.store, self.store.strategy
        refused = deletion.check_preconditions(current, self.deletion, strategy, store.resource, store.kind, self.name)
        if refused:
            raise refused
        self.old, self.plan = current, deletion.plan(current, self.deletion, strategy, store.clock.now())
        return self.plan.marked or current

    def options(self, options: Object) -> Object:
        """DeleteOptions as admission sees them: with what the strategy has decided."""
        strategy = self.store.strategy
        if strategy.ends_in_two_steps:
            return {**options, "preconditions": {"uid": metadata(self.old).get("uid", "")}}
        if self.plan.marked is not None and strategy.graceful and not is_terminating(self.old):
            return {**options, "gracePeriodSeconds": metadata(self.plan.marked)["deletionGracePeriodSeconds"]}
        return options


class _Marked(Struct, frozen=True):
    """An object between the two steps of its deletion: `obj` with its deletionTimestamp, which is stored as `written` and removed next.
    `attributes` are those of the DELETE, about whose removal admission decides again; None for a deletion that bypasses admission."""

    key: str
    obj: Object
    written: Written
    attributes: Attributes | None = None


@contextmanager
def _ignoring_not_found() -> Iterator[None]:
    try:
        yield
    except StatusError as error:
        if error.code != 404:
            raise
