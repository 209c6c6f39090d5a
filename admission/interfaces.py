"""The interfaces of admission plugins and of their inputs.

Upstream: k8s.io/apiserver/pkg/admission/interfaces.go.
"""

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates
from fakeapiserver.auth.interfaces import Authorizer, UserInfo
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.clock import Clock, SystemClock

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
    from fakeapiserver.transport.webhook import WebhookConnections

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Reinvocation(Struct):
    """The state of mutating plugins during one write, for their second run.

    `called` are the plugins that want to run again if others change the object after them, `again` those that
    will; `output` is the object as
    the webhooks left it.
    """

    needed: bool = False
    running: bool = False
    called: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    output: bytes = b""
    # The same of policies, which are run before webhooks.
    policies: "Reinvocation | None" = None

    def require(self) -> None:
        """Called when the object has changed: plugins that were called before will be called again."""
        self.again |= self.called
        self.called.clear()


class Annotations(Protocol):
    """Collects the audit annotations of a request."""

    def annotate(self, key: str, value: str, *, with_request: bool = False) -> None:
        """Records an annotation; the first value of a key wins.

        `with_request`: only at levels that record the request's body.
        """


class Attributes(Struct):
    """A write on its way to storage.

    `object` is the new object (None on delete), owned by this request, so a mutating plugin may change it in
    place; `old_object` must not be
    changed.
    """

    operation: Operation
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    namespace: str
    name: str
    object: Object | None
    old_object: Object | None
    user: UserInfo
    dry_run: bool = False
    options: Object = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    reinvocation: Reinvocation | None = None
    annotations: Annotations | None = None
    # The paths of lists and maps that were sent empty, e.g. ("spec", "overhead"): `object` lacks them.
    empties: Container[tuple[str | int, ...]] = ()

    def annotate(self, key: str, value: str, *, with_request: bool = False) -> None:
        """Adds an audit annotation; does nothing if the request isn't audited."""
        if self.annotations is not None:
            self.annotations.annotate(key, value, with_request=with_request)


class Versions(Protocol):
    """The versions that kinds are served in, for plugins that see objects in another one than the client's."""

    def equivalents(
        self, resource: GroupVersionResource, kind: GroupVersionKind
    ) -> Sequence[tuple[GroupVersionResource, GroupVersionKind]]:
        """The other resources that serve the same objects, with their kinds; `kind` is the kind of the write, which may be a
        subresource's."""

    async def convert(self, obj: Object, kind: GroupVersionKind) -> Object:
        """The object in another kind; it may share parts with `obj`. StatusError if a conversion webhook fails."""

    def arrange(self, obj: Object, kind: GroupVersionKind) -> Object:
        """The object with its keys in the order in which Go writes them; it may share parts with `obj`."""

    def settle(self, obj: Object, kind: GroupVersionKind) -> list[str]:
        """Converts an object that a plugin changed to the kind's form, with its defaults, in place; returns unknown
        fields of built-in kinds.

                Raises ValueError in the words of Go's decoder.
        """

    def recognize(self, obj: Object, kind: GroupVersionKind) -> None:
        """Checks that the server knows the kind and that the object fits it. ValueError in Go's words."""

    def restore(self, obj: Object, kind: GroupVersionKind) -> None:
        """Does what `settle` does for the result of a merge.

        Raises ValueError in the words of Go's unstructured converter.
        """

    def resource_of(self, kind: GroupVersionKind) -> tuple[GroupVersionResource, bool] | None:
        """The resource that serves a kind, and whether it is namespaced; None if the kind isn't served."""

    def typed(self, kind: GroupVersionKind) -> "TypedSchema | None":
        """The schema of a kind, for merging; None if it is unknown."""

    def is_custom(self, kind: GroupVersionKind) -> bool:
        """Reports whether a CustomResourceDefinition has made the kind."""


class NoVersions:
    """Every kind has one version, and every object its form."""

    def equivalents(
        self, resource: GroupVersionResource, kind: GroupVersionKind
    ) -> Sequence[tuple[GroupVersionResource, GroupVersionKind]]:
        return ()

    async def convert(self, obj: Object, kind: GroupVersionKind) -> Object:
        return obj

    def arrange(self, obj: Object, kind: GroupVersionKind) -> Object:
        return obj

    def settle(self, obj: Object, kind: GroupVersionKind) -> list[str]:
        return []

    def recognize(self, obj: Object, kind: GroupVersionKind) -> None:
        pass

    def restore(self, obj: Object, kind: GroupVersionKind) -> None: ...

    def resource_of(self, kind: GroupVersionKind) -> tuple[GroupVersionResource, bool] | None:
        return None

    def typed(self, kind: GroupVersionKind) -> "TypedSchema | None":
        return None

    def is_custom(self, kind: GroupVersionKind) -> bool:
        return False


class Writer(Protocol):
    """Writes that plugins make themselves, with all that belongs to a write."""

    async def create(self, resource: str, obj: Object) -> None:
        """Creates an object; the writer may change `obj`. StatusError."""

    async def update_status(self, resource: str, namespace: str, name: str, change: Callable[[Object], Object]) -> None:
        """Writes a changed status. `change` is called again if another write was faster. StatusError, also from `change`."""


class Initializer(Struct, frozen=True):
    """The dependencies of a plugin (upstream: admission initializers).

    `configuration` is what --admission-control-config-file has for each plugin by its name; without a `writer`
    plugins change nothing but the
    object itself.
    """

    getter: ObjectReader
    versions: Versions = field(default_factory=NoVersions)
    configuration: Mapping[str, Object] = field(default_factory=dict)
    writer: Writer | None = None
    clock: Clock = field(default_factory=SystemClock)
    # Decides what users may do; None: everybody may do everything.
    authorizer: Authorizer | None = None
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300
    features: FeatureGates = DEFAULT_GATES
    instruments: Instruments = field(default_factory=Instruments)
    # Connections to webhooks, for the next call.
    connections: "WebhookConnections | None" = None
    # Waits until what other servers had written by now is known; None: there are no others.
    catch_up: Callable[[], Awaitable[None]] | None = None
    chance: Chance = UNSEEDED
    # Whether the chain of the plugins records what each changes.
    records_steps: bool = False


class InitializationError(ValueError):
    """A configuration that can be read won't do (upstream: ValidateInitialization)."""


class MutationInterface(Protocol):
    def handles(self, operation: Operation) -> bool: ...

    async def admit(self, attributes: Attributes) -> None:
        """May change `attributes.object` in place. StatusError refuses the write."""


class ValidationInterface(Protocol):
    def handles(self, operation: Operation) -> bool: ...

    async def validate(self, attributes: Attributes) -> None:
        """Must not change anything. StatusError refuses the write."""
