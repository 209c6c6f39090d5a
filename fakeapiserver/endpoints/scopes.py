"""The RequestScope of every served resource version, made when it is first needed.

Upstream: k8s.io/apiserver/pkg/endpoints/installer.go, pkg/registry/<group>/rest/storage_<group>.go.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.key_order import arrangement
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis import conversion, removed_versions
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.apis.scheme import APIResource, known_kinds
from fakeapiserver.chance import UNSEEDED, Chance
from fakeapiserver.clock import Clock
from fakeapiserver.endpoints.dialect.builtin import BUILTIN
from fakeapiserver.endpoints.negotiation.body import KnownKind
from fakeapiserver.endpoints.negotiation.media_types import SUPPORTED
from fakeapiserver.endpoints.request import OpenWatch
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.services import KubeletClient, Proxy, Services
from fakeapiserver.registry.generic.canonical import built_in_encoder
from fakeapiserver.registry.generic.kind import BuiltinKind, Kind, KnownSpecs
from fakeapiserver.registry.generic.store import Store, StoreOptions
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.generic.versions import Versions
from fakeapiserver.registry.strategies import strategy_for
from fakeapiserver.storage.interface import Storage
from fakeapiserver.storage.keys import prefix_of

if TYPE_CHECKING:
    from fakeapiserver.component_helpers.streaming import Kubelets

# Upstream serves these groups by servers of their own, which don't know the kinds of others.
_OF_THEIR_OWN: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_MAX_BASE: Final = 63 - _SUFFIX_LENGTH
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


def key_name(row: APIResource) -> str:
    """The resource in its keys in storage."""
    return _KEY_NAMES.get(row.gvr.group_resource, row.gvr.resource)


class RequestScopes(Struct, kw_only=True, dict=True):
    """Creates and keeps the scopes of all served resources.

    min_request_timeout: seconds that a watch lives at least.
    is_read_only: whether every write is refused.
    make_services: returns what handlers and stores use beside the scopes; called once.
    """

    table: ResourceTable
    storage: Storage
    clock: Clock
    make_services: Callable[[], Services]
    min_request_timeout: int = 1800
    media_types: tuple[str, ...] = SUPPORTED
    instruments: Instruments = field(default_factory=Instruments)
    chance: Chance = UNSEEDED
    is_read_only: bool = False
    _scopes: dict[tuple[str, str, str], RequestScope] = field(default_factory=dict)
    _stores: dict[tuple[GroupResource, GroupVersionKind], Store] = field(default_factory=dict)
    _generation: int = -1

    def generate_name(self, base: str) -> str:
        """`web-` -> `web-x7k2p` (upstream: k8s.io/apiserver/pkg/storage/names/generate.go)."""
        return base[:_MAX_BASE] + "".join(self.chance.source("name", base).choices(_ALPHABET, k=_SUFFIX_LENGTH))

    @cached_property
    def services(self) -> Services:
        return self.make_services()

    @cached_property
    def kubelet_client(self) -> KubeletClient:
        """The client of kubelets in other processes."""
        return self.services.kubelet_client()

    @cached_property
    def proxy(self) -> Proxy:
        """The client of pods, services and ports of nodes."""
        return self.services.proxy()

    @property
    def kubelets(self) -> "Kubelets | None":
        """Returns the kubelets that run the pods of simulated nodes, or None if no nodes are simulated."""
        nodes = self.services.simulated_nodes()
        return nodes.kubelets if nodes is not None else None

    def lookup(self, group: str, version: str, resource: str) -> RequestScope | None:
        """The scope of a resource version; None if it isn't served."""
        if self._generation != self.table.generation:
            self._drop_stale()
        key = (group, version, resource)
        scope = self._scopes.get(key)
        if scope is None and (row := self.table.lookup(*key)) is not None:
            scope = self._make(row)
            if self._scopes:  # all share what the first one keeps
                scope.compressed = next(iter(self._scopes.values())).compressed
            self._scopes[key] = scope
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
            return self.services.make_custom(row)
        store = self._store(row) if "get" in row.verbs and row.gvr.group_resource not in self.services.virtual else None
        strategy = store.strategy if store is not None else strategy_for(row, self.table.scheme.features)
        convert = strategy.convert_decoded if type(strategy).convert_decoded is not Strategy.convert_decoded else None
        definitions = self.table.definitions_of(row)
        kind = BuiltinKind(row.gvk, row.definition, definitions, self._defaults(strategy), strategy.reword, convert)
        if strategy.spec_is_decoded_alone:
            kind.known_specs = KnownSpecs()
        return RequestScope(
            resource=row,
            kind=kind,
            dialect=BUILTIN,
            clock=self.clock,
            recognizes=self._only(row.gvk.group) if row.gvk.group in _OF_THEIR_OWN else self.recognizes,
            store=store,
            row=strategy.table_row if type(strategy).table_row is not Strategy.table_row else None,
            virtual=self.services.virtual.get(row.gvr.group_resource),
            admission=self.services.admission,
        )

    def _defaults(self, strategy: Strategy) -> Callable[[Object, str], None]:
        if type(strategy).default_times is Strategy.default_times:
            return strategy.default

        def default(obj: Object, version: str) -> None:
            strategy.default(obj, version)
            strategy.default_times(obj, rfc3339(self.clock.now()))

        return default

    @property
    def watches_of_clients(self) -> list[OpenWatch]:
        """The open watches that come from outside of this process."""
        return [watch for scope in self._scopes.values() for watch in scope.watches_of_clients]

    @property
    def open_watches(self) -> list[OpenWatch]:
        """All open watches."""
        in_process = [watch for scope in self._scopes.values() for watch in scope.watches_in_process]
        return self.watches_of_clients + in_process

    def restored(self) -> None:
        """Brings what is kept outside of storage up to date after a snapshot was restored."""
        for store in self._stores.values():
            if store.allocation is not None:
                store.allocation.restore(store.decode(item.value) for item in self.storage.list_now(store.prefix).items)

    def load_allocations(self) -> None:
        """Marks the addresses and ports of stored services as taken, in a server that starts with a state."""
        for resource in self.services.allocations:
            self.store_for(resource)
        self.restored()

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
        if gvk in removed_versions.SCALES:
            return self._old_scale
        known = known_kinds(self.table.scheme.version)
        also = gvk.kind in known["*"] or gvk.kind in known.get(str(gvk.group_version), ())
        return KnownKind() if also and row is None else None

    @cached_property
    def _old_scale(self) -> KnownKind:
        definitions = removed_versions.with_old_scale(self.table.scheme.definitions)
        return KnownKind(definitions, removed_versions.OLD_SCALE)

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
                prefix=prefix_of(key_name(row)),
                strategy=strategy_for(row, self.table.scheme.features).for_server(self.clock),
                storage=self.storage,
                admission=self.services.admission_of_stores,
                clock=self.clock,
                name_generator=self.generate_name,
                chance=self.chance,
                find=self.store_for,
                guard=self.services.guard_for(group_resource),
                allocation=self.services.allocations.get(group_resource),
                authorizer=self.services.authorizer,
            )
        )
