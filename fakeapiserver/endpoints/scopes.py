"""The RequestScope of every served resource version, made when it is first needed.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go, pkg/registry/<group>/rest/storage_<group>.go.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery.errors import new_internal_error
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.key_order import arrangement
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis import conversion
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import APIResource, known_kinds
from fakeapiserver.auth.interfaces import Authorizer
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.dialect.builtin import BUILTIN
from fakeapiserver.endpoints.negotiation.body import KnownKind
from fakeapiserver.endpoints.negotiation.media_types import SUPPORTED
from fakeapiserver.endpoints.negotiation.type_meta import not_registered
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope, Virtual
from fakeapiserver.registry.generic.canonical import built_in_encoder
from fakeapiserver.registry.generic.interfaces import AdmissionChain
from fakeapiserver.registry.generic.kind import BuiltinKind, Kind
from fakeapiserver.registry.generic.store import Store, StoreOptions
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.generic.versions import Versions
from fakeapiserver.registry.generic.write_request import Allocation, Guard
from fakeapiserver.registry.strategies import strategy_for
from fakeapiserver.storage.interface import Compacted, Storage
from fakeapiserver.storage.keys import prefix_of

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import TypedSchema
    from fakeapiserver.component_helpers.streaming import Kubelets, Streams
    from fakeapiserver.endpoints.streams.proxy import Location

# Upstream serves these groups by servers of their own, which don't know the kinds of others.
_OF_THEIR_OWN: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_MAX_BASE: Final = 63 - _SUFFIX_LENGTH
# How many decoded objects are kept; beyond this they are dropped and decoded again.
_MOST_DECODED: Final = 50_000
_MOST_LISTS: Final = 4096
# Where upstream's keys in etcd differ from the resource's name; some messages show them.
_KEY_NAMES: Final = {
    GroupResource("", "endpoints"): "services/endpoints",
    GroupResource("", "nodes"): "minions",
    GroupResource("", "replicationcontrollers"): "controllers",
    GroupResource("", "services"): "services/specs",
    GroupResource("networking.k8s.io", "ingresses"): "ingress",
    GroupResource(
        "apiextensions.k8s.io", "customresourcedefinitions"
    ): "apiextensions.k8s.io/customresourcedefinitions",
    GroupResource("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
}


def generate_name(base: str) -> str:
    """`web-` -> `web-x7k2p` (upstream: k8s.io/apiserver/pkg/storage/names/generate.go)."""
    return base[:_MAX_BASE] + "".join(random.choices(_ALPHABET, k=_SUFFIX_LENGTH))


class TokenIssuer(Struct, frozen=True):
    """Signs service account tokens. `extends` is --service-account-extend-token-expiration, `longest` (seconds, 0 for any)
    --service-account-max-token-expiration, `jwks_uri` where the keys are published (empty: by this server)."""

    keys: ServiceAccountKeys
    issuer: str
    audiences: Sequence[str]
    extends: bool = True
    longest: int = 0
    jwks_uri: str = ""


class Proxy(Protocol):
    """Proxies requests to pods, to services, and to ports of nodes other than the kubelet's."""

    async def serve(self, request: Request, location: "Location") -> Response:
        """StatusError 503 or 500 if the target can't be reached."""


class KubeletClient(Protocol):
    """Talks to kubelets in other processes, at the addresses of their nodes."""

    def check_addresses(self, node: Object) -> None:
        """StatusError 500: the node has no address of a preferred type."""

    def address(self, node: Object) -> tuple[str, int]:
        """Host and port."""

    def authority(self, node: Object) -> str: ...

    async def logs(self, request: Request, node: Object, path: str) -> Response:
        """StatusError: the kubelet can't be reached, or what it says instead of a log."""

    async def upgrade(self, request: Request, node: Object, path: str) -> Response:
        """Bytes to and fro once the kubelet switches protocols. StatusError 500: it can't be reached."""

    async def execute(self, node: Object, path: str, streams: "Streams") -> int:
        """Runs over SPDY what `path` says; its exit code. KubeletError: the kubelet can't be reached, or refuses."""

    async def tunnel(self, request: Request, node: Object, path: str, protocols: Sequence[str]) -> Response:
        """SPDY to the kubelet, inside of a WebSocket to the client, who offers `protocols` to be spoken in it. StatusError 500."""

    async def proxy(self, request: Request, location: "Location") -> Response:
        """To a kubelet. StatusError 503, 500: it can't be reached."""


