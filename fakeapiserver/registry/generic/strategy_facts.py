"""The facts of one resource that the generic store follows: options of its strategy that are data, each with its default.

Upstream: the methods without logic of k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go's strategies.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import FieldPath
from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates
from fakeapiserver.apis.quantity_fields import NO_QUANTITIES, QuantityFields
from fakeapiserver.registry.generic.field_paths import FieldTree

NameFunction = Callable[[str, bool], list[str]]
MetaCheck = Literal["create", "update", "spec", "status", "immutable", "own"]


class StrategyFacts(Struct, kw_only=True):
    """The data of a strategy. A row of the group's table sets what differs from the defaults."""

    validate_name: NameFunction = names.name_is_dns_subdomain
    # generateName gets a random suffix (upstream: names.SimpleNameGenerator). False: it is the name as it stands.
    generates_names: bool = True
    # A PUT to a name that doesn't exist creates it (upstream: AllowCreateOnUpdate).
    allow_create_on_update: bool = False
    # Applying the status of an object that doesn't exist creates it, too (upstream passes forceAllowCreate on).
    status_apply_creates: bool = False
    # A PUT without resourceVersion overwrites (upstream: AllowUnconditionalUpdate).
    allow_unconditional_update: bool = True
    # The last version (`v1.36`) in which it did so, where it does no longer.
    unconditional_until: str = ""
    # metadata.generation starts at 1 and rises when anything but metadata and status changes.
    has_generation: bool = False
    # The feature gate with which a kind without generations has them.
    generation_gate: str = ""
    # Where the object has quantities: one that is only written otherwise is no change.
    quantity_fields: QuantityFields = NO_QUANTITIES
    # Fields in which an empty list differs from an absent one: sending one raises the generation (upstream: reflect.DeepEqual).
    generation_counts_empties: tuple[str, ...] = ()
    # Texts within the objects are stored and not parsed, so that long ones cost little.
    keeps_texts: bool = False
    # What decoding and defaulting make of the spec depends on the spec alone, and what they make of the rest doesn't depend on the spec.
    spec_is_decoded_alone: bool = False
    # The rules for updates distinguish an empty list or map from an absent one (where upstream compares with nil).
    tells_empties: bool = False
    # A change of `disabled_fields`, which are then dropped, raises the generation too.
    generation_counts_disabled: bool = False
    # Fields that writes to the main resource can't set (upstream: GetResetFields). None: status, if it is a subresource.
    reset_fields: tuple[str, ...] | None = None
    # As reset_fields, for writes to the status subresource.
    status_reset_fields: tuple[str, ...] = ("spec",)
    # For older servers: the last version (`v1.35`) in which status_reset_fields were others -> those.
    status_disowned_until: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # DELETE returns the object instead of a Status (upstream: Store.ReturnDeletedObject).
    returns_deleted_object: bool = False
    # Upstream keeps the objects in a watch cache, whose errors have a Retry-After header.
    cached: bool = True
    # Deleted objects get a grace period (upstream: RESTGracefulDeleteStrategy): see `grace_period`.
    graceful: bool = False
    # The first DELETE only begins the deletion, as `begin_deletion` says.
    ends_in_two_steps: bool = False
    # What conversion puts into the spec of an empty object, which is what bookmarks show.
    blank_spec: Mapping[str, object] = field(default_factory=dict)
    # Annotations that conversion makes of internal fields, with their empty values; PartialObjectMetadata lacks them.
    converted_annotations: Mapping[str, str] = field(default_factory=dict)
    # In a watch of Tables each event repeats the columns (upstream's printer of the kind ignores NoHeaders).
    repeats_columns: bool = False
    # A Table of an empty list has null instead of its rows.
    null_rows: bool = False
    # The propagation policy of a DELETE that names none (upstream: DefaultGarbageCollectionPolicy), or `Unsupported`.
    default_propagation: str = "Background"
    # Feature gate -> fields that are dropped from writes while it is off, unless the stored object has one of them
    # (field_paths.py says what a path is).
    gated_fields: Mapping[str, Sequence[FieldPath]] = field(default_factory=dict)
    # Gate, or one of its paths -> the first version (`v1.35`) in which it drops its fields; older servers accept them whatever
    # the gate says.
    gated_since: Mapping[str | FieldPath, str] = field(default_factory=dict)
    # While StrictIPCIDRValidation is off, addresses may have leading zeros and the like.
    legacy_addresses: bool = False
    # The server's feature gates, and of `gated_fields` those that are dropped there, one item per gate.
    features: FeatureGates = DEFAULT_GATES
    disabled_fields: tuple[Sequence[FieldPath], ...] = ()
    # The names in `disabled_fields` as a tree: one look at it shows that most objects have none of them.
    disabled_tree: FieldTree = field(default_factory=dict)
    # Finalizers must be qualified or standard names (not for kinds whose validation comes from apimachinery).
    kube_finalizers: bool = True
    # The order of checks of a new object by the kind's own validation, and whether they include its generateName. Error causes
    # come in this order.
    create_checks: tuple[MetaCheck, ...] = ("create", "spec")
    validates_generate_name: bool = True
    # The same for an update of the main resource and of the status: "create" and "update" are metadata's rules, "spec" is
    # `revalidate`, "status" `validate_status`, "immutable" `validate_immutable`. "own" is validate_update or
    # validate_status_update, which comes last if it isn't named.
    update_meta_checks: tuple[MetaCheck, ...] = ("update",)
    status_meta_checks: tuple[MetaCheck, ...] = ("update",)
    # The last version (`v1.35`) in which two layers checked an update, so that causes appear twice.
    validated_twice_until: str = ""
    # From 1.37 on, some of the kind's rules are declared in its type (registry/declared/errors.py).
    declares_rules: bool = True
    # Objects that a DELETE by name refuses to remove -> the reason. (Deleting the collection removes them.)
    never_deleted: Mapping[str, str] = field(default_factory=dict)
    # A warning for a DELETE that names no propagation policy.
    deletion_warning: str = ""
    # Resources whose object of the same name is deleted as well, until 1.36 (upstream: the Endpoints of a Service).
    companions: tuple[GroupResource, ...] = ()
    # Field selectors besides metadata.name and metadata.namespace -> the path in the object.
    selectable_fields: Mapping[str, str] = field(default_factory=dict)
    # How a selector by any other field is refused; {} is the field, {quoted} the same as Go quotes it, {kind} the served kind.
    unknown_field: str = "field label not supported: {}"
