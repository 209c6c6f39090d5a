"""A served resource version, as the verbs see it (upstream: RequestScope in k8s.io/apiserver/pkg/endpoints/handlers/rest.go)."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

import msgspec
from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.conversion import FIELD_LABELS
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.compressed_lists import CompressedLists
from fakeapiserver.endpoints.dialect import builtin
from fakeapiserver.endpoints.dialect.interface import Dialect
from fakeapiserver.endpoints.negotiation import cbor as cbor_forms
from fakeapiserver.endpoints.negotiation import columns as columns_module
from fakeapiserver.endpoints.negotiation import partial as partial_forms
from fakeapiserver.endpoints.negotiation import protobuf as protobuf_forms
from fakeapiserver.endpoints.negotiation.body import Recognizes
from fakeapiserver.endpoints.request import OpenWatch, Request
from fakeapiserver.endpoints.verbs.shared_frames import SharedFrames
from fakeapiserver.registry.generic import canonical
from fakeapiserver.registry.generic.interfaces import AdmissionChain
from fakeapiserver.registry.generic.kind import BuiltinKind, Kind
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.storage.interface import Watcher

if TYPE_CHECKING:
    from fakeapiserver.endpoints.negotiation.cbor import CBORForm
    from fakeapiserver.endpoints.negotiation.columns import Column
    from fakeapiserver.endpoints.negotiation.partial import PartialForm
    from fakeapiserver.endpoints.negotiation.protobuf import StoredForm

Row = Callable[[Object, float], list[object] | None]


class Virtual(Protocol):
    """A resource that isn't stored: a create is answered at once (reviews)."""

    async def create(self, request: Request, obj: Object) -> Object:
        """The object of the answer. StatusError refuses the request."""


_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class _Metadata(Struct):
    resourceVersion: str = ""  # noqa: N815 (the name in the object)


class _Object(Struct):
    metadata: _Metadata


_decode_revision: Final = msgspec.json.Decoder(_Object).decode