class KubeletServer(Protocol):
    """Serves the HTTP endpoints of the kubelets in this process."""

    async def handle(self, request: Request, node: str = "") -> Response:
        """`node`: the one that is asked; "": any."""


class RequestScopes(Struct, kw_only=True):
    """Creates and keeps the scopes of all served resources.

    `virtual` are the resources that aren't stored (reviews). `guard_for` returns the guard that checks writes to a resource first;
    `allocations` allocate what its objects hold (IPs, node ports). `make_custom` creates the scope of a custom resource. `kubelets` run the
    pods of simulated nodes, and `kubelet_server` serves these nodes' HTTP endpoints.
    """

    table: ResourceTable
    storage: Storage
    admission: AdmissionChain
    clock: Clock
    min_request_timeout: int = 1800
    media_types: tuple[str, ...] = SUPPORTED
    virtual: Mapping[GroupResource, Virtual] = field(default_factory=dict)
    authorizer: Authorizer | None = None
    guard_for: Callable[[GroupResource], Guard | None] = lambda resource: None
    allocations: Mapping[GroupResource, Allocation] = field(default_factory=dict)
    token_issuer: TokenIssuer | None = None
    make_custom: Callable[[APIResource], RequestScope] | None = None
    kubelets: "Kubelets | None" = None
    kubelet_server: KubeletServer | None = None
    make_kubelet_client: Callable[[], KubeletClient] | None = None
    make_proxy: Callable[[], Proxy] | None = None
    _kubelet_client: KubeletClient | None = None
    _proxy: Proxy | None = None
    instruments: Instruments = field(default_factory=Instruments)
    _scopes: dict[tuple[str, str, str], RequestScope] = field(default_factory=dict)
    _stores: dict[tuple[GroupResource, GroupVersionKind], Store] = field(default_factory=dict)
    _generation: int = -1

    @property
    def kubelet_client(self) -> KubeletClient:
        """Made when it is first needed."""
        if self._kubelet_client is None:
            assert self.make_kubelet_client is not None
            self._kubelet_client = self.make_kubelet_client()
        return self._kubelet_client

    @property
    def proxy(self) -> Proxy:
        """Made when it is first needed."""
        if self._proxy is None:
            assert self.make_proxy is not None
            self._proxy = self.make_proxy()
        return self._proxy

    def lookup(self, group: str, version: str, resource: str) -> RequestScope | None:
        """The scope of a resource version; None if it isn't served."""
        if self._generation != self.table.generation:
            self._drop_stale()
        key = (group, version, resource)
        scope = self._scopes.get(key)
        if scope is None and (row := self.table.lookup(*key)) is not None:
            scope = self._scopes[key] = self._make(row)
            scope.min_request_timeout = self.min_request_timeout
            scope.instruments = self.instruments
        return scope

    def store_for(self, resource: GroupResource) -> Store | None:
        """The store of a resource, whichever version it is served in (built-in resources: the preferred one)."""
        view = self.table.group(resource.group)
        for version in view.versions if view is not None else ():
            scope = self.lookup(resource.group, version.gv.version, resource.resource)
            if scope is not None and scope.store is not None:
                return scope.store
        return None

    def _drop_stale(self) -> None:
        """Keeps the scopes whose row is still the same."""
        kept = {key: scope for key, scope in self._scopes.items() if self.table.lookup(*key) is scope.resource}
        self._scopes, self._generation = kept, self.table.generation

    def _make(self, row: APIResource) -> RequestScope:
        if row.custom:
            assert self.make_custom is not None
            return self.make_custom(row)
        store = self._store(row) if "get" in row.verbs and row.gvr.group_resource not in self.virtual else None
        strategy = store.strategy if store is not None else strategy_for(row, self.table.scheme.features)
        convert = strategy.convert_decoded if type(strategy).convert_decoded is not Strategy.convert_decoded else None
        definitions = self.table.definitions_of(row)
        kind = BuiltinKind(row.gvk, row.definition, definitions, self._defaults(strategy), strategy.reword, convert)
        return RequestScope(
            resource=row,
            kind=kind,
            dialect=BUILTIN,
            clock=self.clock,
            recognizes=self._only(row.gvk.group) if row.gvk.group in _OF_THEIR_OWN else self.recognizes,
            store=store,
            row=strategy.table_row if type(strategy).table_row is not Strategy.table_row else None,
            virtual=self.virtual.get(row.gvr.group_resource),
            admission=self.admission,
        )

    def _defaults(self, strategy: Strategy) -> Callable[[Object, str], None]:
        if type(strategy).default_times is Strategy.default_times:
            return strategy.default

        def default(obj: Object, version: str) -> None:
            strategy.default(obj, version)
            strategy.default_times(obj, rfc3339(self.clock.now()))

        return default

    def end_watches_of_clients(self) -> None:
        """Ends every open watch that comes from outside of this process, after what it has buffered."""
        for scope in self._scopes.values():
            for watcher in [*scope.watchers_of_clients]:
                watcher.end()

    def restored(self) -> None:
        """Brings what is kept outside of storage up to date after a snapshot was restored."""
        for store in self._stores.values():
            if store.allocation is not None:
                store.allocation.restore(store.decode(item.value) for item in self.storage.list_now(store.prefix).items)

    def kind_in(self, stored: GroupVersionKind, api_version: str) -> Kind:
        """The kind of objects that are stored as `stored`, in another served version. LookupError if that version doesn't serve it."""
        row = self.table.for_kind(GroupVersionKind(*GroupVersion.parse(api_version), stored.kind))
        if row is None or (stored.group != row.gvk.group if row.custom else conversion.storage_gvk(row.gvk) != stored):
            raise LookupError(api_version)
        scope = self.lookup(*row.gvr)
        assert scope is not None
        return scope.kind

    def recognizes(self, gvk: GroupVersionKind) -> KnownKind | None:
        """Returns how bodies of this type are decoded: by their schema if the kind is served, otherwise as they are (old versions, lists,
        options). Returns None for an unknown type.
        """
        row = self.table.for_kind(gvk)
        if row is not None and not row.custom:
            return KnownKind(self.table.definitions_of(row), row.definition)
        known = known_kinds(self.table.scheme.version)
        also = gvk.kind in known["*"] or gvk.kind in known.get(str(gvk.group_version), ())
        return KnownKind() if also and row is None else None

    def _only(self, group: str) -> Callable[[GroupVersionKind], KnownKind | None]:
        """Returns `recognizes` limited to the kinds of this group and those that every group knows."""
        everywhere = known_kinds(self.table.scheme.version)["*"]
        return lambda gvk: self.recognizes(gvk) if gvk.group == group or gvk.kind in everywhere else None

    def _store(self, row: APIResource) -> Store:
        """All served versions of a kind share one store, and so do events in their two groups."""
        gvk = conversion.storage_gvk(row.gvk)
        home = self.table.for_kind(gvk) or row
        key = (home.gvr.group_resource, gvk)
        store = self._stores.get(key)
        if store is None:
            store = self._stores[key] = self.make_store(home, gvk)
        return store

    def make_store(self, row: APIResource, gvk: GroupVersionKind) -> Store:
        group_resource = row.gvr.group_resource
        arrange = arrangement(self.table.definitions_of(row), row.definition, field_order)
        return Store(
            StoreOptions(
                gvr=row.gvr,
                versions=Versions(gvk, lambda api_version: self.kind_in(gvk, api_version), built_in_encoder(arrange)),
                namespaced=row.namespaced,
                prefix=prefix_of(_KEY_NAMES.get(group_resource, row.gvr.resource)),
                strategy=strategy_for(row, self.table.scheme.features).for_server(self.clock),
                storage=self.storage,
                admission=self.admission,
                clock=self.clock,
                name_generator=generate_name,
                find=self.store_for,
                guard=self.guard_for(group_resource),
                allocation=self.allocations.get(group_resource),
            )
        )


