"""What the verbs of one served resource version work with (upstream: RequestScope in k8s.io/apiserver/pkg/endpoints/handlers/rest.go)."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis import conversion
from fakeapiserver.apis.conversion import FIELD_LABELS
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.body import Recognizes
from fakeapiserver.endpoints.request import Request
from fakeapiserver.registry.generic import canonical
from fakeapiserver.registry.generic.interfaces import AdmissionChain
from fakeapiserver.registry.generic.kind import BuiltinKind, Kind
from fakeapiserver.registry.generic.store import Store
from fakeapiserver.storage.interface import Watcher

if TYPE_CHECKING:
    from fakeapiserver.endpoints.cbor import CBORForm
    from fakeapiserver.endpoints.partial import PartialForm
    from fakeapiserver.endpoints.protobuf import StoredForm

Row = Callable[[Object, float], list[object] | None]


class Virtual(Protocol):
    """A resource that isn't stored: a create is answered on the spot (reviews)."""

    async def create(self, request: Request, obj: Object) -> Object:
        """The answer's object; StatusError to refuse."""


_REVISION: Final = b'"resourceVersion":"'


class ScalePaths(Struct, frozen=True):
    """Where a kind keeps its replicas: dotted paths without the leading dot. `selector` names a map of labels, a
    LabelSelector or (custom resources) a string; empty where there is none."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = "spec.selector"


class RequestScope(Struct, kw_only=True, eq=False, dict=True):
    """One resource in one served version. `row` prints a table row, `virtual` answers for what isn't stored."""

    resource: APIResource
    kind: Kind
    clock: Clock
    recognizes: Recognizes
    store: Store | None = None
    row: Row | None = None
    virtual: Virtual | None = None
    admission: AdmissionChain | None = None  # for what is virtual; stores have their own
    scale_paths: ScalePaths = ScalePaths()
    # Objects of earlier revisions were stored under another schema (custom resources).
    outdated_before: int = 0
    min_request_timeout: int = 1800  # seconds that a watch lives at least, if its client asks for nothing else
    # The oldest revision that a watch can start from (custom resources, whose storage is made anew with their definition).
    watchable_since: int = 0
    instruments: Instruments = field(default_factory=Instruments)
    # What streams now.
    watchers: set[Watcher] = field(default_factory=set)
    # Custom resources: apiVersion -> the path elements of its replicas, None for a version without the scale subresource.
    replicas_paths: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
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
        return RequestScope(resource=self.resource, kind=kind, clock=self.clock, recognizes=self.recognizes)

    @cached_property
    def type_prefix(self) -> bytes:
        return canonical.type_prefix(self.gvk)

    @cached_property
    def protobuf(self) -> "StoredForm":
        """How stored objects are answered as protobuf; built-in kinds only."""
        from fakeapiserver.endpoints.protobuf import StoredForm

        return StoredForm(self.gvk, self.list_kind, self._restored)

    @cached_property
    def cbor(self) -> "CBORForm":
        """How stored objects are answered as CBOR."""
        from fakeapiserver.endpoints.cbor import CBORForm

        return CBORForm(self.kind, self.served)

    def partial(self, version: str) -> "PartialForm":
        """How objects are answered as PartialObjectMetadata of a version."""
        form = self._partials.get(version)
        if form is None:
            from fakeapiserver.endpoints.partial import PartialForm

            internal = self.store.strategy.converted_annotations if self.store is not None else {}
            restored = self._restored if self.kind.custom else bytes
            form = self._partials[version] = PartialForm(version, restored, internal)
        return form

    @cached_property
    def field_labels(self) -> Mapping[str, str]:
        """What a field selector may name -> the field that is kept beside the stored bytes."""
        assert self.store is not None
        return FIELD_LABELS.get(self.gvk) or self.store.strategy.field_labels(self.resource.namespaced)

    @property
    def converted(self) -> bool:
        """The stored version has another shape: bytes can't be handed on as they are."""
        if self.store is None or self.store.gvk == self.gvk:
            return False
        return self.kind.custom or not conversion.alike(self.gvk, self.store.gvk)

    def served(self, value: bytes) -> bytes:
        """The stored bytes as one object of this version."""
        return self.type_prefix + self._restored(value)[1:]

    def listed(self, values: list[bytes]) -> bytes:
        """Stored bytes as the items of a list: built-in kinds carry no type there, custom resources do."""
        if self.converted or self.outdated_before:
            values = [self._restored(value) for value in values]
        if not self.kind.custom or not values:
            return b",".join(values)
        return self.type_prefix + (b"," + self.type_prefix).join([value[1:] for value in values])

    def _restored(self, value: bytes) -> bytes:
        return self._convert(value) if self.converted or self._is_outdated(value) else value

    def _is_outdated(self, value: bytes) -> bool:
        """Stored under an earlier schema: pruned and defaulted again when it is decoded."""
        if not self.outdated_before or not value.startswith(_REVISION, canonical.REVISION_OFFSET):
            return False  # without a revision: a dry run has made it just now
        start = canonical.REVISION_OFFSET + len(_REVISION)
        return int(value[start : value.index(b'"', start)]) < self.outdated_before

    def _convert(self, value: bytes) -> bytes:
        assert self.store is not None
        obj = self.store.decode(value, self.gvk)
        revision = obj["metadata"].get("resourceVersion")
        encoded, at = canonical.encode(obj), canonical.REVISION_OFFSET
        if revision is None:  # a dry run has made it
            return encoded
        return encoded[:at] + f'"resourceVersion":"{revision}",'.encode() + encoded[at:]

    def decode(self, value: bytes) -> Object:
        """The stored bytes as a fresh object of this version."""
        assert self.store is not None
        return self.store.decode(value, self.gvk)

    def internal(self, value: bytes) -> Object:
        """The stored bytes as what Tables and PartialObjectMetadata are made of: upstream has the internal version at hand
        there, which is alike to the stored one. Custom resources are converted first."""
        assert self.store is not None
        return self.store.decode(value, self.gvk if self.kind.custom else None)

    def served_version(self, obj: Object) -> Object:
        """What `internal` has given, as it is served."""
        return obj if self.store is None or self.kind.custom else self.store.versions.converted(obj, self.gvk)