class ScalePaths(Struct, frozen=True):
    """The paths of a kind's replicas, dotted and without a leading dot. At `selector` is a map of labels, a LabelSelector or (custom
    resources) a string; empty if the kind has none."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = "spec.selector"


class RequestScope(Struct, kw_only=True, eq=False, dict=True):
    """A resource in a served version. `row` prints a table row; `virtual` handles the requests of a resource that isn't stored."""

    resource: APIResource
    kind: Kind
    dialect: Dialect
    clock: Clock
    recognizes: Recognizes
    store: Store | None = None
    row: Row | None = None
    virtual: Virtual | None = None
    admission: AdmissionChain | None = None  # for virtual resources; stores have their own
    scale_paths: ScalePaths = ScalePaths()
    # Objects of earlier revisions may have been stored under another schema (custom resources).
    outdated_before: int = 0
    min_request_timeout: int = 1800  # seconds that a watch lives at least, if its client asks for nothing else
    # The oldest revision that a watch can start from (custom resources, whose storage is created again when their definition changes).
    watchable_since: int = 0
    instruments: Instruments = field(default_factory=Instruments)
    compressed: CompressedLists = field(default_factory=CompressedLists)
    # The watchers of open watches.
    watchers: set[Watcher] = field(default_factory=set)
    # The open watches that come from outside of this process.
    watches_of_clients: WeakSet[OpenWatch] = field(default_factory=WeakSet)
    # Those of bundled controllers and of operators in this process.
    watches_in_process: WeakSet[OpenWatch] = field(default_factory=WeakSet)
    # Custom resources: apiVersion -> the path elements of its replicas, None for a version without the scale subresource.
    replicas_paths: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    # Large frames that open watches send.
    frames: SharedFrames = field(default_factory=SharedFrames)
    _partials: dict[str, "PartialForm"] = field(default_factory=dict)

    @property
    def gvk(self) -> GroupVersionKind:
        return self.kind.gvk

    @property
    def list_kind(self) -> str:
        return self.resource.list_kind or self.gvk.kind + "List"

    @cached_property
    def scale(self) -> "RequestScope":
        """The scale subresource as a resource of its own, without a store."""
        gvk = GroupVersionKind("autoscaling", "v1", "Scale")
        definition, own = "io.k8s.api.autoscaling.v1.Scale", self.kind
        kind = BuiltinKind(gvk, definition, own.definitions, lambda obj, version: None, own.reword)
        return RequestScope(
            resource=self.resource, kind=kind, dialect=builtin.BUILTIN, clock=self.clock, recognizes=self.recognizes
        )

    @cached_property
    def columns(self) -> "list[Column]":
        """The columns of the resource's Tables."""
        return columns_module.described(self.resource)

    @cached_property
    def _type_prefix(self) -> canonical.TypePrefix:
        return self.dialect.type_prefix(self.gvk)

    @cached_property
    def protobuf(self) -> "StoredForm":
        """Encodes answers as protobuf; built-in kinds only."""
        return protobuf_forms.StoredForm(self.gvk, self.list_kind, self.restored)

    @cached_property
    def cbor(self) -> "CBORForm":
        """Encodes answers as CBOR."""
        return cbor_forms.CBORForm(self.dialect.cbor_shape(self.kind), self.served)

    def partial(self, version: str) -> "PartialForm":
        """Encodes answers as PartialObjectMetadata of a version."""
        form = self._partials.get(version)
        if form is None:
            internal = self.store.strategy.converted_annotations if self.store is not None else {}
            restored, arrange = self.dialect.partial_rules(self)
            form = self._partials[version] = partial_forms.PartialForm(version, restored or bytes, internal, arrange)
        return form

    @cached_property
    def field_labels(self) -> Mapping[str, str]:
        """Each field that a selector may name -> the field that is kept beside the stored bytes."""
        assert self.store is not None
        return FIELD_LABELS.get(self.gvk) or self.store.strategy.field_labels(self.resource.namespaced)

    @property
    def converted(self) -> bool:
        """Reports whether the stored version differs in more than its apiVersion, so that stored bytes can't be sent as they are."""
        if self.store is None or self.store.gvk == self.gvk:
            return False
        return self.dialect.is_converted(self.gvk, self.store.gvk)

    def served(self, value: bytes) -> bytes:
        """The stored bytes as one object of this version."""
        return self._type_prefix.added(self.restored(value))

    def listed(self, values: list[bytes]) -> bytes:
        """Returns stored bytes as the items of a list: built-in kinds carry no type there, custom resources do."""
        if self.converted or self.outdated_before:
            values = [self.restored(value) for value in values]
        return self.dialect.items(values, self._type_prefix)

    def restored(self, value: bytes) -> bytes:
        """Returns stored bytes in this version, without the type."""
        return self._convert(value) if self.converted or self._is_outdated(value) else value

    def _is_outdated(self, value: bytes) -> bool:
        """Reports whether the object was stored under an earlier schema, so that it has to be pruned and defaulted again."""
        if not self.outdated_before:
            return False
        revision = _decode_revision(value).metadata.resourceVersion
        # Without a revision it was made by a dry run just now.
        return bool(revision) and int(revision) < self.outdated_before

    def _convert(self, value: bytes) -> bytes:
        assert self.store is not None
        obj = self.store.decode(value, self.gvk)
        revision = obj["metadata"].get("resourceVersion")
        encoded = self.kind.encode(obj)
        return encoded.value if revision is None else encoded.with_revision(revision)  # None: made by a dry run

    def decode(self, value: bytes) -> Object:
        """The stored bytes as a fresh object of this version."""
        assert self.store is not None
        return self.store.decode(value, self.gvk)

    def internal(self, value: bytes) -> Object:
        """The stored bytes as the object from which Tables and PartialObjectMetadata are made: the stored version, which resembles
        the internal one that upstream uses there, or the served version of a custom resource."""
        assert self.store is not None
        return self.store.decode(value, self.dialect.shown_version(self.gvk))

    def served_version(self, obj: Object) -> Object:
        """An object from `internal` in the served version."""
        return self.dialect.served_version(obj, self)
