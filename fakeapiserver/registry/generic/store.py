"""The generic store: the one write loop, and the reads, of every stored resource.

`Store.write` is the way of every create, update, patch and apply, and of the marking of deleted objects: read the current object,
transform it (with the caller's pure function), own fields, admit, convert, prepare, validate, admit for validation, compare-and-swap.
A write that loses a race starts over. The steps are in write_attempt.py.

Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go, pkg/registry/rest/{create,update,delete}.go.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery import managedfields, names
from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_already_exists,
    new_bad_request,
    new_conflict,
    new_generate_name_conflict,
    new_not_found,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.interfaces import Authorizer
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.clock import Clock
from fakeapiserver.effort import offloaded
from fakeapiserver.registry.generic import canonical
from fakeapiserver.registry.generic.deleter import WRITE_ATTEMPTS, GracefulDeleter
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.interfaces import AdmissionChain, NameGenerator
from fakeapiserver.registry.generic.kind import Kind
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.generic.versions import Versions
from fakeapiserver.registry.generic.write_attempt import MODIFIED, WriteAttempt
from fakeapiserver.registry.generic.write_request import Allocation, Guard, Transform, WriteRequest, Written
from fakeapiserver.storage.interface import (
    Index,
    KeyExists,
    KeyNotFound,
    RequestTooLarge,
    ResourceVersionConflict,
    Storage,
    StoredObject,
    Unreadable,
)

# Upstream: maxNameGenerationCreateAttempts.
_NAME_ATTEMPTS: Final = 8
_MOST_LABELS: Final = 1024
_NO_LABELS: Final[Mapping[str, str]] = {}


def shared_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Returns a mapping with these labels in this order, which equal ones share and which must not be changed."""
    return _shared((*labels.items(),)) if labels else _NO_LABELS


