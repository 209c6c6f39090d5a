"""Serves what the definitions of custom resources say: rows of the resource table, and a store and a scope for each version.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import msgspec

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.schema.default import presets_status
from fakeapiserver.apis.custom_resources import resources_of
from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.endpoints.dialect.custom import CUSTOM
from fakeapiserver.endpoints.object_getter import ObjectGetter
from fakeapiserver.endpoints.scope import RequestScope, ScalePaths
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.apiextensions import conversion as conversion_module
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.apiextensions.custom_versions import CustomVersions
from fakeapiserver.registry.apiextensions.customresource import CustomResourceStrategy
from fakeapiserver.registry.apiextensions.customresourcedefinition import condition
from fakeapiserver.registry.apiextensions.printer import row_printer
from fakeapiserver.registry.generic.store import Store, StoreOptions
from fakeapiserver.server.apiextensions.names import (
    NoCreation,
    replicas_paths,
    schema_of,
    selectable,
)
from fakeapiserver.server.apiextensions.state import Served, State, Storage
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.keys import prefix_of
from fakeapiserver.transport.service_resolver import cluster_resolver
from fakeapiserver.transport.webhook import WebhookClient, endpoint_of

if TYPE_CHECKING:
    from fakeapiserver.registry.apiextensions.conversion import ConvertedStorage
    from fakeapiserver.transport.webhook import WebhookClient, WebhookConnections


class ServedResources:
    """The custom resources that are served now. `connections`: those to conversion webhooks, for the next call."""

    def __init__(self, scopes: RequestScopes, connections: "WebhookConnections") -> None:
        self._scopes = scopes
        self._served: dict[GroupVersionResource, Served] = {}
        self._by_definition: dict[str, tuple[GroupVersionResource, ...]] = {}
        self._states: dict[str, State] = {}
        self._storages: dict[GroupVersionResource, Storage] = {}
        self._webhooks: WebhookClient | None = None
        self._connections = connections
        self.on_published: Callable[[], None] = lambda: None
        # Conversions by webhooks that haven't ended.
        self._conversions: set[asyncio.Future[StoredObject]] = set()

    @property
    def definitions(self) -> AbstractSet[str]:
        """The names of the definitions whose resources are served."""
        return self._by_definition.keys()

    def kind_of(self, definition: str) -> CustomKind | None:
        """Returns the kind of a definition's first served version, or None if it isn't served."""
        gvrs = self._by_definition.get(definition, ())
        return self._served[gvrs[0]].kind if gvrs else None

    def cancel_conversions(self) -> None:
        for conversion in self._conversions:
            conversion.cancel()

    def publish(self, obj: Object) -> None:
        """Serves a definition whose names are accepted, or once were."""
        name = metadata(obj)["name"]
        if "True" not in (condition(obj, "NamesAccepted"), condition(obj, "Established")):
            self.unpublish(name)
            return
        # in the order of names: a merge patch changes that of the fields
        spec = hashlib.sha256(msgspec.msgpack.encode(obj["spec"], order="deterministic")).digest()
        state = State(spec, obj["status"].get("acceptedNames"), condition(obj, "Terminating") == "True")
        known = self._states.get(name)
        if known == state:
            return
        self._states[name] = state
        if known is not None and (known.spec, known.names) != (state.spec, state.names):
            self._end_storages(self._by_definition.get(name, ()))
        served = list(self._versions(obj))
        gvrs = tuple(item.row.gvr for item in served)
        self._scopes.table.remove(*(set(self._by_definition.get(name, ())) - set(gvrs)))
        for item in served:
            self._served[item.row.gvr] = item
        self._by_definition[name] = gvrs
        self._scopes.table.insert(*(item.row for item in served))
        self.on_published()

    def _end_storages(self, resources: Iterable[GroupVersionResource]) -> None:
        """Another definition, another storage: watches end, and none begins before the new one."""
        for gvr in resources:
            if storage := self._storages.pop(gvr, None):
                for watcher in storage.watchers:
                    watcher.end()

    def _kinds(self, obj: Object, rows: Iterable[APIResource] = ()) -> dict[str, CustomKind]:
        """The kind in each version, served or not; `rows` are the served ones, whose schemas are packed already."""
        kind, group = obj["status"]["acceptedNames"]["kind"], obj["spec"]["group"]
        packed = {row.gvr.version: row.schema for row in rows}
        definitions, version = self._scopes.table.scheme.definitions, self._scopes.table.scheme.features.version
        kinds = {
            row["name"]: CustomKind(
                GroupVersionKind(group, row["name"], kind),
                packed.get(row["name"]) or CustomSchema(schema_of(row)),
                definitions,
                version,
            )
            for row in obj["spec"]["versions"]
        }
        for made in kinds.values():
            made.versions = kinds
        return kinds

    def _versions(self, obj: Object) -> Iterator[Served]:
        rows, views = resources_of(obj), list["ConvertedStorage"]()
        versions, kinds = {version["name"]: version for version in obj["spec"]["versions"]}, self._kinds(obj, rows)
        stored = next(name for name, version in versions.items() if version.get("storage"))
        first = schema_of(versions[stored])
        # What another version has written, or an earlier schema let pass, is brought in line when it is read.
        mixed = any(schema_of(version) != first for version in versions.values())
        changed = metadata(obj).get("generation", 1) > 1
        outdated_before = sys.maxsize if mixed else int(metadata(obj)["resourceVersion"]) if changed else 0
        if (obj["spec"].get("conversion") or {}).get("strategy") == "Webhook":
            outdated_before = int(metadata(obj)["resourceVersion"]) if changed else 0
            views = self._views(obj, [kinds[row.gvr.version] for row in rows], kinds, kinds[stored], outdated_before)
            outdated_before = 0  # the views see to it
        for i, row in enumerate(rows):
            version, view = versions[row.gvr.version], views[i] if views else None
            store = self._store(obj, version, kinds, kinds[stored], view, refreshes=mixed or changed)
            columns = version.get("additionalPrinterColumns") or ()
            scale = (version.get("subresources") or {}).get("scale") or {}
            yield Served(row, kinds[row.gvr.version], store, columns, scale, outdated_before, replicas_paths(obj))

    def _views(
        self,
        obj: Object,
        served: Sequence[CustomKind],
        kinds: Mapping[str, CustomKind],
        stored: CustomKind,
        outdated_before: int,
    ) -> "list[ConvertedStorage]":
        """The storage as each served version sees it through the definition's webhook."""
        if self._webhooks is None:
            self._webhooks = WebhookClient(cluster_resolver(ObjectGetter(self._scopes)), self._connections)
        webhook = obj["spec"]["conversion"]["webhook"]
        converter = conversion_module.Converter(
            endpoint_of(webhook["clientConfig"], obj["metadata"]["name"]),
            webhook["conversionReviewVersions"],
            self._webhooks.post,
        )
        features = self._scopes.table.scheme.features
        views = [
            conversion_module.ConvertedStorage(
                inner=self._scopes.storage,
                gvk=kind.gvk,
                stored=stored.gvk,
                kinds=kinds,
                converter=converter,
                outdated_before=outdated_before,
                running=self._conversions,
                clock=self._scopes.clock,
                since=self._scopes.storage.revision,
                resource=GroupResource(kind.gvk.group, obj["spec"]["names"]["plural"]),
                calls_corrupt=features.enabled("AllowUnsafeMalformedObjectDeletion"),
                cached_kind="<unspecified>" if features.at_least("v1.37") else str(kind.gvk),
            )
            for kind in served
        ]
        for view in views:
            view.siblings = [other for other in views if other is not view]
        return views

    def _store(
        self,
        obj: Object,
        version: Object,
        kinds: Mapping[str, CustomKind],
        stored: CustomKind,
        view: "ConvertedStorage | None",
        *,
        refreshes: bool,
    ) -> Store:
        """The store of one served version. All versions have the same objects, but each has its own rules. `view` is the
        storage as this version sees it through a conversion webhook."""
        spec, subresources = obj["spec"], version.get("subresources") or {}
        plural, kind = obj["status"]["acceptedNames"]["plural"], kinds[version["name"]]
        stored_schema = schema_of(next(other for other in spec["versions"] if other["name"] == stored.gvk.version))
        indexed = [path for other in spec["versions"] if other.get("served") for path in selectable(other)]
        strategy = CustomResourceStrategy(
            features=self._scopes.table.scheme.features,
            kind=kind,
            namespaced=spec["scope"] == "Namespaced",
            scale=subresources.get("scale") or {},
            has_generation=True,
            declares_rules=False,
            allow_unconditional_update=False,
            reset_fields=("status",) if subresources.get("status") is not None else (),
            selectable_fields={path: path for path in indexed},
            served_fields=selectable(version),
            presets_status=subresources.get("status") is not None and presets_status(stored_schema),
        )

        versions = CustomVersions(kind, kinds, stored, view, refreshes=refreshes)
        admission = self._scopes.services.admission_of_stores
        terminating = condition(obj, "Terminating") == "True"
        store = Store(
            StoreOptions(
                gvr=GroupVersionResource(spec["group"], versions.gvk.version, plural),
                versions=versions,
                namespaced=spec["scope"] == "Namespaced",
                prefix=prefix_of(spec["group"], plural),
                strategy=strategy,
                storage=self._scopes.storage if view is None else view,
                admission=NoCreation(admission) if terminating else admission,
                clock=self._scopes.clock,
                name_generator=self._scopes.generate_name,
                chance=self._scopes.chance,
                authorizer=self._scopes.services.authorizer,
            )
        )
        if view is not None:
            view.index = store.index
        return store

    def scope_of(self, row: APIResource) -> RequestScope:
        served = self._served[row.gvr]
        print_row, scale = row_printer(served.columns), served.scale
        paths = ScalePaths(
            scale.get("specReplicasPath", "").lstrip("."),
            scale.get("statusReplicasPath", "").lstrip("."),
            (scale.get("labelSelectorPath") or "").lstrip("."),
        )
        storage = self._storages.setdefault(row.gvr, Storage(self._scopes.storage.revision, set()))
        return RequestScope(
            resource=row,
            kind=served.kind,
            dialect=CUSTOM,
            clock=self._scopes.clock,
            recognizes=lambda gvk: None,
            store=served.store,
            row=print_row,
            scale_paths=paths,
            outdated_before=served.outdated_before,
            replicas_paths=served.replicas_paths,
            watchable_since=storage.since,
            watchers=storage.watchers,
        )

    def unpublish(self, name: str) -> None:
        gvrs = self._by_definition.pop(name, ())
        self._end_storages(gvrs)
        self._scopes.table.remove(*gvrs)
        for gvr in gvrs:
            del self._served[gvr]
        self._states.pop(name, None)

    def plain_store(self, obj: Object) -> Store:
        """A store for what needs nothing but metadata, so that no conversion can be in the way."""
        kinds = self._kinds(obj)
        stored = next(version for version in obj["spec"]["versions"] if version.get("storage"))
        return self._store(obj, stored, kinds, kinds[stored["name"]], None, refreshes=False)