class ServedVersions:
    """Conversions and equivalent resources, for admission plugins (upstream: ObjectInterfaces, EquivalentResourceMapper)."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes
        # Valid for one generation of the table.
        self._others: dict[GroupVersionResource, tuple[APIResource, ...]] = {}
        self._generation = -1
        self._of_subresources: dict[GroupVersionKind, Kind | None] = {}

    def equivalents(
        self, resource: GroupVersionResource, kind: GroupVersionKind
    ) -> Sequence[tuple[GroupVersionResource, GroupVersionKind]]:
        table = self._scopes.table
        if self._generation != table.generation:
            self._others, self._generation = {}, table.generation
        if resource not in self._others:
            self._others[resource] = tuple(_equivalent_rows(table, resource))
        own = table.lookup(*resource)
        # A subresource's kind, such as Scale, is the same in every version.
        of_itself = own is not None and own.gvk == kind
        return [(row.gvr, row.gvk if of_itself else kind) for row in self._others[resource]]

    async def convert(self, obj: Object, kind: GroupVersionKind) -> Object:
        scope = self._scope(kind)
        store = scope.store if scope is not None else None
        if scope is None or store is None:
            return obj
        if scope.kind.custom:
            try:
                return await store.versions.settled(lambda: store.versions.in_version(obj, str(kind.group_version)))
            except ValueError as error:
                raise new_internal_error(str(error)) from None
        converted = conversion.convert(obj, kind)
        scope.kind.decode(converted)
        return converted

    def arrange(self, obj: Object, kind: GroupVersionKind) -> Object:
        known = self._kind(kind)
        return obj if known is None else known.arrange(obj)

    def settle(self, obj: Object, kind: GroupVersionKind) -> list[str]:
        if (known := self._kind(kind)) is None:
            return []
        unknown = known.decode(obj)
        known.default(obj)
        return [] if known.custom else unknown

    def recognize(self, obj: Object, kind: GroupVersionKind) -> None:
        known = self._scopes.recognizes(kind)
        if known is None:
            raise ValueError(not_registered(kind))
        known.decode(dict(obj))

    def restore(self, obj: Object, kind: GroupVersionKind) -> None:
        known = self._kind(kind)
        if known is not None and not known.custom:
            known.settle(obj, {})
        else:
            self.settle(obj, kind)

    def resource_of(self, kind: GroupVersionKind) -> tuple[GroupVersionResource, bool] | None:
        row = self._scopes.table.for_kind(kind)
        return (row.gvr, row.namespaced) if row is not None else None

    def typed(self, kind: GroupVersionKind) -> "TypedSchema | None":
        scope = self._scope(kind)
        return scope.kind.typed if scope is not None else None

    def is_custom(self, kind: GroupVersionKind) -> bool:
        row = self._scopes.table.for_kind(kind)
        return row is not None and row.custom

    def _kind(self, kind: GroupVersionKind) -> Kind | None:
        """The kind of a served resource, or of a subresource such as Scale."""
        if (scope := self._scope(kind)) is not None:
            return scope.kind
        if kind not in self._of_subresources:
            resources = self._scopes.table.scheme.resources.values()
            found = (
                sub for row in resources for sub in row.subresources.values() if sub.gvk == kind and sub.definition
            )
            name = next((sub.definition for sub in found), "")
            definitions = self._scopes.table.scheme.definitions
            made = BuiltinKind(kind, name, definitions, lambda obj, version: None) if name else None
            self._of_subresources[kind] = made
        return self._of_subresources[kind]

    def _scope(self, kind: GroupVersionKind) -> RequestScope | None:
        row = self._scopes.table.for_kind(kind)
        return self._scopes.lookup(*row.gvr) if row is not None else None


def _equivalent_rows(table: ResourceTable, resource: GroupVersionResource) -> Iterator[APIResource]:
    own = table.lookup(*resource)
    if own is None:
        return
    for row in table:
        if row.custom != own.custom or row.gvr == own.gvr:
            continue
        if row.gvr.group_resource == own.gvr.group_resource if own.custom else _stored_alike(row, own):
            yield row


def _stored_alike(row: APIResource, other: APIResource) -> bool:
    return conversion.storage_gvk(row.gvk) == conversion.storage_gvk(other.gvk)


class ObjectGetter:
    """Reads stored objects for admission plugins and authorizers, within the same turn (no await).

    Objects are decoded on demand and kept while they don't change."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes
        self._decoded: dict[str, tuple[int, Object]] = {}
        # (resource, namespace) -> the generation of the resource, and the objects
        self._lists: dict[tuple[str, str], tuple[int, list[Object]]] = {}
        self._stores: dict[str, Store | None] = {}  # found at one generation of the table
        self._generation = -1

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        store = self._store(resource)
        if store is None:
            return None
        # Not `store.key`, which refuses invalid names: here such objects are just not found.
        key = f"{store.prefix}{namespace}/{name}" if store.namespaced else store.prefix + name
        found = store.storage.get_now(key)
        return self._decode(store, key, found.mod_revision, found.value) if found is not None else None

    def list(self, resource: str, namespace: str = "") -> list[Object]:
        """The objects as a list that stays the same object until the resource is written, so that callers can cache what they derive
        from it."""
        store = self._store(resource)
        if store is None:
            return []
        generation, known = store.storage.generation(store.prefix), self._lists.get((resource, namespace))
        if known is not None and known[0] == generation:
            return known[1]
        items = store.storage.list_now(store.collection(namespace)).items
        found = [self._decode(store, item.key, item.mod_revision, item.value) for item in items]
        if len(self._lists) >= _MOST_LISTS:
            self._lists.clear()
        self._lists[resource, namespace] = generation, found
        return found

    def generation(self, resources: tuple[str, ...]) -> int:
        """A number that rises with every write to one of these resources."""
        found = 0
        for resource in resources:
            store = self._store(resource)
            if store is not None:
                found += store.storage.generation(store.prefix)
        return found

    @property
    def revision(self) -> int:
        return self._scopes.storage.revision

    def changes(self, resources: tuple[str, ...], revision: int) -> Iterator[tuple[str, Object | None, Object | None]]:
        """Every write to these resources after `revision`, in order. LookupError if the history doesn't go back so far."""
        stores = [(store.prefix, resource, store) for resource in resources if (store := self._store(resource))]
        try:
            events = self._scopes.storage.changes_now(revision)
        except Compacted as error:
            raise LookupError(revision) from error
        for old, new in events:
            key = (old or new).key  # type: ignore[union-attr]
            for prefix, resource, store in stores:
                if key.startswith(prefix):
                    before, after = (store.decode(found.value) if found is not None else None for found in (old, new))
                    yield resource, before, after

    def _store(self, resource: str) -> Store | None:
        if self._generation != self._scopes.table.generation:
            self._stores, self._generation = {}, self._scopes.table.generation
            self._decoded.clear()  # of another schema, maybe
            self._lists.clear()
        if resource not in self._stores:
            plural, _, group = resource.partition(".")
            self._stores[resource] = self._scopes.store_for(GroupResource(group, plural))
        return self._stores[resource]

    def _decode(self, store: Store, key: str, revision: int, value: bytes) -> Object:
        cached = self._decoded.get(key)
        if cached is not None and cached[0] == revision:
            return cached[1]
        obj = store.decode(value)
        if len(self._decoded) >= _MOST_DECODED:
            self._decoded.clear()
        self._decoded[key] = (revision, obj)
        return obj