@lru_cache(maxsize=_MOST_LABELS)
def _shared(labels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(labels)


class StoreOptions(Struct, frozen=True, kw_only=True):
    """A stored resource, and what its store works with (upstream: generic.StoreOptions).

    `versions` are the versions in which it is served, `prefix` is where its keys begin (`/registry/pods/`). `find` returns the
    store of another resource, for companions. `guard` may refuse writes, `allocation` hands out addresses and ports. `authorizer` is asked
    whether a user who may update or patch an object may also create it; None: each may."""

    gvr: GroupVersionResource
    versions: Versions
    namespaced: bool
    prefix: str
    strategy: Strategy
    storage: Storage
    admission: AdmissionChain
    clock: Clock
    name_generator: NameGenerator
    chance: Chance = UNSEEDED
    find: "Callable[[GroupResource], Store | None]" = lambda resource: None
    guard: Guard | None = None
    allocation: Allocation | None = None
    authorizer: Authorizer | None = None


class Store:
    """The store of one resource."""

    def __init__(self, options: StoreOptions) -> None:
        self.gvr = options.gvr
        self.versions = options.versions
        self.gvk = options.versions.gvk
        self.namespaced = options.namespaced
        self.prefix = options.prefix
        self.strategy = options.strategy
        self.storage = options.storage
        self.admission = options.admission
        self.clock = options.clock
        self.generate_name = options.name_generator
        self.chance = options.chance
        self.guard = options.guard
        self.allocation = options.allocation
        self.authorizer = options.authorizer
        self.deleter = GracefulDeleter(self)
        self._find = options.find

    @property
    def resource(self) -> GroupResource:
        return self.gvr.group_resource

    @property
    def kind(self) -> GroupKind:
        return self.gvk.group_kind

    def operation(self, kind: Kind, manager: str, subresource: str) -> managedfields.Operation:
        """Returns a write as managedFields see it, now, by `manager` in the version of `kind`."""
        return managedfields.Operation(
            schema=kind.typed,
            manager=manager,
            api_version=kind.gvk.api_version,
            subresource=subresource,
            now=rfc3339(self.clock.now()),
            reset_fields=self.strategy.reset_paths(subresource),
            convert=self.versions.in_version,
            schema_of=self.versions.typed,
        )

    # ------------------------------------------------------------------ reads

    def key(self, namespace: str, name: str) -> str:
        """The key of an object. Raises StatusError 400 for a name that can't be part of a path (upstream: NamespaceKeyFunc)."""
        if problems := names.path_segment_name(name):
            raise new_bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")
        self._check_namespace(namespace)
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name

    def collection(self, namespace: str) -> str:
        """The prefix of a namespace's objects, or of all objects if `namespace` is empty. Raises StatusError 400 as `key`."""
        self._check_namespace(namespace)
        return f"{self.prefix}{namespace}/" if namespace and self.namespaced else self.prefix

    def _check_namespace(self, namespace: str) -> None:
        if namespace in (".", ".."):
            raise new_bad_request(f"Namespace parameter invalid: {go_quote(namespace)}: may not be '{namespace}'")

    def decode(self, value: bytes, gvk: GroupVersionKind | None = None) -> Object:
        """The stored bytes as a fresh object in a served version, by default in the stored one."""
        obj = canonical.decode(value, self.gvk)
        if self.versions.refreshes:
            self.versions.refresh(obj)
        return obj if gvk is None or gvk == self.gvk else self.versions.converted(obj, gvk)

    async def get(self, namespace: str, name: str, group: str | None = None) -> StoredObject:
        """The stored object. Raises StatusError 404, which names the `group` that the client asked for (events have two)."""
        stored = await self.storage.get(self.key(namespace, name))
        if stored is None:
            resource = self.resource if group is None else GroupResource(group, self.gvr.resource)
            raise new_not_found(resource, name)
        return stored

    # ----------------------------------------------------------------- writes

    async def write(self, request: WriteRequest, change: Transform, *, create: bool = False) -> Written:
        """POST (without a name in the request), PUT, every patch, apply, and the marking of an object by DELETE.

        `change` makes the new object of the current one. `create`: an object that doesn't exist is created. Raises StatusError 400, 403,
        404, 409, 422, and whatever `change` raises."""
        warned, newest = len(request.warnings), False
        for attempts in range(1, WRITE_ATTEMPTS + 1):
            del request.warnings[warned:]  # those of an attempt that lost its race
            attempt = WriteAttempt(self, request, newest=newest, size=request.size)
            try:
                await attempt.read(create)
                if not await attempt.transform(change):
                    return attempt.unchanged()
                await attempt.own_fields()
                attributes = attempt.attributes()
                await self.admission.admit(attributes)
                if request.marking is not None:  # a DELETE, of which nothing else is checked
                    await self.admission.validate(attributes)
                    return await attempt.mark(attributes)
                attempt.convert(attributes)
                if self.guard is not None:
                    await self.guard.check(request, attempt.new, attempt.old)
                attempt.complete_metadata()
                async with attempt.allocated():
                    await attempt.prepare()
                    await attempt.validate()
                    await offloaded(partial(self.strategy.canonicalize, attempt.new), attempt.size)
                    await attempt.authorize_creation()
                    await self.admission.validate(attempt.changed(attributes))
                    return await (attempt.insert() if attempt.current is None else attempt.replace())
            except KeyExists as error:
                if not request.name and (attempts == _NAME_ATTEMPTS or not _generates_name(change)):
                    raise await self._already_exists(request, attempt.new, error) from None
            except (ResourceVersionConflict, KeyNotFound):
                newest = True  # another write was faster: read again and start over
            except StatusError:
                if newest or attempt.current is None or await self.storage.is_newest(attempt.current):
                    raise
                newest = True  # it was refused because of a state of the past
            except RequestTooLarge as error:
                raise _too_large(error) from None
        raise new_conflict(self.named(request), request.name, MODIFIED)

    async def amend(
        self,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        *,
        dry_run: bool = False,
        size: int = 0,
    ) -> Written:
        """A change of the server's own that bypasses admission, ownership and validation (upstream: GuaranteedUpdate). An object that
        `change` leaves as it is isn't written. `size`: the bytes that `change` adds. Raises StatusError 404, 409."""
        for _ in range(WRITE_ATTEMPTS):
            current = await self.get(namespace, name)
            changed = change(self.decode(current.value))
            if changed == self.decode(current.value):
                return Written(current.value)
            try:
                return await self.swap(current, changed, dry_run=dry_run, size=size)
            except (ResourceVersionConflict, KeyNotFound):
                continue
            except RequestTooLarge as error:
                raise _too_large(error) from None
        raise new_conflict(self.resource, name, MODIFIED)

    async def swap(self, current: StoredObject, new: Object, *, dry_run: bool, size: int = 0) -> Written:
        """Replaces the object if it is still `current`; a dry run returns what it would be. Raises StorageError."""
        if dry_run:  # the stored object's revision stays
            rehearsed = await self.versions.rehearsed(self.versions.encode(new))
            return Written(rehearsed.with_revision(str(current.mod_revision)))
        form = await offloaded(partial(self.stored_form, new), size)
        stored = await self.storage.update(current.key, *form, expected_revision=current.mod_revision)
        return Written(stored.value)

    async def erase(self, current: StoredObject, last: Object) -> StoredObject:
        """Removes the object, if it is still `current`, with its companions. Returns its last stored state with the deletion's
        revision, as watchers see it. Raises StorageError."""
        removed = await self.storage.delete(current.key, expected_revision=current.mod_revision)
        self.strategy.on_deleted(self.resource, last)
        for resource in self.strategy.companions if not self.strategy.features.at_least("v1.37") else ():
            if companion := self._find(resource):
                with suppress(StatusError):  # the object has no such companion
                    namespace, name = str(metadata(last).get("namespace", "")), metadata(last)["name"]
                    await companion.deleter.remove(namespace, name, Deletion())
        if self.allocation is not None:
            await self.allocation.release(last)
        return removed

    def stored_form(self, obj: Object) -> tuple[bytes, int, Index]:
        """An object as storage takes it: its bytes, the offset of its revision, and its index."""
        encoded = self.versions.encode(self.versions.as_stored(obj))
        return encoded.value, encoded.offset, self.index(obj)

    def index(self, obj: Object) -> Index:
        """The index that is kept next to the bytes: labels and fields for selectors, the uid, the stored version."""
        meta = obj["metadata"]
        labels, uid = meta.get("labels") or {}, meta.get("uid", "")
        return Index(shared_labels(labels), self.strategy.fields_of(obj), uid, self.versions.stored_version)

    # ----------------------------------------------------------------- errors

    def named(self, request: WriteRequest) -> GroupResource:
        """The resource by the name that the client used: events have two groups."""
        return GroupResource(request.kind.gvk.group, self.gvr.resource)

    async def _already_exists(self, request: WriteRequest, obj: Object, error: KeyExists) -> StatusError:
        """409, which says so if the existing object is being deleted. With a generateName, upstream takes any name for a generated
        one."""
        name = error.key.rpartition("/")[2]
        if metadata(obj).get("generateName"):
            refused = new_generate_name_conflict(self.resource, name)
        else:
            refused = new_already_exists(self.named(request), name)
        try:
            stored = await self.storage.get(self.key(request.namespace, name))
        except Unreadable:
            return refused
        if stored is not None and is_terminating(self.decode(stored.value)):
            refused.status["message"] = f"object is being deleted: {refused.message}"
        return refused


def _generates_name(change: Transform) -> bool:
    """Reports whether the server generates the name of the object that a POST sends."""
    meta = metadata(change(None))
    return bool(meta.get("generateName")) and not meta.get("name")


def _too_large(error: RequestTooLarge) -> StatusError:
    """500 without a reason: upstream passes on etcd's message, which clients look for."""
    return status_error(500, "", str(error))
