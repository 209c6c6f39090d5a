"""The generic store: the one write loop, and the reads, of every stored resource.

create, update, every patch, apply and the marking of deleted objects go through here: read the current object, transform it
(with the caller's pure function), own fields, admit, prepare, validate, admit for validation, compare-and-swap. A write that
loses a race starts over.

Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go, pkg/registry/rest/{create,update,delete}.go.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fakeapiserver.admission.interfaces import Attributes, Operation
from fakeapiserver.apimachinery import field as field_errors
from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_already_exists,
    new_bad_request,
    new_conflict,
    new_forbidden,
    new_generate_name_conflict,
    new_invalid,
    new_not_found,
    status_error,
)
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.gvk import (
    GroupKind,
    GroupResource,
    GroupVersion,
    GroupVersionKind,
    GroupVersionResource,
)
from fakeapiserver.apimachinery.meta import (
    Object,
    dedup_owner_references,
    ensure_namespace,
    is_terminating,
    metadata,
    uid,
)
from fakeapiserver.apimachinery.strconv import parse_uint
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.clock import Clock
from fakeapiserver.registry.generic import canonical, deletion
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.empties import restore_empties
from fakeapiserver.registry.generic.interfaces import AdmissionChain, NameGenerator
from fakeapiserver.registry.generic.older_words import reworded_errors
from fakeapiserver.registry.generic.preparation import fill_system_fields, prepare_for_create, prepare_for_update
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.generic.validation import Validator, as_told
from fakeapiserver.registry.generic.versions import Versions
from fakeapiserver.registry.generic.write_request import Allocation, Guard, Transform, WriteRequest, Written
from fakeapiserver.storage.interface import (
    Index,
    KeyExists,
    KeyNotFound,
    RequestTooLarge,
    ResourceVersionConflict,
    Storage,
    StoredObject,
)

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

_METADATA: Final = Path("metadata")
_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
# Upstream: maxNameGenerationCreateAttempts.
_NAME_ATTEMPTS: Final = 8
_NEVER_POSTED: Final = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_OPTIONS: Final[Mapping[str, str]] = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions"}
# A write that loses this many races in a row is answered with a conflict.
_WRITE_ATTEMPTS: Final = 100
# So many objects of a collection are marked before the first of them is removed.
_TOGETHER: Final = 100


class Store:
    """One stored resource.

    `versions` are the versions in which it is served, `prefix` is where its keys begin (`/registry/pods/`). `find` answers the
    store of another resource, for companions. `guard` may refuse writes, `allocation` hands out addresses and ports."""

    def __init__(
        self,
        *,
        gvr: GroupVersionResource,
        versions: Versions,
        namespaced: bool,
        prefix: str,
        strategy: Strategy,
        storage: Storage,
        admission: AdmissionChain,
        clock: Clock,
        name_generator: NameGenerator,
        find: "Callable[[GroupResource], Store | None]" = lambda resource: None,
        guard: Guard | None = None,
        allocation: Allocation | None = None,
    ) -> None:
        self.gvr = gvr
        self.versions = versions
        self.gvk = versions.gvk
        self.namespaced = namespaced
        self.prefix = prefix
        self.strategy = strategy
        self.storage = storage
        self._admission = admission
        self._clock = clock
        self._generate_name = name_generator
        self._find = find
        self._guard = guard
        self.allocation = allocation

    @property
    def resource(self) -> GroupResource:
        return self.gvr.group_resource

    @property
    def kind(self) -> GroupKind:
        return self.gvk.group_kind

    # ------------------------------------------------------------------ reads

    def key(self, namespace: str, name: str) -> str:
        """Where an object is stored. StatusError 400 for a name that can't be part of a path (upstream: NamespaceKeyFunc)."""
        if problems := names.path_segment_name(name):
            raise new_bad_request(f"Name parameter invalid: {field_errors.go_quote(name)}: {';'.join(problems)}")
        self._check_namespace(namespace)
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name

    def collection(self, namespace: str) -> str:
        """The prefix of a namespace's objects, or of all objects if `namespace` is empty. StatusError 400 as `key`."""
        self._check_namespace(namespace)
        return f"{self.prefix}{namespace}/" if namespace and self.namespaced else self.prefix

    def _check_namespace(self, namespace: str) -> None:
        if namespace in (".", ".."):
            raise new_bad_request(
                f"Namespace parameter invalid: {field_errors.go_quote(namespace)}: may not be '{namespace}'"
            )

    def decode(self, value: bytes, gvk: GroupVersionKind | None = None) -> Object:
        """The stored bytes as a fresh object in a served version, by default in the stored one."""
        found = canonical.decode(value, self.gvk)
        if self.versions.refreshes:
            self.versions.refresh(found)
        return found if gvk is None or gvk == self.gvk else self.versions.converted(found, gvk)

    async def get(self, namespace: str, name: str, group: str | None = None) -> StoredObject:
        """The stored object. StatusError 404, which names the `group` that the client asked (events have two)."""
        found = await self.storage.get(self.key(namespace, name))
        if found is None:
            resource = self.resource if group is None else GroupResource(group, self.gvr.resource)
            raise new_not_found(resource, name)
        return found

    # ----------------------------------------------------------------- writes

    async def create(self, request: WriteRequest, obj: Object) -> Written:
        """POST. `obj` is decoded and defaulted; the store may change it. StatusError 400, 403, 409, 422."""
        generate = metadata(obj).get("generateName") if not metadata(obj).get("name") else None
        for attempt in range(1, _NAME_ATTEMPTS + 1):
            candidate = {**obj, "metadata": dict(metadata(obj))}
            if generate:  # another attempt must not share what admission and the strategy change in place
                candidate = {name: deepcopy(value) for name, value in obj.items()}
            try:
                return await self._create(request, candidate)
            except KeyExists as error:
                name = error.key.rpartition("/")[2]
                if attempt == _NAME_ATTEMPTS or not generate:
                    raise await self._already_exists(request, candidate, name) from None
        raise AssertionError("unreachable: the last attempt answers or raises")

    async def _already_exists(self, request: WriteRequest, obj: Object, name: str) -> StatusError:
        """409, which says so if the existing object is being deleted. With a generateName, upstream takes any name for a generated
        one."""
        if metadata(obj).get("generateName"):
            error = new_generate_name_conflict(self.resource, name)
        else:
            error = new_already_exists(self._named(request), name)
        found = await self.storage.get(self.key(request.namespace, name))
        if found is not None and is_terminating(self.decode(found.value)):
            error.status["message"] = f"object is being deleted: {error.message}"
        return error

    async def update(self, request: WriteRequest, transform: Transform, *, create: bool = False) -> Written:
        """PUT, every patch and apply. `create`: an absent object is created (apply, and kinds that allow it on PUT).

        StatusError 400, 403, 404, 409, 422, and whatever `transform` raises."""
        warned = len(request.warnings)
        for _ in range(_WRITE_ATTEMPTS):
            del request.warnings[warned:]  # those of an attempt that lost its race
            key = self.key(request.namespace, request.name)
            current = await (self.storage.get(key) if request.dry_run else self.storage.get_for_update(key))
            try:
                if current is not None:
                    return await self._update(request, transform, current)
                # Before 1.34 upstream compared uids before it said that there is nothing.
                if request.uid_precondition and (create or not self.strategy.features.at_least("v1.34")):
                    raise self._uid_conflict(request, {})
                if not create:
                    raise new_not_found(self._named(request), request.name)
                return await self._create(request, await self.versions.settled(lambda: transform(None)))
            except (ResourceVersionConflict, KeyNotFound, KeyExists):
                continue  # another write was faster: read again and start over
        raise new_conflict(self._named(request), request.name, _MODIFIED)

    async def _create(self, request: WriteRequest, obj: Object) -> Written:
        # What a PUT or an apply makes loses its link only on its way into storage.
        for name in _NEVER_POSTED if not request.name else () if request.dry_run else ("selfLink",):
            obj["metadata"].pop(name, None)
        if not request.applied:
            sent = obj
            obj = await self.versions.settled(lambda: self._own(request, None, sent))
        attributes = self._attributes(request, "CREATE", obj, None)
        await self._admission.admit(attributes)
        obj = self.versions.to_storage(attributes.object or obj)
        if self._guard is not None:
            await self._guard.check(request, obj, None)
        fill_system_fields(metadata(obj), self.strategy, rfc3339(self._clock.now()), self._generate_name)
        self._dedup_owners(obj, request)
        ensure_namespace(metadata(obj), request.namespace)
        if self.allocation is None or request.subresource:
            return await self._insert(request, attributes, obj)
        async with self.allocation.creating(obj, request.dry_run):
            return await self._insert(request, attributes, obj)

    def _warn(self, request: WriteRequest, warnings: list[str]) -> None:
        """In the words of the server's version."""
        reword = self.strategy.reword if warnings else None
        request.warnings += warnings if reword is None else map(reword, warnings)

    async def _insert(self, request: WriteRequest, attributes: Attributes, obj: Object) -> Written:
        prepare_for_create(request, self.strategy, obj)
        errors = self._validator(request).create_errors(obj, request.empties)
        if self._guard is not None:
            errors = await self._guard.errors(request, obj, None, errors)
        self._refuse(obj, errors, request.empties)
        self._warn(request, self.strategy.warnings_on_create(obj))
        self.strategy.canonicalize(obj)
        await self._admission.validate(self._changed(attributes, obj))
        encoded = self.versions.encode(self.versions.as_stored(obj))
        # A name in the path decides where the object is stored, whatever admission has renamed it to.
        key = self.key(request.namespace, request.name or metadata(obj)["name"])
        if request.dry_run:
            if await self.storage.get(key) is not None:
                raise KeyExists(key)
            encoded = await self.versions.rehearsed(encoded)
            # The client's own revision stands where storage would put one.
            revision = metadata(obj).get("resourceVersion")
            return Written(encoded.with_revision(revision) if revision else encoded.value, created=True)
        if not request.name and _is_revision(metadata(obj).get("resourceVersion", "")):
            raise new_bad_request("resourceVersion should not be set on objects to be created")
        try:
            stored = await self.storage.create(key, encoded.value, encoded.offset, self.index(obj))
        except RequestTooLarge as error:
            raise _too_large(error) from None
        self.strategy.on_created(obj)
        return Written(stored.value, created=True)

    async def _update(self, request: WriteRequest, transform: Transform, current: StoredObject) -> Written:
        old = self.decode(current.value, request.kind.gvk)
        if request.uid_precondition and request.uid_precondition != metadata(old).get("uid"):
            raise self._uid_conflict(request, old)
        # The transform gets its own copy, because its result shares containers with its argument.
        new = await self.versions.settled(
            lambda: transform(self.strategy.with_unshown(self.decode(current.value, request.kind.gvk)))
        )
        refused = _another_type(request, new)
        if not request.applied:
            changed = new
            new = await self.versions.settled(lambda: self._own(request, self.strategy.with_unshown(old), changed))
        attributes = self._attributes(request, "UPDATE", new, old)
        await self._admission.admit(attributes)
        assert attributes.object is not None
        new = request.view.take(new, attributes.object) if request.view else attributes.object
        new = self.versions.to_storage(new)
        # A built-in kind's other version may have zeroes where the stored one has nothing, so `old` is decoded again.
        if request.kind.custom:
            old = self.versions.to_storage(old)
        elif old["apiVersion"] != str(self.gvr.group_version):
            old = self.decode(current.value)
        if self._guard is not None:
            await self._guard.check(request, new, old)
        new = {**new, "metadata": dict(metadata(new))}
        self._dedup_owners(new, request)
        self._check_resource_version(new, current, request)
        if refused:
            raise refused
        if self.allocation is None or request.subresource:
            return await self._revise(request, attributes, current, new, old)
        async with self.allocation.updating(new, old, request.dry_run):
            return await self._revise(request, attributes, current, new, old)

    async def _revise(
        self, request: WriteRequest, attributes: Attributes, current: StoredObject, new: Object, old: Object
    ) -> Written:
        prepare_for_update(request, self.strategy, new, old)
        request.warnings += self.strategy.validation_warnings(new, old, request.subresource)
        errors = self._validator(request).update_errors(request.subresource, new, old, request.empties)
        if self._guard is not None:
            errors = await self._guard.errors(request, new, old, errors)
        self._refuse(new, errors, request.empties)
        if request.subresource in ("", "scale"):
            self._warn(request, self.strategy.warnings_on_update(new, old))
        elif request.subresource == "status":
            self._warn(request, self.strategy.warnings_on_status_update(new, old))
        self.strategy.canonicalize(new)
        metadata(new)["resourceVersion"] = str(current.mod_revision)
        if request.view is not None:
            attributes.object, attributes.old_object = request.view.show(new), request.view.show(old)
        else:
            self._changed(attributes, new)
        await self._admission.validate(attributes)
        return await self._swap(request, current, new, old)

    async def _swap(self, request: WriteRequest, current: StoredObject, new: Object, old: Object) -> Written:
        """Writes the object unless nothing has changed, or removes it if it was only waiting for its last finalizer."""
        if deletion.ends_now(new, old) and not self.strategy.deletion_blocked(new):
            # Watchers see the last stored state deleted; the client gets what it sent.
            if not request.dry_run:
                await self._remove(current, old)
            restore_empties(new, request.empties)
            return Written(self.versions.encode(new).with_revision(str(current.mod_revision)))
        from fakeapiserver.apimachinery import managedfields

        metadata(new)["resourceVersion"] = str(current.mod_revision)
        if not request.dry_run:
            metadata(new).pop("selfLink", None)
        if managedfields.keep_times_if_unchanged(old, new) is old and self._is_stored(current, old):
            created = current.mod_revision == current.create_revision
            if not (created and self.strategy.shows_more_than_stored(old)):
                return Written(current.value)
        written = await self._put(current, new, request.dry_run)
        if not request.dry_run:
            self.strategy.on_updated(new, old)
        return written

    def _is_stored(self, current: StoredObject, old: Object) -> bool:
        """Whether an unchanged object would be stored again as it is. It would not if it was stored in another version, nor if
        the schema has changed since in a way that takes something away or adds a default."""
        if current.index.version != self.versions.stored_version:
            return False
        if not self.versions.refreshes:
            return True
        stored, again = canonical.decode(current.value, self.gvk), self.versions.as_stored(deepcopy(old))
        return {**stored, "apiVersion": "", "kind": ""} == {**again, "apiVersion": "", "kind": ""}

    # ----------------------------------------------------------------- delete

    async def delete(self, request: WriteRequest, options: Deletion) -> Written:
        """DELETE: removes the object, or marks it as waiting for its finalizers or its grace period. StatusError 403, 404, 409."""
        begun = await self._begin_deletion(request, options)
        return begun if isinstance(begun, Written) else (await self._end_deletions([begun]))[0]

    async def delete_collection(self, requests: Sequence[WriteRequest], options: Deletion) -> None:
        """Deletes each object as `delete` does; an object that is already gone is no error. StatusError 403, 409: the objects before the
        refused one are deleted, those after it are not."""
        for batch in (requests[i : i + _TOGETHER] for i in range(0, len(requests), _TOGETHER)):
            marked = []
            try:
                for request in batch:
                    with _ignoring_not_found():
                        begun = await self._begin_deletion(request, options)
                        if isinstance(begun, _Marked):
                            marked.append(begun)
            finally:
                await self._end_deletions(marked)

    async def _begin_deletion(self, request: WriteRequest, options: Deletion) -> "Written | _Marked":
        why = self.strategy.never_deleted.get(request.name)
        if why is not None and not request.of_collection:
            raise new_forbidden(self.resource, request.name, why)
        for _ in range(_WRITE_ATTEMPTS):
            current = await self.get(request.namespace, request.name, request.kind.gvk.group)
            try:
                return await self._delete(request, options, current)
            except (ResourceVersionConflict, KeyNotFound):
                continue
        raise new_conflict(self._named(request), request.name, _MODIFIED)

    async def _delete(self, request: WriteRequest, options: Deletion, current: StoredObject) -> "Written | _Marked":
        old = self.decode(current.value)
        refused = deletion.check_preconditions(old, options, self.strategy, self.resource, self.kind, request.name)
        if refused:
            raise refused
        plan = self._plan(old, options)
        if plan.marked is None and not plan.ends:
            return Written(current.value)
        attributes = self._attributes(request, "DELETE", None, old)
        if self.strategy.ends_in_two_steps:
            attributes.options = {**attributes.options, "preconditions": {"uid": metadata(old).get("uid", "")}}
        elif plan.marked is not None and self.strategy.graceful and not is_terminating(old):
            period = metadata(plan.marked)["deletionGracePeriodSeconds"]
            attributes.options = {**attributes.options, "gracePeriodSeconds": period}
        await self._admission.admit(attributes)
        await self._admission.validate(attributes)
        if refused := self.strategy.check_deletion(old):
            raise refused

        async def admit_again(marked: Object) -> None:
            attributes.old_object, attributes.reinvocation = marked, None
            await self._admission.admit(attributes)
            await self._admission.validate(attributes)

        return await self._carry_out(plan, current, old, request.dry_run, admit_again)

    # ------------------------------------------------- writes of the server's own

    async def amend(
        self, namespace: str, name: str, change: Callable[[Object], Object], *, dry_run: bool = False
    ) -> Written:
        """A change that bypasses admission, ownership and validation (upstream: GuaranteedUpdate); one that changes nothing isn't
        written. StatusError 404, 409."""
        for _ in range(_WRITE_ATTEMPTS):
            current = await self.get(namespace, name)
            changed = change(self.decode(current.value))
            if changed == self.decode(current.value):
                return Written(current.value)
            try:
                return await self._put(current, changed, dry_run)
            except (ResourceVersionConflict, KeyNotFound):
                continue
        raise new_conflict(self.resource, name, _MODIFIED)

    async def remove(self, namespace: str, name: str, options: Deletion, *, dry_run: bool = False) -> None:
        """A deletion that bypasses admission. StatusError 404, and 409 if its preconditions don't hold."""
        for _ in range(_WRITE_ATTEMPTS):
            current = await self.get(namespace, name)
            old = self.decode(current.value)
            refused = deletion.check_preconditions(old, options, self.strategy, self.resource, self.kind, name)
            if refused:
                raise refused
            try:
                begun = await self._carry_out(self._plan(old, options), current, old, dry_run, _admitted)
            except (ResourceVersionConflict, KeyNotFound):
                continue
            if isinstance(begun, _Marked):
                await self._end_deletions([begun])
            return
        raise new_conflict(self.resource, name, _MODIFIED)

    # -------------------------------------------------------- steps of a deletion

    def _plan(self, old: Object, options: Deletion) -> deletion.Plan:
        strategy, now = self.strategy, self._clock.now()
        if not strategy.ends_in_two_steps:
            return deletion.plan(old, options, strategy, now)
        if not is_terminating(old):
            new = {**old, "metadata": dict(metadata(old))}
            strategy.begin_deletion(new, options, now)
            return deletion.Plan(new, ends=False)
        if strategy.deletion_blocked(old):
            return deletion.Plan(None, ends=False)
        return deletion.plan(old, options, strategy, now)

    async def _carry_out(
        self,
        plan: deletion.Plan,
        current: StoredObject,
        old: Object,
        dry_run: bool,
        admit_again: Callable[[Object], Awaitable[None]],
    ) -> "Written | _Marked":
        """Marks the object or removes it; an object that is to be marked and then removed is returned in between."""
        if plan.marked is None and not plan.ends:
            return Written(current.value)  # it is being deleted already
        if plan.marked is not None:
            written = Written(current.value) if plan.marked == old else await self._put(current, plan.marked, dry_run)
            if not plan.ends:
                return written
            if dry_run:
                return Written(written.value, deleted=True)
            return _Marked(current.key, plan.marked, written, admit_again)
        removed = current if dry_run else await self._remove(current, old)
        return Written(removed.value, deleted=True)

    async def _end_deletions(self, marked: "Sequence[_Marked]") -> list[Written]:
        """Removes marked objects once their watchers have seen them marked; once begun, a deletion is ended even if its request is
        cancelled. Raises the first StatusError of admission after the others are removed."""
        ended: list[Written] = []
        refused: list[StatusError] = []
        try:
            if marked:
                await self.storage.delivered(marked[-1].key)
        finally:
            for step in marked:
                try:
                    ended.append(await self._end_deletion(step))
                except StatusError as error:
                    refused.append(error)
        if refused:
            raise refused[0]
        return ended

    async def _end_deletion(self, marked: "_Marked") -> Written:
        """Whatever was changed meanwhile, the object goes (upstream compares nothing but the uid)."""
        while (found := await self.storage.get(marked.key)) is not None:
            last = marked.obj if found.value is marked.written.value else self.decode(found.value)
            if uid(last) != uid(marked.obj):
                break
            await marked.admit_again(self.decode(found.value))
            with suppress(ResourceVersionConflict, KeyNotFound):
                return Written((await self._remove(found, last)).value, deleted=True)
        return Written(marked.written.value, deleted=True)  # another request has removed it

    async def _put(self, current: StoredObject, new: Object, dry_run: bool) -> Written:
        """Compare-and-swap, or what it would write if this is a dry run."""
        if dry_run:
            return Written(await self._rehearsed(new, current.mod_revision))
        encoded = self.versions.encode(self.versions.as_stored(new))
        try:
            stored = await self.storage.update(
                current.key, encoded.value, encoded.offset, self.index(new), expected_revision=current.mod_revision
            )
        except RequestTooLarge as error:
            raise _too_large(error) from None
        return Written(stored.value)

    async def _rehearsed(self, new: Object, revision: int) -> bytes:
        """The answer to a dry run: the new object with the stored object's revision."""
        return (await self.versions.rehearsed(self.versions.encode(new))).with_revision(str(revision))

    async def _remove(self, current: StoredObject, last: Object) -> StoredObject:
        """Removes the object; answers its last stored state with the deletion's revision, as watchers see it."""
        removed = await self.storage.delete(current.key, expected_revision=current.mod_revision)
        self.strategy.on_deleted(self.resource, last)
        for resource in self.strategy.companions:
            if companion := self._find(resource):
                with suppress(StatusError):  # it has none
                    await companion.remove(str(metadata(last).get("namespace", "")), metadata(last)["name"], Deletion())
        if self.allocation is not None:
            await self.allocation.release(last)
        return removed

    # ---------------------------------------------------------------- details

    def index(self, obj: Object) -> Index:
        """What is kept beside the bytes: labels and fields for selectors, the uid, the stored version."""
        meta = obj["metadata"]
        labels, uid = meta.get("labels") or {}, meta.get("uid", "")
        return Index(labels, self.strategy.fields_of(obj), uid, self.versions.stored_version)

    def _dedup_owners(self, obj: Object, request: WriteRequest) -> None:
        if warning := dedup_owner_references(metadata(obj), " after mutating admission happens"):
            request.warnings.append(warning)

    def _own(self, request: WriteRequest, old: Object | None, new: Object) -> Object:
        """The object with managedFields that say who owns what has changed."""
        from fakeapiserver.apimachinery import managedfields

        gvk = request.kind.gvk
        if old is not None and request.kind.custom:
            served = self.versions.serves(new)
            new |= {"kind": gvk.kind, "apiVersion": str(gvk.group_version)}
            if not served:  # an object of an unknown type has no owners
                return {**new, "metadata": {k: v for k, v in metadata(new).items() if k != "managedFields"}}
        return managedfields.update(
            old,
            new,
            schema=request.kind.typed,
            manager=request.manager,
            api_version=str(request.kind.gvk.group_version),
            subresource=request.subresource,
            now=rfc3339(self._clock.now()),
            reset_fields=self.strategy.reset_paths(request.subresource),
            convert=self.versions.in_version,
            schema_of=self.versions.typed,
            empties=request.empties,
        )

    def _named(self, request: WriteRequest) -> GroupResource:
        """The resource by the name that the client used: events have two groups."""
        return GroupResource(request.kind.gvk.group, self.gvr.resource)

    def _attributes(
        self, request: WriteRequest, operation: Operation, obj: Object | None, old: Object | None
    ) -> Attributes:
        gvk, view, options = request.kind.gvk, request.view, request.options
        if view is not None:
            obj, old = view.sent()
        name = "" if request.of_collection else request.name or str(metadata(obj or {}).get("name", ""))
        if operation != "DELETE" and options:  # a patch is one of the two as well
            options = {**options, "kind": _OPTIONS[operation]}
        return Attributes(
            operation,
            view.kind if view else gvk,
            GroupVersionResource(gvk.group, gvk.version, self.gvr.resource),
            request.subresource,
            request.namespace,
            name,
            obj,
            old,
            request.user,
            request.dry_run,
            options,
            request.warnings,
            annotations=request.annotations,
            empties=request.empties,
        )

    def _changed(self, attributes: Attributes, obj: Object) -> Attributes:
        """The attributes for validating admission: the object as it is going to be stored, in the client's version."""
        if obj["apiVersion"] != str(attributes.kind.group_version):
            obj = self.versions.converted(obj, attributes.kind)
        attributes.object, attributes.name = obj, attributes.name or str(metadata(obj).get("name", ""))
        return attributes

    def _check_resource_version(self, new: Object, current: StoredObject, request: WriteRequest) -> None:
        wanted = str(metadata(new).get("resourceVersion", ""))
        if wanted in ("", "0"):
            if not self.strategy.allow_unconditional_update and request.subresource in ("", "status"):
                detail = "must be specified for an update"
                errors = [field_errors.invalid("metadata.resourceVersion", 0, detail)]
                # Upstream names the resource here, not the kind.
                told = reworded_errors(errors, self.strategy.features.version)
                raise new_invalid(GroupKind(*self._named(request)), request.name, told)
            return
        if wanted != str(current.mod_revision):
            try:
                parse_uint(wanted)
            except ValueError as error:
                invalid = field_errors.invalid("resourceVersion", wanted, str(error))
                raise new_bad_request(f"invalid resource version: {invalid}") from None
            raise new_conflict(self._named(request), request.name, _MODIFIED)

    def _uid_conflict(self, request: WriteRequest, old: Object) -> StatusError:
        key = self.key(request.namespace, request.name)
        if request.dry_run:  # upstream then checks above the storage layer that adds the prefix
            key = key.removeprefix("/registry")
        reason = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {request.uid_precondition}, UID in object meta: {metadata(old).get('uid', '')}"
        )
        return new_conflict(self._named(request), request.name, reason)

    def _validator(self, request: WriteRequest) -> Validator:
        return Validator(self.strategy.in_version(request.kind.gvk.group_version), request.kind, self.namespaced)

    def _refuse(self, obj: Object, errors: ErrorList, empties: "Empties") -> None:
        if errors and (told := as_told(errors, self.strategy, obj, empties)):
            raise new_invalid(GroupKind(self.kind.group, obj["kind"]), str(metadata(obj).get("name", "")), told)


