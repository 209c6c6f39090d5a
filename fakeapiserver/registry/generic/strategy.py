"""The behaviour that is particular to one resource: hooks that the generic store's write loop calls.

Upstream: k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go and pkg/registry/<group>/<resource>/strategy.go.
A resource without a file of its own has `Strategy` itself.
"""

from collections.abc import Mapping, Sequence
from sys import intern
from typing import TYPE_CHECKING, Final

from fakeapiserver import effort
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.quantity_fields import NO_QUANTITIES, QuantityFields, same
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import Clock
from fakeapiserver.registry.generic.field_paths import drop_disabled_fields, touches
from fakeapiserver.registry.generic.legacy_messages import decoding_errors_of
from fakeapiserver.registry.generic.strategy_facts import MetaCheck, NameFunction, StrategyFacts

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties
    from fakeapiserver.registry.generic.deletion import Deletion
    from fakeapiserver.registry.generic.legacy_messages import Reword

Cells = list[object]


# What ResetObjectMetaForStatus keeps.
_KEPT_METADATA: Final = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


class Strategy(StrategyFacts, kw_only=True):
    """The default behaviour: hooks that a subclass in the resource's own file overrides. Facts are in `StrategyFacts`.

    Call order on create: default, (admission), prepare_for_create, validate, canonicalize; on update: default, (admission),
    prepare_for_update, validate_update, canonicalize. Only default, the prepare hooks and canonicalize may change the object."""

    @property
    def reword(self) -> "Reword | None":
        """Words decoding errors as the server's version does; None for the newest."""
        if self.features.version == NEWEST:
            return None

        return decoding_errors_of(self.features.version)

    def for_server(self, clock: Clock) -> "Strategy":
        """The strategy for one server. A strategy that keeps state about a server's objects returns a fresh copy of itself."""
        return self

    def in_version(self, version: GroupVersion) -> "Strategy":
        """The strategy for requests of one served version, for kinds that are validated differently in some."""
        return self

    def weight(self, value: bytes) -> int:
        """Returns as how many bytes an object in JSON counts when it is decided where to compute with it (effort.py)."""
        return effort.weight(value) if self.keeps_texts else len(value)

    def name_rule(self, obj: Object) -> NameFunction:
        """The rule for the object's name in the kind's own validation."""
        return self.validate_name

    def record_user(self, obj: Object, user: UserInfo) -> None:
        """Stores in the object who creates it, for kinds that keep this."""

    def convert_decoded(self, obj: Object, empties: "Empties") -> None:
        """Changes a decoded body as upstream's conversion does, before defaulting. `empties` are the empty lists and maps that
        the body had and decoding has dropped. ValueError: it can't be converted."""

    def default(self, obj: Object, version: str) -> None:
        """Sets the defaults of the served `version` (`v1`), as upstream's defaulting functions do."""

    def default_times(self, obj: Object, now: str) -> None:
        """Sets the fields whose default is the time of the request; `now` is RFC3339."""

    def warnings_before_create(self, obj: Object) -> list[str]:
        """Warnings about what prepare_for_create is going to change."""
        return []

    def prepare_for_create(self, obj: Object) -> None:
        """Drops or computes fields that a client can't set. Must not remove what validation would refuse."""
        for name in self.reset_fields or ():
            obj.pop(name, None)

    def prepare_for_status_create(self, obj: Object) -> None:
        """Does the same as prepare_for_create for an object that a write to its status creates."""
        self.prepare_for_create(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        """Drops or computes fields that a client can't set. Fields that only subresources set are copied from `old`, the stored object."""
        for name in self.reset_fields or ():
            copy_field(name, old, obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Everything but status and metadata is copied from `old`."""
        for name in [name for name in obj if name not in ("status", "metadata", "kind", "apiVersion")]:
            if name not in old:
                del obj[name]
        for name in old:
            if name not in ("status", "metadata"):
                obj[name] = old[name]
        if "metadata" in self.status_reset_fields:
            keep_metadata(obj, old)

    def drop_disabled(self, obj: Object, old: Object | None) -> None:
        """Removes the fields of features that are off, unless `old` has them."""
        if touches(obj, self.disabled_tree):
            drop_disabled_fields(obj, old, self.disabled_fields)

    def requires_revision(self) -> bool:
        """Reports whether an update without a resourceVersion is refused."""
        return not self.allow_unconditional_update and self.features.version > self.unconditional_until

    def takes_loose_addresses(self, obj: Object) -> bool:
        """Reports whether the object's addresses may be written loosely while StrictIPCIDRValidation is off."""
        return self.legacy_addresses

    def validate(self, obj: Object) -> ErrorList:
        """The errors in a new object, except those in its metadata."""
        return []

    def revalidate(self, obj: Object, old: Object) -> ErrorList:
        """The check "spec" of an update: the rules for a new object once more."""
        return self.validate(obj)

    def validate_status(self, obj: Object) -> ErrorList:
        """The check "status" of an update: the errors in a status by itself, for kinds that look at it before metadata."""
        return []

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        """The errors in an update of the main resource, except those in metadata."""
        return []

    def canonicalize(self, obj: Object) -> None:
        """Changes a valid object into the form in which it is stored."""

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        """The check "immutable" of an update: changes of fields that can't change, for kinds that look at them before others."""
        return []

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        """The errors in an update of the status subresource, except those in metadata."""
        return []

    def validate_subresource_update(self, subresource: str, obj: Object, old: Object) -> ErrorList:
        """The errors in an update through a subresource other than status that writes the whole object."""
        return []

    def meta_checks(self, subresource: str) -> tuple[MetaCheck, ...]:
        """The checks of an update, in their order."""
        if subresource:
            return self.status_meta_checks
        if self.validated_twice_until and not self.features.at_least(NEWEST):
            return self._older_meta_checks()
        return self.update_meta_checks

    def _older_meta_checks(self) -> tuple[MetaCheck, ...]:
        twice = self.features.version <= self.validated_twice_until
        return ("create", "spec", *self.update_meta_checks) if twice else self.update_meta_checks

    def validation_warnings(self, obj: Object, old: Object, subresource: str) -> list[str]:
        """Warnings about errors that the object had before an update; they are given with errors as well."""
        return []

    def warnings_on_create(self, obj: Object) -> list[str]:
        return []

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return []

    def warnings_on_status_update(self, obj: Object, old: Object) -> list[str]:
        return []

    def grace_period(self, obj: Object, wanted: int | None) -> int:
        """The seconds that an object gets to end, of a `graceful` kind (upstream: CheckGracefulDelete)."""
        return wanted or 0

    def deletion_blocked(self, obj: Object) -> bool:
        """Reports whether anything besides finalizers keeps a terminating object (a namespace's spec.finalizers)."""
        return False

    def begin_deletion(self, obj: Object, options: "Deletion", now: float) -> None:
        """The first DELETE of a kind that `ends_in_two_steps`: marks in place. Metadata is the caller's own copy."""

    def raises_generation(self, obj: Object, old: Object) -> bool:
        """Reports whether an update raises metadata.generation."""
        return self.has_generation and spec_changed(obj, old, quantity_fields=self.quantity_fields)

    def shows_more_than_stored(self, obj: Object) -> bool:
        """Reports whether reading a new object fills in what its creation didn't store: the first update of any kind stores it then."""
        return False

    def with_unshown(self, old: Object) -> Object:
        """The stored object that updates start from: with the fields that upstream stores and never shows, if a field manager owns them."""
        return old

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        """The top-level fields that this write can't set, and so doesn't own in managedFields."""
        if subresource == "status":
            older = (paths for until, paths in self.status_disowned_until.items() if self.features.version <= until)
            return next(older, self.status_reset_fields)
        # Another subresource may ignore a field; the sender owns the field all the same.
        return () if subresource else self.reset_fields or ()

    def prepare_for_subresource_update(self, subresource: str, obj: Object, old: Object) -> None:
        """Does the same as prepare_for_update for a subresource other than status that writes the whole object."""

    def check_deletion(self, obj: Object) -> StatusError | None:
        """A reason to refuse a deletion, if any."""
        return None

    def fields_of(self, obj: Object) -> dict[str, str]:
        """Field -> the value that field selectors compare."""
        meta = metadata(obj)
        namespace = intern(str(meta.get("namespace", "")))
        fields = {"metadata.name": str(meta.get("name", "")), "metadata.namespace": namespace}
        for selector, path in self.selectable_fields.items():
            fields[selector] = _value_at(obj, path)
        return fields

    def field_labels(self, namespaced: bool) -> Mapping[str, str]:
        """Each field that a selector may name -> the one of `fields_of` that it means."""
        own = {"metadata.name": "metadata.name"} | {label: label for label in self.selectable_fields}
        # Upstream's default accepts metadata.namespace for every kind; kinds with fields of their own only if they are namespaced.
        return own | {"metadata.namespace": "metadata.namespace"} if namespaced or not self.selectable_fields else own

    def table_row(self, obj: Object, now: float) -> Cells | None:
        """The cells of the recorded columns; None for the generic row (name and creation time)."""
        return None

    def table_conditions(self, obj: Object) -> list[Object]:
        """The conditions of the object's table row."""
        return []

    def complete_rows(self, rows: list[Object], objects: Sequence[Object]) -> None:
        """Changes the rows of a list's Table where they depend on other objects of the list, in place."""

    def table_order(self, objects: list[Object]) -> list[Object]:
        """The objects in the order of a table's rows."""
        return objects

    def on_created(self, obj: Object) -> None:
        """Called after a commit (upstream: AfterCreate)."""

    def on_updated(self, obj: Object, old: Object) -> None:
        """Called after a client's write was committed: `obj` is stored where `old` was."""

    def on_deleted(self, resource: GroupResource, obj: Object) -> None:
        """Called after a commit (upstream: AfterDelete)."""


def keep_metadata(obj: Object, old: Object) -> None:
    """Copies the metadata that a write to a subresource can't change (upstream: ResetObjectMetaForStatus)."""
    for name in _KEPT_METADATA:
        copy_field(name, metadata(old), metadata(obj))


def copy_field(name: str, source: Object, target: Object) -> None:
    """Makes a field of `target` what it is in `source`, absent or not."""
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _value_at(obj: Object, path: str) -> str:
    value: object = obj
    for part in path.split("."):
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def spec_changed(
    obj: Object,
    old: Object,
    ignored: Sequence[str] = ("metadata", "status", "kind", "apiVersion"),
    quantity_fields: QuantityFields = NO_QUANTITIES,
) -> bool:
    """Reports whether anything but metadata and status differs, which raises the generation."""
    keys = obj.keys() | old.keys()
    return any(
        not same(obj.get(key), old.get(key), quantity_fields.get(key, NO_QUANTITIES))
        for key in keys
        if key not in ignored
    )
