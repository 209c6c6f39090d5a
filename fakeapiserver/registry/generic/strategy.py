"""What one resource does of its own, around the generic store's one write loop.

Upstream: k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go and pkg/registry/<group>/<resource>/strategy.go.
A resource without a file of its own gets `Strategy` as it stands.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import Clock
from fakeapiserver.registry.generic.field_paths import FieldTree, drop_disabled_fields, touches

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties
    from fakeapiserver.registry.generic.deletion import Deletion
    from fakeapiserver.registry.generic.older_words import Reword

NameFunction = Callable[[str, bool], list[str]]
Cells = list[object]
MetaCheck = Literal["create", "update", "spec", "status", "immutable", "own"]


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


class Strategy(Struct, kw_only=True):
    """Default behaviour; a resource's table row sets the facts, a subclass in the resource's own file adds behaviour.

    The call order on create: default, (admission), prepare_for_create, validate; on update: default, (admission),
    prepare_for_update, validate_update. Only default, the prepare hooks and canonicalize may change the object."""

    validate_name: NameFunction = names.name_is_dns_subdomain
    # generateName gets a suffix (upstream: names.SimpleNameGenerator); else it is the name.
    generates_names: bool = True
    # A PUT to a name that doesn't exist creates it (upstream: AllowCreateOnUpdate).
    allow_create_on_update: bool = False
    # An apply to the status of an object that doesn't exist creates it, too (upstream: forceAllowCreate is handed on).
    status_apply_creates: bool = False
    # A PUT without resourceVersion overwrites (upstream: AllowUnconditionalUpdate).
    allow_unconditional_update: bool = True
    # metadata.generation starts at 1 and rises when anything but metadata and status changes.
    has_generation: bool = False
    # Fields in which an empty list isn't none: sending one raises the generation (where upstream asks reflect.DeepEqual).
    generation_counts_empties: tuple[str, ...] = ()
    # The rules of its updates tell an empty list or map from none (where upstream asks for nil).
    tells_empties: bool = False
    # A change of `disabled_fields` raises it too, before they are dropped.
    generation_counts_disabled: bool = False
    # Fields that the main resource's writes can't set (upstream: GetResetFields). None: status, if it is a subresource.
    reset_fields: tuple[str, ...] | None = None
    # As reset_fields, of the status subresource.
    status_reset_fields: tuple[str, ...] = ("spec",)
    # The last version (`v1.35`) in which a status write didn't own others than those -> which.
    status_disowned_until: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # DELETE answers the object instead of a Status (upstream: Store.ReturnDeletedObject).
    returns_deleted_object: bool = False
    # Upstream keeps the objects in its watch cache, which tells clients when to come again.
    cached: bool = True
    # Its objects get time to end (upstream: RESTGracefulDeleteStrategy); grace_period tells how much.
    graceful: bool = False
    # The first DELETE only begins the deletion, in a way of the kind's own (begin_deletion).
    ends_in_two_steps: bool = False
    # What conversion puts into the spec of an object that has nothing, as bookmarks show it.
    blank_spec: Mapping[str, object] = field(default_factory=dict)
    # Annotations that conversion makes of internal fields, blank; metadata asked for alone lacks them.
    converted_annotations: Mapping[str, str] = field(default_factory=dict)
    # A watch of Tables tells the columns with each event (upstream's printer of the kind knows no NoHeaders).
    repeats_columns: bool = False
    # What deleting without a propagation policy means (upstream: DefaultGarbageCollectionPolicy); or Unsupported.
    default_propagation: str = "Background"
    # Feature gate -> fields that are dropped from whatever is written while it is off (drop_fields tells what a path is),
    # unless the stored object has one of them.
    gated_fields: Mapping[str, Sequence[FieldPath]] = field(default_factory=dict)
    # Gate -> the first version (`v1.35`) in which it keeps these fields out; older ones take them whatever it says.
    gated_since: Mapping[str, str] = field(default_factory=dict)
    # Its addresses may be written loosely while StrictIPCIDRValidation is off.
    legacy_addresses: bool = False
    # The features of the server, and those of `gated_fields` that it drops, gate by gate.
    features: FeatureGates = DEFAULT_GATES
    disabled_fields: tuple[Sequence[FieldPath], ...] = ()
    # The names in these, nested: most objects have none of them, which a look at this tells.
    disabled_tree: FieldTree = field(default_factory=dict)
    # Finalizers must be qualified or standard ones (not where the kind's validation comes from apimachinery).
    kube_finalizers: bool = True
    # In which order the kind's own validation looks at a new object; whether at its generateName beside the name.
    create_checks: tuple[MetaCheck, ...] = ("create", "spec")
    validates_generate_name: bool = True
    # In which order the kind's own validation looks at metadata on update, and where `revalidate` comes in between if it
    # does ("spec"), a status by itself ("status") or what can't change ("immutable"); causes show it. validate_update or
    # validate_status_update comes last, or where "own" stands.
    update_meta_checks: tuple[MetaCheck, ...] = ("update",)
    status_meta_checks: tuple[MetaCheck, ...] = ("update",)
    # The last version (`v1.35`) in which an update's rules were asked twice, as both layers asked; causes show it.
    validated_twice_until: str = ""
    # What no DELETE by name removes, and why not (that of a collection does).
    never_deleted: Mapping[str, str] = field(default_factory=dict)
    # A warning for deletions that say nothing about dependents.
    deletion_warning: str = ""
    # Resources whose object of the same name goes along (upstream: the Endpoints of a Service).
    companions: tuple[GroupResource, ...] = ()
    # What field selectors can select by, beside metadata.name and metadata.namespace: selector -> path in the object.
    selectable_fields: Mapping[str, str] = field(default_factory=dict)
    # How a selector by another field is refused, where a kind selects by fields of its own; {kind} is the served one.
    unknown_field: str = "field label not supported: {}"

    @property
    def reword(self) -> "Reword | None":
        """The words of the server's version, if it isn't the newest."""
        if self.features.version == NEWEST:
            return None
        from fakeapiserver.registry.generic.older_words import reworded

        return reworded(self.features.version)

    def for_server(self, clock: Clock) -> "Strategy":
        """The strategy of one server: what keeps state of a server's objects answers a fresh copy of itself."""
        return self

    def in_version(self, version: GroupVersion) -> "Strategy":
        """The strategy for requests of one served version, where upstream is stricter in some than in others."""
        return self

    def name_rule(self, obj: Object) -> NameFunction:
        """What the kind's own validation asks of the object's name."""
        return self.validate_name

    def record_user(self, obj: Object, user: UserInfo) -> None:
        """Notes in place who creates the object, for kinds that tell."""

    def convert_decoded(self, obj: Object, empties: "Empties") -> None:
        """What upstream's conversion makes of a body that was decoded, in place, before its defaults. `empties` are the empty lists
        and maps that it has lost. ValueError: it can't be converted."""

    def default(self, obj: Object, version: str) -> None:
        """Sets in place what upstream's defaulting functions of this served version set."""

    def default_times(self, obj: Object, now: str) -> None:
        """Sets in place what is the time of the request by default; `now` is RFC3339."""

    def warnings_before_create(self, obj: Object) -> list[str]:
        """Of what prepare_for_create is going to change."""
        return []

    def prepare_for_create(self, obj: Object) -> None:
        """Drops or computes fields that a client can't set; must not remove what would be a validation error."""
        for name in self.reset_fields or ():
            obj.pop(name, None)

    def prepare_for_status_create(self, obj: Object) -> None:
        """As prepare_for_create, of an object that a write to its status creates."""
        self.prepare_for_create(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        """As prepare_for_create, from the stored object: fields of subresources stay as they are."""
        for name in self.reset_fields or ():
            copy_field(name, old, obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keeps everything but status and metadata as it is stored."""
        for name in [name for name in obj if name not in ("status", "metadata", "kind", "apiVersion")]:
            if name not in old:
                del obj[name]
        for name in old:
            if name not in ("status", "metadata"):
                obj[name] = old[name]
        if "metadata" in self.status_reset_fields:
            keep_metadata(obj, old)

    def drop_disabled(self, obj: Object, old: Object | None) -> None:
        """Removes the fields of features that are off, in place."""
        if touches(obj, self.disabled_tree):
            drop_disabled_fields(obj, old, self.disabled_fields)

    def validate(self, obj: Object) -> ErrorList:
        return []

    def revalidate(self, obj: Object, old: Object) -> ErrorList:
        """As `validate`, of an update of a kind whose checks look at "spec" again."""
        return self.validate(obj)

    def validate_status(self, obj: Object) -> ErrorList:
        """What is wrong with a status by itself, of a kind that looks at it before metadata."""
        return []

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return []

    def canonicalize(self, obj: Object) -> None:
        """What is set in an object once it is found valid, as reading the stored one would."""

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        """Fields that can't change, of kinds whose validation looks at them in between."""
        return []

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return []

    def validate_subresource_update(self, subresource: str, obj: Object, old: Object) -> ErrorList:
        """As validate_update, for a subresource other than status that writes the whole object."""
        return []

    def meta_checks(self, subresource: str) -> tuple[MetaCheck, ...]:
        """In which order the validation of an update looks at metadata."""
        if subresource:
            return self.status_meta_checks
        if self.validated_twice_until and not self.features.at_least(NEWEST):
            return self._older_meta_checks()
        return self.update_meta_checks

    def _older_meta_checks(self) -> tuple[MetaCheck, ...]:
        twice = self.features.version <= self.validated_twice_until
        return ("create", "spec", *self.update_meta_checks) if twice else self.update_meta_checks

    def validation_warnings(self, obj: Object, old: Object, subresource: str) -> list[str]:
        """What is wrong with an object but was before, so that an update is only warned of it; given with errors too."""
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
        """Something beside finalizers keeps a terminating object (a namespace's spec.finalizers)."""
        return False

    def begin_deletion(self, obj: Object, options: "Deletion", now: float) -> None:
        """The first DELETE of a kind that `ends_in_two_steps`: marks in place. Metadata is the caller's own copy."""

    def raises_generation(self, obj: Object, old: Object) -> bool:
        """Whether an update raises metadata.generation."""
        return self.has_generation and spec_changed(obj, old)

    def shows_more_than_stored(self, obj: Object) -> bool:
        """Whether reading a new object fills in what its creation didn't store: the first update stores it then, whatever it is."""
        return False

    def with_unshown(self, old: Object) -> Object:
        """A stored object with what upstream stores and never shows, where somebody owns it: what updates start from."""
        return old

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        """The top-level fields that this write can't set, and so doesn't own in managedFields."""
        if subresource == "status":
            older = (paths for until, paths in self.status_disowned_until.items() if self.features.version <= until)
            return next(older, self.status_reset_fields)
        # Another subresource may ignore what it isn't for; whoever sends it owns it all the same.
        return () if subresource else self.reset_fields or ()

    def prepare_for_subresource_update(self, subresource: str, obj: Object, old: Object) -> None:
        """As prepare_for_update, for a subresource other than status that writes the whole object."""

    def check_deletion(self, obj: Object) -> StatusError | None:
        """A reason to refuse a deletion, if any."""
        return None

    def fields_of(self, obj: Object) -> dict[str, str]:
        """The values that field selectors see."""
        meta = metadata(obj)
        found = {"metadata.name": str(meta.get("name", "")), "metadata.namespace": str(meta.get("namespace", ""))}
        for selector, path in self.selectable_fields.items():
            found[selector] = _value_at(obj, path)
        return found

    def field_labels(self, namespaced: bool) -> Mapping[str, str]:
        """What a field selector may name -> which of `fields_of` it means."""
        own = {"metadata.name": "metadata.name"} | {label: label for label in self.selectable_fields}
        # Upstream's default takes a namespace of any kind; kinds with labels of their own tell it where they have one.
        return own | {"metadata.namespace": "metadata.namespace"} if namespaced or not self.selectable_fields else own

    def table_row(self, obj: Object, now: float) -> Cells | None:
        """The cells of the recorded columns; None for the generic row (name and creation time)."""
        return None

    def table_conditions(self, obj: Object) -> list[Object]:
        """What a table row says of the object besides its cells."""
        return []

    def table_order(self, objects: list[Object]) -> list[Object]:
        """The order of a table's rows."""
        return objects

    def on_created(self, obj: Object) -> None:
        """After a commit: what upstream's AfterCreate hooks do."""

    def on_updated(self, obj: Object, old: Object) -> None:
        """After a commit of a client's write: `obj` is stored where `old` was."""

    def on_deleted(self, resource: GroupResource, obj: Object) -> None:
        """After a commit: what upstream's AfterDelete hooks do."""


def keep_metadata(obj: Object, old: Object) -> None:
    """What a subresource's write leaves of metadata as it is (upstream: ResetObjectMetaForStatus)."""
    for name in _KEPT_METADATA:
        copy_field(name, metadata(old), metadata(obj))


def copy_field(name: str, source: Object, target: Object) -> None:
    """Sets a field as it is in `source`, or removes it as there."""
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
    obj: Object, old: Object, ignored: Sequence[str] = ("metadata", "status", "kind", "apiVersion")
) -> bool:
    """Anything but metadata and status differs: what makes generation rise."""
    keys = obj.keys() | old.keys()
    return any(obj.get(key) != old.get(key) for key in keys if key not in ignored)
