"""The steps of one attempt of the write loop (`Store.write`), in the order in which the loop takes them.

A step that differs between create, update and DELETE asks whether there is an old object, and whether the request marks it.

Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go, pkg/registry/rest/{create,update}.go.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fakeapiserver.admission.interfaces import Attributes, Operation
from fakeapiserver.apimachinery import field as field_errors
from fakeapiserver.apimachinery import managedfields
from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_bad_request,
    new_conflict,
    new_invalid,
    new_not_found,
)
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go.strconv import parse_uint
from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, copied, dedup_owner_references, ensure_namespace, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.attributes import forbidden_error
from fakeapiserver.auth.interfaces import Attributes as AccessAttributes
from fakeapiserver.auth.interfaces import Decision
from fakeapiserver.effort import computed, offloaded
from fakeapiserver.registry.generic import canonical, deletion
from fakeapiserver.registry.generic.empties import restore_empties
from fakeapiserver.registry.generic.legacy_messages import reworded_errors, worded
from fakeapiserver.registry.generic.preparation import fill_system_fields, prepare_for_create, prepare_for_update
from fakeapiserver.registry.generic.validation import Validator, as_reported
from fakeapiserver.registry.generic.write_request import Transform, WriteRequest, Written
from fakeapiserver.storage.interface import KeyExists, ResourceVersionConflict, StoredObject
from fakeapiserver.storage.keys import ROOT

if TYPE_CHECKING:
    from fakeapiserver.registry.generic.store import Store

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
_NEVER_POSTED: Final = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_OPTIONS: Final[Mapping[str, str]] = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions"}
# Errors that are freed in one step.
_FREED_ERRORS: Final = 10_000
_NO_ALLOCATION: Final = nullcontext()


class WriteAttempt(Struct):
    """An attempt: `current` is the stored object and `old` the same decoded (None: the write creates the object), `new` is the object on
    its way into storage. `sent_type` is the apiVersion and kind that the client sent. `newest`: the current object is to be the
    newest. `size`: about how many bytes the write works with."""

    store: "Store"
    request: WriteRequest
    current: StoredObject | None = None
    old: Object | None = None
    new: Object = field(default_factory=dict)
    sent_type: tuple[str, str] = ("", "")
    newest: bool = False
    size: int = 0

    async def read(self, create: bool) -> None:
        """Reads the current object, unless the write is a POST. Raises StatusError 404, unless `create`, and 409 for another uid."""
        store, request = self.store, self.request
        if not request.name:
            return
        key = store.key(request.namespace, request.name)
        plainly = request.dry_run or request.marking is not None
        reading = store.storage.get(key) if plainly else store.storage.get_for_update(key, newest=self.newest)
        self.current = current = await reading
        if current is not None:
            self.size = max(self.size, store.strategy.weight(current.value))
            gvk = None if request.marking is not None else request.kind.gvk
            self.old = old = await offloaded(lambda: store.decode(current.value, gvk), self.size)
            if request.uid_precondition and request.uid_precondition != metadata(old).get("uid"):
                raise self._uid_conflict(old)
            return
        # Before 1.34 upstream compared uids before it reported that the object doesn't exist.
        if request.uid_precondition and (create or not store.strategy.features.at_least("v1.34")):
            raise self._uid_conflict({})
        if not create:
            raise new_not_found(store.named(request), request.name)

    async def transform(self, change: Transform) -> bool:
        """Makes the new object. False: there is nothing to do, since the object is being deleted already."""
        store, request, current = self.store, self.request, self.current
        if request.marking is not None:
            self.new = change(self.old)
            return request.marking.plan.acts
        if current is None:
            self.new = await self._changed(lambda: change(None))
            if not request.name:
                self._drop(_NEVER_POSTED)
            elif not request.dry_run or store.strategy.features.at_least("v1.37"):
                self._drop(("selfLink",))  # until 1.36 on its way into storage, and nothing else
        else:
            # The change gets its own copy, because its result shares containers with its argument.
            self.new = await self._changed(
                lambda: change(store.strategy.with_unshown(store.decode(current.value, request.kind.gvk)))
            )
            self.sent_type = self.new["apiVersion"], self.new["kind"]
        return True

    async def _changed(self, change: Callable[[], Object]) -> Object:
        request, warned = self.request, len(self.request.warnings)

        def step() -> Object:
            del request.warnings[warned:]
            return change()

        return await self.store.versions.settled(step, self.size)

    def unchanged(self) -> Written:
        """The stored object as it is."""
        assert self.current is not None
        return Written(self.current.value)

    async def own_fields(self) -> None:
        """Updates managedFields, which say who owns what has changed. An apply has done so itself, and a DELETE owns nothing."""
        if not self.request.applied and self.request.marking is None:
            self.new = await self.store.versions.settled(self._owned, self.size)

    def _owned(self) -> Object:
        store, request, new = self.store, self.request, self.new
        gvk = request.kind.gvk
        old = None if self.old is None else store.strategy.with_unshown(self.old)
        keeps_live = store.strategy.features.at_least("v1.37")
        if old is not None and request.kind.custom:
            served = store.versions.serves(new)
            new |= {"kind": gvk.kind, "apiVersion": gvk.api_version}
            if not served:  # an object of an unknown type has no owners
                bare = {**new, "metadata": {k: v for k, v in metadata(new).items() if k != "managedFields"}}
                return managedfields.with_owners_of(old, bare) if keeps_live else bare
        operation = store.operation(request.kind, request.manager, request.subresource)
        return managedfields.update(old, new, operation, request.empties, keeps_live=keeps_live)

    def attributes(self) -> Attributes:
        """The write as admission sees it. A DELETE has no new object; its options say how the old one is marked."""
        request, gvk, view = self.request, self.request.kind.gvk, self.request.view
        operation: Operation = "UPDATE" if self.old is not None else "CREATE"
        obj: Object | None = self.new
        old, options = self.old, request.options
        if request.marking is not None:
            operation, obj, options = "DELETE", None, request.marking.options(options)
        elif options:  # a patch is one of the two as well
            options = {**options, "kind": _OPTIONS[operation]}
        if view is not None:
            obj, old = view.sent()
        name = "" if request.of_collection else request.name or str(metadata(self.new).get("name", ""))
        return Attributes(
            operation,
            view.kind if view else gvk,
            GroupVersionResource(gvk.group, gvk.version, self.store.gvr.resource),
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

    def convert(self, attributes: Attributes) -> None:
        """Takes over what admission has changed, and brings both objects into the version that storage takes."""
        store, view, new = self.store, self.request.view, attributes.object or self.new
        self.new = store.versions.to_storage(view.take(self.new, new) if view else new)
        if self.old is None or self.current is None:
            return
        # A built-in kind's other version may have zeroes where the stored one has nothing, so `old` is decoded again.
        if self.request.kind.custom:
            self.old = store.versions.to_storage(self.old)
        elif self.old["apiVersion"] != str(store.gvr.group_version):
            self.old = store.decode(self.current.value)

    def complete_metadata(self) -> None:
        """Fills in the metadata that the server sets. Raises StatusError 400, 409, 422 for an update of another revision, and 422 for one
        of another type."""
        store, request = self.store, self.request
        if self.current is not None:
            self.new = {**self.new, "metadata": dict(metadata(self.new))}
            self._dedup_owners()
            self._check_resource_version(self.current)
            if request.kind.custom and not request.subresource:
                _check_type(self.new, self.sent_type, request.kind.gvk)
            return
        if store.strategy.features.at_least("v1.37"):
            self._drop(_NEVER_POSTED)  # whose manager owns them all the same if a PUT or an apply has sent them
        now = rfc3339(store.clock.now())
        fill_system_fields(
            metadata(self.new),
            store.strategy,
            now,
            store.generate_name,
            store.chance,
            store.collection(request.namespace),
        )
        self._dedup_owners()
        ensure_namespace(metadata(self.new), request.namespace)

    def _drop(self, names: Sequence[str]) -> None:
        for name in names:
            metadata(self.new).pop(name, None)

    def _dedup_owners(self) -> None:
        if warning := dedup_owner_references(metadata(self.new), " after mutating admission happens"):
            self.request.warnings.append(warning)

    def allocated(self) -> AbstractAsyncContextManager[None]:
        """Allocates addresses and ports; an exception in the rest of the attempt releases them. Raises StatusError if none is left."""
        allocation, dry_run = self.store.allocation, self.request.dry_run
        if allocation is None or self.request.subresource:
            return _NO_ALLOCATION
        if self.old is None:
            return allocation.creating(self.new, dry_run)
        return allocation.updating(self.new, self.old, dry_run)

    async def prepare(self) -> None:
        """Drops, keeps or computes the fields that the client can't set."""
        request, strategy, new, old = self.request, self.store.strategy, self.new, self.old
        if old is None:
            await offloaded(lambda: prepare_for_create(request, strategy, new), self.size)
        else:
            await offloaded(lambda: prepare_for_update(request, strategy, new, old), self.size)

    async def validate(self) -> None:
        """Adds the warnings about the object to the request. Raises StatusError 422."""
        store, request = self.store, self.request
        errors, warnings = await computed(self._errors, self.size)
        request.warnings += warnings
        if store.guard is not None:
            errors = await store.guard.errors(request, self.new, self.old, errors)
        if errors:
            await offloaded(lambda: self._refuse(errors), self.size)
        request.warnings += await computed(self._warnings, self.size)

    def _errors(self) -> tuple[ErrorList, list[str]]:
        """The errors in the object, and what upstream warns of before it has found them all."""
        store, strategy, request, new, old = self.store, self.store.strategy, self.request, self.new, self.old
        validator = Validator(strategy.in_version(request.kind.gvk.group_version), request.kind, store.namespaced)
        if old is None:
            return validator.create_errors(new, request.empties), []
        warnings = strategy.validation_warnings(new, old, request.subresource)
        return validator.update_errors(request.subresource, new, old, request.empties), warnings

    def _refuse(self, errors: ErrorList) -> None:
        """Raises StatusError 422, unless none of the errors counts. Frees the errors, of which there may be a million, step by step: an
        error keeps the objects of the calls that it came through until it is answered, in the event loop."""
        refusal = self._refusal(errors)
        while errors:
            del errors[-_FREED_ERRORS:]
        if refusal is not None:
            raise refusal

    def _refusal(self, errors: ErrorList) -> StatusError | None:
        store, new = self.store, self.new
        reported = as_reported(errors, store.strategy, new, self.request.empties, self.request.kind)
        if not reported:
            return None
        return new_invalid(GroupKind(store.kind.group, new["kind"]), str(metadata(new).get("name", "")), reported)

    def _warnings(self) -> list[str]:
        """The warnings about a valid object."""
        strategy, subresource, new, old = self.store.strategy, self.request.subresource, self.new, self.old
        if old is None:
            warnings = strategy.warnings_on_create(new)
        elif subresource == "status":
            warnings = strategy.warnings_on_status_update(new, old)
        else:
            warnings = strategy.warnings_on_update(new, old) if subresource in ("", "scale") else []
        return [worded(warning, strategy.features.version) for warning in warnings]

    async def authorize_creation(self) -> None:
        """Raises StatusError 403 if the write creates an object for a user who may update or patch it, but not create it.

        Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go (withAuthorization)."""
        store, request = self.store, self.request
        if self.current is not None or not request.name or store.authorizer is None:
            return
        wanted = AccessAttributes(
            request.user,
            "create",
            resource_request=True,
            api_group=request.kind.gvk.group,
            api_version=request.kind.gvk.version,
            resource=store.gvr.resource,
            subresource=request.subresource,
            # A namespace is in itself, as in the rights of its other requests.
            namespace=request.name if store.gvr.resource == "namespaces" else request.namespace,
            name=request.name,
        )
        decision, reason = await store.authorizer.authorize(wanted)
        if decision is not Decision.ALLOW:
            error = forbidden_error(wanted, reason)
            error.headers = ()
            raise error

    def changed(self, attributes: Attributes) -> Attributes:
        """The attributes for validating admission: the object as it is going to be stored, in the client's version."""
        obj, view = self.new, self.request.view
        if self.current is not None:
            metadata(obj)["resourceVersion"] = str(self.current.mod_revision)
        if view is not None and self.old is not None:
            attributes.object, attributes.old_object = view.show(obj), view.show(self.old)
            return attributes
        if obj["apiVersion"] != attributes.kind.api_version:
            obj = self.store.versions.converted(obj, attributes.kind)
        attributes.object, attributes.name = obj, attributes.name or str(metadata(obj).get("name", ""))
        return attributes

    # ----------------------------------------------------------------- commits

    async def insert(self) -> Written:
        """Stores a new object. Raises StorageError, and StatusError 400 for a POST with a resourceVersion."""
        store, request, new = self.store, self.request, self.new
        # A name in the path decides where the object is stored, whatever admission has renamed it to.
        key = store.key(request.namespace, request.name or metadata(new)["name"])
        if request.dry_run:
            if await store.storage.get(key) is not None:
                raise KeyExists(key)
            encoded = await store.versions.rehearsed(store.versions.encode(store.versions.as_stored(new)))
            # The client's own revision is shown where storage would put one.
            revision = metadata(new).get("resourceVersion")
            return Written(encoded.with_revision(revision) if revision else encoded.value, created=True)
        if not request.name and _is_revision(metadata(new).get("resourceVersion", "")):
            raise new_bad_request("resourceVersion should not be set on objects to be created")
        stored = await store.storage.create(key, *await offloaded(lambda: store.stored_form(new), self.size))
        store.strategy.on_created(new)
        return Written(stored.value, created=True)

    async def replace(self) -> Written:
        """Stores the object unless nothing has changed, or removes it if it was only waiting for its last finalizer. Raises
        StorageError."""
        store, request, current, new, old = self.store, self.request, self.current, self.new, self.old
        assert current is not None
        assert old is not None
        if deletion.ends_now(new, old) and not store.strategy.deletion_blocked(new):
            # Watchers see the last stored state deleted; the client gets what it sent.
            if not request.dry_run:
                await store.erase(current, old)
            restore_empties(new, request.empties)
            return Written(store.versions.encode(new).with_revision(str(current.mod_revision)))
        metadata(new)["resourceVersion"] = str(current.mod_revision)
        if not request.dry_run:
            metadata(new).pop("selfLink", None)
        if await computed(lambda: self._changes_nothing(current, new, old), self.size):
            if not await store.storage.is_newest(current):
                raise ResourceVersionConflict(current)
            return Written(current.value)
        if request.dry_run:
            return await store.swap(current, new, dry_run=True)
        stored_form = await offloaded(lambda: store.stored_form(new), self.size)
        stored = await store.storage.update(current.key, *stored_form, expected_revision=current.mod_revision)
        store.strategy.on_updated(new, old)
        return Written(stored.value)

    def _changes_nothing(self, current: StoredObject, new: Object, old: Object) -> bool:
        if managedfields.keep_times_if_unchanged(old, new) is not old or not self._is_stored(current, old):
            return False
        is_first_update = current.mod_revision == current.create_revision
        return not (is_first_update and self.store.strategy.shows_more_than_stored(old))

    def _is_stored(self, current: StoredObject, old: Object) -> bool:
        """Reports whether an unchanged object would be stored again as it is. It would not if it was stored in another version or
        encrypted with an older key, nor if the schema has changed since in a way that takes something away or adds a default.
        """
        versions = self.store.versions
        if current.is_stale or current.index.version != versions.stored_version:
            return False
        if not versions.refreshes:
            return True
        stored, again = canonical.decode(current.value, versions.gvk), versions.as_stored(copied(old))
        return {**stored, "apiVersion": "", "kind": ""} == {**again, "apiVersion": "", "kind": ""}

    async def mark(self, attributes: Attributes) -> Written:
        """Marks the object as being deleted, or removes it. Raises StorageError, and StatusError for an object that must stay."""
        marking, current, old = self.request.marking, self.current, self.old
        assert marking is not None
        assert current is not None
        assert old is not None
        if refused := self.store.strategy.check_deletion(old):
            raise refused
        marking.attributes = attributes
        return await self.store.deleter.carry_out(marking.plan, current, old, dry_run=self.request.dry_run)

    # ---------------------------------------------------------------- refusals

    def _check_resource_version(self, current: StoredObject) -> None:
        store, request = self.store, self.request
        sent = str(metadata(self.new).get("resourceVersion", ""))
        if sent in ("", "0"):
            if store.strategy.requires_revision() and request.subresource in ("", "status"):
                detail = "must be specified for an update"
                errors = [field_errors.invalid("metadata.resourceVersion", 0, detail)]
                # Upstream names the resource here, not the kind.
                reported = reworded_errors(errors, store.strategy.features.version)
                raise new_invalid(GroupKind(*store.named(request)), request.name, reported)
        elif sent != str(current.mod_revision):
            try:
                parse_uint(sent)
            except ValueError as error:
                invalid = field_errors.invalid("resourceVersion", sent, str(error))
                raise new_bad_request(f"invalid resource version: {invalid}") from None
            raise new_conflict(store.named(request), request.name, MODIFIED)

    def _uid_conflict(self, old: Object) -> StatusError:
        request = self.request
        key = self.store.key(request.namespace, request.name)
        if request.dry_run:  # upstream then checks above the storage layer that adds the prefix
            key = key.removeprefix(ROOT)
        reason = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {request.uid_precondition}, UID in object meta: {metadata(old).get('uid', '')}"
        )
        return new_conflict(self.store.named(request), request.name, reason)


def _check_type(obj: Object, sent_type: tuple[str, str], gvk: GroupVersionKind) -> None:
    """Raises StatusError 422 for a custom resource whose kind or apiVersion isn't the one of the path."""
    api_version, kind = sent_type
    sent = GroupVersionKind(*GroupVersion.parse(api_version), kind)
    errors = []
    if sent.kind != gvk.kind:
        errors.append(field_errors.invalid("kind", sent.kind, f"must be {gvk.kind}"))
    if sent.group_version != gvk.group_version:
        errors.append(field_errors.invalid("apiVersion", str(sent.group_version), f"must be {gvk.group_version}"))
    if errors:
        raise new_invalid(sent.group_kind, str(metadata(obj).get("name", "")), errors)


def _is_revision(text: str) -> bool:
    """Reports whether upstream's versioner parses the text to anything but 0, which means no revision."""
    try:
        return parse_uint(text) > 0
    except ValueError:
        return False