def _another_type(request: WriteRequest, obj: Object) -> StatusError | None:
    """422 for a custom resource whose kind or apiVersion isn't the one of the path; None for a subresource, which isn't checked."""
    wanted = request.kind.gvk
    if not request.kind.custom or request.subresource:
        return None
    found = GroupVersionKind(*GroupVersion.parse(obj["apiVersion"]), obj["kind"])
    errors = []
    if found.kind != wanted.kind:
        errors.append(field_errors.invalid("kind", found.kind, f"must be {wanted.kind}"))
    if found.group_version != wanted.group_version:
        errors.append(field_errors.invalid("apiVersion", str(found.group_version), f"must be {wanted.group_version}"))
    return new_invalid(found.group_kind, str(metadata(obj).get("name", "")), errors) if errors else None


class _Marked(Struct, frozen=True):
    """An object between the two steps of its deletion: `obj` with its deletionTimestamp, which is stored as `written` and removed next.
    `admit_again` asks admission about the removal."""

    key: str
    obj: Object
    written: Written
    admit_again: Callable[[Object], Awaitable[None]]


@contextmanager
def _ignoring_not_found() -> Iterator[None]:
    try:
        yield
    except StatusError as error:
        if error.code != 404:
            raise


async def _admitted(marked: Object) -> None:
    """Stands in for admission where it isn't asked."""


def _too_large(error: RequestTooLarge) -> StatusError:
    """500 without a reason: upstream passes on etcd's message, which clients look for."""
    return status_error(500, "", str(error))


def _is_revision(text: str) -> bool:
    """Whether upstream's versioner parses the text to anything but 0, which stands for no revision."""
    try:
        return parse_uint(text) > 0
    except ValueError:
        return False
