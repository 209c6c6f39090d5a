"""Serves custom resources: follows CustomResourceDefinitions, accepts their names, adds and removes what is served.

Upstream: k8s.io/apiextensions-apiserver/pkg/{apiserver/customresource_handler.go,controller/{status,establish,finalizer}}.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fakeapiserver.admission.handler import forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, finalizers, is_terminating, metadata, uid
from fakeapiserver.apis.custom_resources import resources_of
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.scope import RequestScope, ScalePaths
from fakeapiserver.endpoints.scopes import RequestScopes, generate_name
from fakeapiserver.registry.apiextensions import accepted_names
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.apiextensions.customresource import CustomResourceStrategy
from fakeapiserver.registry.apiextensions.customresourcedefinition import FINALIZER, condition, set_condition
from fakeapiserver.registry.apiextensions.printer import row_printer
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.interfaces import AdmissionChain
from fakeapiserver.registry.generic.store import Store, WriteRequest
from fakeapiserver.server.autoregister import AutoRegistration
from fakeapiserver.storage.interface import Event

log = logging.getLogger(__name__)

_RESOURCE: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))


@dataclass(frozen=True, slots=True)
class _Served:
    """One version of one custom resource."""

    row: APIResource
    kind: CustomKind
    store: Store
    version: Object
    replicas_paths: dict[str, tuple[str, ...] | None]


class CustomResources:
    """Works on the definitions' own watch, so a definition is served in the turn of the event loop after its write."""

    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes
        self._served: dict[GroupVersionResource, _Served] = {}
        self._by_definition: dict[str, tuple[GroupVersionResource, ...]] = {}
        # Accepted names by definition.
        self._names: dict[str, accepted_names.Names] = {}
        self._registration = AutoRegistration(scopes)
        # Those on their way out whose instances still are.
        self._waiting: dict[str, asyncio.Task[None]] = {}
        scopes.make_custom = self._scope

    async def run(self) -> None:
        """Until cancelled. A watch that ends (a restored state) is followed by a new list."""
        definitions = self._definitions()
        while True:
            watcher = definitions.storage.watch(definitions.prefix, revision=None, predicate=None)
            await self.sync()
            try:
                while (events := await watcher.next_batch(3600.0)) is not None:
                    for event in events:
                        await self._handle(definitions, event)
            finally:
                watcher.close()
            await asyncio.sleep(0)  # a closed storage ends each watch at once

    async def sync(self) -> None:
        """Serves what the stored definitions say, and nothing else."""
        definitions = self._definitions()
        objects = [
            definitions.decode(item.value) for item in (await definitions.storage.list(definitions.prefix)).items
        ]
        for name in self._by_definition.keys() - {metadata(obj)["name"] for obj in objects}:
            await self._withdraw(definitions, name)
        self._names = {metadata(obj)["name"]: (obj.get("status") or {}).get("acceptedNames") or {} for obj in objects}
        for obj in objects:
            await self._follow(definitions, obj)

    def _definitions(self) -> Store:
        definitions = self._scopes.store_for(_RESOURCE)
        assert definitions is not None
        return definitions

    async def _handle(self, definitions: Store, event: Event) -> None:
        obj = definitions.decode(event.object.value)
        if event.type == "DELETED":
            await self._withdraw(definitions, metadata(obj)["name"])
        else:
            await self._follow(definitions, obj)

    async def _follow(self, definitions: Store, obj: Object) -> None:
        """A definition that is gone or another one by now is left to the event that says so."""
        try:
            await self._serve(definitions, obj)
        except StatusError as error:
            log.info("definition %s has moved on: %s", metadata(obj)["name"], error)

    async def _serve(self, definitions: Store, obj: Object) -> None:
        if is_terminating(obj):
            self._publish(definitions, obj)
            if FINALIZER in finalizers(obj):
                await self._finalize(definitions, obj)
            return
        self._publish(definitions, await self._accept(definitions, obj))
        spec = obj["spec"]
        versions = (GroupVersion(spec["group"], version["name"]) for version in spec["versions"] if version["served"])
        await self._registration.announce(metadata(obj)["name"], versions)

    # ------------------------------------------------------- names and serving

    async def _accept(self, definitions: Store, obj: Object) -> Object:
        """The definition with the conditions NamesAccepted and Established, and the names that hold."""
        spec, status = obj["spec"], obj.get("status") or {}
        group = [names for owner, names in self._names.items() if owner.partition(".")[2] == spec["group"]]
        found = accepted_names.accept(spec["names"], status.get("acceptedNames") or {}, group)
        name = metadata(obj)["name"]
        self._names[name] = found.names

        def transform(current: Object | None) -> Object:
            assert current is not None
            new = {**current, "metadata": dict(metadata(current))}
            now = self._scopes.clock.now()
            established = condition(new, "Established")
            set_condition(new, "NamesAccepted", found.status, found.reason, found.message, now)
            if established != "True" and found.status == "True":
                message = "the initial names have been accepted"
                set_condition(new, "Established", "True", "InitialNamesAccepted", message, now)
            elif established is None:
                set_condition(new, "Established", "False", "NotAccepted", "not all names are accepted", now)
            new["status"]["acceptedNames"] = found.names
            return new

        wanted = transform(obj)
        if wanted["status"] == status:
            return obj
        await definitions.update(self._request(definitions, name, "status"), transform)
        await self._reconsider(definitions, spec["group"], name)
        return wanted

    async def _reconsider(self, definitions: Store, group: str, changed: str) -> None:
        """Other definitions of the group that wait for a name."""
        for item in definitions.storage.list_now(definitions.prefix).items:
            name = item.key.removeprefix(definitions.prefix)
            if name.partition(".")[2] != group or name == changed:
                continue
            obj = definitions.decode(item.value)
            if (obj.get("status") or {}).get("acceptedNames") != obj["spec"]["names"]:
                await self._follow(definitions, obj)

    def _publish(self, definitions: Store, obj: Object) -> None:
        name = metadata(obj)["name"]
        if condition(obj, "Established") != "True":
            return
        served = list(self._versions(obj))
        before = set(self._by_definition.get(name, ()))
        gvrs = tuple(item.row.gvr for item in served)
        unchanged = before == set(gvrs) and all(
            (self._served[item.row.gvr].row, self._served[item.row.gvr].version) == (item.row, item.version)
            for item in served
        )
        if unchanged and gvrs:
            return
        self._scopes.table.remove(*(before - set(gvrs)))
        for item in served:
            self._served[item.row.gvr] = item
        self._by_definition[name] = gvrs
        self._scopes.table.insert(*(item.row for item in served))

    def _versions(self, obj: Object) -> Iterator[_Served]:
        store = self._store(obj)
        versions = {version["name"]: version for version in obj["spec"]["versions"]}
        for row in resources_of(obj):
            version = versions[row.gvr.version]
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            kind = CustomKind(row.gvk, schema, self._scopes.table.scheme.definitions)
            yield _Served(row, kind, store, version, _replicas_paths(obj))

    def _store(self, obj: Object) -> Store:
        spec = obj["spec"]
        storage_version = next(version for version in spec["versions"] if version.get("storage"))
        gvk = GroupVersionKind(spec["group"], storage_version["name"], spec["names"]["kind"])
        plural = spec["names"]["plural"]
        has_status = "status" in (storage_version.get("subresources") or {})
        paths = [field["jsonPath"].lstrip(".") for field in storage_version.get("selectableFields") or ()]
        scale = (storage_version.get("subresources") or {}).get("scale") or {}
        strategy = CustomResourceStrategy(
            scale_path=scale.get("specReplicasPath", ""),
            has_generation=True,
            allow_unconditional_update=False,
            reset_fields=("status",) if has_status else (),
            selectable_fields={path: path for path in paths},
        )
        return Store(
            gvr=GroupVersionResource(spec["group"], gvk.version, plural),
            gvk=gvk,
            namespaced=spec["scope"] == "Namespaced",
            prefix=f"/registry/{spec['group']}/{plural}/",
            strategy=strategy,
            storage=self._scopes.storage,
            admission=_NoCreation(self._scopes.admission) if is_terminating(obj) else self._scopes.admission,
            clock=self._scopes.clock,
            name_generator=generate_name,
            convert=_with_api_version,
            kind_in=lambda api_version: self._scopes.kind_in(gvk, api_version),
        )

    def _scope(self, row: APIResource) -> RequestScope:
        served = self._served[row.gvr]
        print_row = row_printer(served.version.get("additionalPrinterColumns") or ())
        scale = (served.version.get("subresources") or {}).get("scale") or {}
        paths = ScalePaths(
            scale.get("specReplicasPath", "").lstrip("."),
            scale.get("statusReplicasPath", "").lstrip("."),
            (scale.get("labelSelectorPath") or "").lstrip("."),
        )
        return RequestScope(
            resource=row,
            kind=served.kind,
            clock=self._scopes.clock,
            recognizes=lambda gvk: None,
            store=served.store,
            row=print_row,
            scale_paths=paths,
            replicas_paths=served.replicas_paths,
        )

    async def _withdraw(self, definitions: Store, name: str) -> None:
        gvrs = self._by_definition.pop(name, ())
        self._scopes.table.remove(*gvrs)
        for gvr in gvrs:
            del self._served[gvr]
        self._names.pop(name, None)
        await self._registration.announce(name, ())
        await self._reconsider(definitions, name.partition(".")[2], name)

    # ------------------------------------------------------------------ the end

    async def _finalize(self, definitions: Store, obj: Object) -> None:
        """Deletes the instances, then lets the definition go."""
        name = metadata(obj)["name"]
        gvrs = self._by_definition.get(name, ())
        if gvrs:
            store = self._served[gvrs[0]].store
            for item in (await store.storage.list(store.prefix)).items:
                namespace, _, instance = item.key.removeprefix(store.prefix).rpartition("/")
                request = self._request(store, instance, "")
                request.namespace = namespace
                await store.delete(request, Deletion())
            if (await store.storage.list(store.prefix, limit=1)).items:
                # Instances with finalizers of their own: their end brings this one back.
                if name not in self._waiting:
                    self._waiting[name] = asyncio.create_task(self._wait_for_end(definitions, name, store))
                return

        def transform(current: Object | None) -> Object:
            assert current is not None
            meta = dict(metadata(current))
            meta["finalizers"] = [finalizer for finalizer in meta.get("finalizers", ()) if finalizer != FINALIZER]
            new = {**current, "metadata": meta}
            message = "removed all instances"
            set_condition(new, "Terminating", "False", "InstanceDeletionCompleted", message, self._scopes.clock.now())
            return new

        request = self._request(definitions, name, "status")
        request.uid_precondition = uid(obj)
        await definitions.update(request, transform)

    async def _wait_for_end(self, definitions: Store, name: str, store: Store) -> None:
        """Until the last instance is gone, or the storage is closed."""
        watcher = store.storage.watch(store.prefix, revision=None, predicate=None)
        try:
            while (await store.storage.list(store.prefix, limit=1)).items:
                if await watcher.next_batch(3600.0) is None:
                    return
        finally:
            watcher.close()
            del self._waiting[name]
        definition = definitions.storage.get_now(definitions.key("", name))
        if definition is not None:
            await self._follow(definitions, definitions.decode(definition.value))

    def _request(self, store: Store, name: str, subresource: str) -> WriteRequest:
        gvk = store.gvk
        row = self._scopes.table.for_kind(gvk)
        scope = self._scopes.lookup(*row.gvr) if row is not None else None
        assert scope is not None
        return WriteRequest(
            kind=scope.kind, user=_SERVER, manager="kube-apiserver", namespace="", name=name, subresource=subresource
        )


def _replicas_paths(obj: Object) -> dict[str, tuple[str, ...] | None]:
    """apiVersion -> the path elements of the replicas; None for a version without the scale subresource."""
    found: dict[str, tuple[str, ...] | None] = {}
    for version in obj["spec"]["versions"]:
        scale = (version.get("subresources") or {}).get("scale")
        parts = scale.get("specReplicasPath", "").lstrip(".").split(".") if scale else ()
        found[f"{obj['spec']['group']}/{version['name']}"] = tuple("f:" + part for part in parts) or None
    return found


class _NoCreation:
    """The admission of objects whose definition is on its way out."""

    def __init__(self, delegate: AdmissionChain) -> None:
        self._delegate = delegate

    async def admit(self, attributes: Attributes) -> None:
        if attributes.operation == "CREATE":
            raise forbidden(attributes, "create not allowed while custom resource definition is terminating")
        await self._delegate.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._delegate.validate(attributes)


def _with_api_version(obj: Object, gvk: GroupVersionKind) -> Object:
    """Conversion strategy None: nothing but the apiVersion differs."""
    return {**obj, "apiVersion": str(gvk.group_version)}
