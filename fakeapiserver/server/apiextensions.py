"""Serves custom resources: follows CustomResourceDefinitions, accepts their names, adds and removes what is served.

Upstream: k8s.io/apiextensions-apiserver/pkg/{apiserver/customresource_handler.go,controller/{status,establish,finalizer}}.
"""

import asyncio
import hashlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, finalizers, is_terminating, metadata, uid
from fakeapiserver.apimachinery.schema.default import presets_status
from fakeapiserver.apis.custom_resources import resources_of
from fakeapiserver.apis.custom_schema import CustomSchema
from fakeapiserver.apis.scheme import APIResource
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.dialect.custom import CUSTOM
from fakeapiserver.endpoints.object_getter import ObjectGetter
from fakeapiserver.endpoints.scope import RequestScope, ScalePaths
from fakeapiserver.endpoints.scopes import RequestScopes, generate_name
from fakeapiserver.registry.apiextensions import accepted_names
from fakeapiserver.registry.apiextensions import conversion as conversion_module
from fakeapiserver.registry.apiextensions.api_approval import approval, is_protected
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.apiextensions.custom_versions import CustomVersions
from fakeapiserver.registry.apiextensions.customresource import CustomResourceStrategy
from fakeapiserver.registry.apiextensions.customresourcedefinition import FINALIZER, condition, set_condition
from fakeapiserver.registry.apiextensions.printer import row_printer
from fakeapiserver.registry.apiextensions.webhook_conversion import bundle_problem
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.store import Store, StoreOptions
from fakeapiserver.registry.generic.write_request import WriteRequest
from fakeapiserver.server.custom_resource_names import (
    NoCreation,
    accepted_in_use,
    replicas_paths,
    schema_of,
    selectable,
)
from fakeapiserver.server.custom_resource_state import Served, State, Storage
from fakeapiserver.server.upkeep.autoregister import AutoRegistration
from fakeapiserver.storage.interface import Event, ListQuery, StoredObject
from fakeapiserver.storage.keys import prefix_of
from fakeapiserver.transport.service_resolver import cluster_resolver
from fakeapiserver.transport.webhook import WebhookClient, endpoint_of

if TYPE_CHECKING:
    from fakeapiserver.registry.apiextensions.conversion import ConvertedStorage
    from fakeapiserver.transport.webhook import Idle, WebhookClient

log = logging.getLogger(__name__)

_RESOURCE: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))


class CustomResources:
    """Works on the definitions' own watch, so a definition is served in the turn of the event loop after its write."""

    def __init__(self, scopes: RequestScopes, idle: "Idle") -> None:
        """`idle`: connections to conversion webhooks, for the next call."""
        self._scopes = scopes
        self._served: dict[GroupVersionResource, Served] = {}
        self._by_definition: dict[str, tuple[GroupVersionResource, ...]] = {}
        # Accepted names by definition.
        self._names: dict[str, accepted_names.Names] = {}
        # Those that didn't get all names they want.
        self._waiting: set[str] = set()
        # The revision by which a definition was last brought in order.
        self._done: dict[str, int] = {}
        self._states: dict[str, State] = {}
        self._storages: dict[GroupVersionResource, Storage] = {}
        # Definitions that wait for their last instances.
        self._ending: dict[str, asyncio.Task[None]] = {}
        self.registration = AutoRegistration(scopes)
        self._webhooks: WebhookClient | None = None
        self._idle = idle
        # By webhooks, on their way.
        self._conversions: set[asyncio.Future[StoredObject]] = set()

    async def run(self) -> None:
        """Runs until cancelled. A watch that ends (a restored state) is followed by a new list."""
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
                for conversion in self._conversions:
                    conversion.cancel()
            await asyncio.sleep(0)  # a closed storage ends each watch at once

    async def sync(self) -> None:
        """Serves what the stored definitions say, and nothing else."""
        definitions = self._definitions()
        items = {
            item.key.removeprefix(definitions.prefix): item
            for item in (await definitions.storage.list(definitions.prefix)).items
        }
        for name in self._by_definition.keys() - items.keys():
            await self._withdraw(definitions, name)
        self._names = {name: accepted_in_use(item.value) for name, item in items.items()}
        self._waiting &= items.keys()
        for name, item in items.items():
            if self._done.get(name) == item.mod_revision:
                await self.registration.announce_again(name)
            else:
                await self._follow(definitions, definitions.decode(item.value))

    def _definitions(self) -> Store:
        definitions = self._scopes.store_for(_RESOURCE)
        assert definitions is not None
        return definitions

    async def _handle(self, definitions: Store, event: Event) -> None:
        name = event.object.key.removeprefix(definitions.prefix)
        if event.type == "DELETED":
            await self._withdraw(definitions, name)
        elif event.object.mod_revision > self._done.get(name, 0):  # none of the status that was written here
            await self._follow(definitions, definitions.decode(event.object.value))

    async def _follow(self, definitions: Store, obj: Object) -> None:
        """A definition that is gone or another one by now is left to the event that says so."""
        try:
            await self._serve(definitions, obj)
        except StatusError as error:
            log.info("definition %s has moved on: %s", metadata(obj)["name"], error)

    async def _serve(self, definitions: Store, obj: Object) -> None:
        if is_terminating(obj):
            self._publish(obj)
            if FINALIZER in finalizers(obj):
                await self._finalize(definitions, obj)
            return
        obj = await self._accept(definitions, obj)
        obj = await self._establish(definitions, obj)
        obj = await self._judge(definitions, obj)
        self._publish(obj)
        spec = obj["spec"]
        versions = (GroupVersion(spec["group"], version["name"]) for version in spec["versions"] if version["served"])
        await self.registration.announce(metadata(obj)["name"], versions)
        self._done[metadata(obj)["name"]] = int(metadata(obj)["resourceVersion"])

    # ------------------------------------------------------- names and serving

    async def _accept(self, definitions: Store, obj: Object) -> Object:
        """The names that hold, the condition NamesAccepted, and that it is being established (naming_controller.go)."""
        spec, status, name = obj["spec"], obj.get("status") or {}, metadata(obj)["name"]
        self._names[name] = status.get("acceptedNames") or {}  # whichever client has written them
        if accepted_names.are_accepted(spec["names"], status.get("acceptedNames") or {}):
            self._waiting.discard(name)
            return obj  # whatever became of the conditions
        group = [names for owner, names in self._names.items() if owner.partition(".")[2] == spec["group"]]
        accepted = accepted_names.accept(spec["names"], status.get("acceptedNames") or {}, group)
        self._names[name] = accepted.names
        if accepted.names == spec["names"]:
            self._waiting.discard(name)
        else:
            self._waiting.add(name)
        if accepted.names == status.get("acceptedNames") and condition(obj, "NamesAccepted") == accepted.status:
            return obj

        def change(new: Object, now: float) -> None:
            set_condition(new, "NamesAccepted", accepted.status, accepted.reason, accepted.message, now)
            established = condition(new, "Established")
            if established != "True" and accepted.status == "True":
                message = "the initial names have been accepted"
                set_condition(new, "Established", "False", "Installing", message, now)
            elif established is None:
                set_condition(new, "Established", "False", "NotAccepted", "not all names are accepted", now)
            new["status"]["acceptedNames"] = accepted.names

        changed = await self._write_status(definitions, obj, change)
        await self._reconsider(definitions, spec["group"], name)
        return changed

    async def _establish(self, definitions: Store, obj: Object) -> Object:
        """The condition Established, once the names are accepted (establishing_controller.go)."""
        if condition(obj, "NamesAccepted") != "True" or condition(obj, "Established") == "True":
            return obj
        established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        client = ((obj["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
        if client.get("caBundle") and bundle_problem(client["caBundle"]):
            established = ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
        return await self._write_status(
            definitions, obj, lambda new, now: set_condition(new, "Established", *established, now)
        )

    async def _judge(self, definitions: Store, obj: Object) -> Object:
        """Whether an API in a group of the community's is approved (apiapproval_controller.go)."""
        if not is_protected(obj["spec"]["group"]):
            return obj
        state, message = approval(obj)
        judgement = ("True" if state == "Approved" else "False", f"{state}Annotation", message)
        return await self._write_status(
            definitions,
            obj,
            lambda new, now: set_condition(new, "KubernetesAPIApprovalPolicyConformant", *judgement, now),
        )

    async def _write_status(self, definitions: Store, obj: Object, change: Callable[[Object, float], None]) -> Object:
        """The definition with a status changed in place by `change`, stored if that makes a difference."""

        def transform(current: Object | None) -> Object:
            assert current is not None
            new = {**current, "metadata": dict(metadata(current)), "status": dict(current.get("status") or {})}
            change(new, self._scopes.clock.now())
            return new

        wanted = transform(obj)
        if wanted["status"] == obj.get("status"):
            return obj
        if not is_terminating(obj):
            self._publish(wanted)  # at once: who has created it asks for it next
        request = self._request(definitions, metadata(obj)["name"], "status")
        request.uid_precondition = uid(obj)
        return definitions.decode((await definitions.write(request, transform)).value)

    async def _reconsider(self, definitions: Store, group: str, changed: str) -> None:
        """Other definitions of the group that wait for a name."""
        for name in sorted(self._waiting - {changed}):
            stored = definitions.storage.get_now(definitions.key("", name))
            if name.partition(".")[2] == group and stored is not None:
                await self._follow(definitions, definitions.decode(stored.value))

    def _publish(self, obj: Object) -> None:
        """Serves a definition whose names are accepted, or once were."""
        name = metadata(obj)["name"]
        if "True" not in (condition(obj, "NamesAccepted"), condition(obj, "Established")):
            self._unpublish(name)
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
        definitions = self._scopes.table.scheme.definitions
        kinds = {
            version["name"]: CustomKind(
                GroupVersionKind(group, version["name"], kind),
                packed.get(version["name"]) or CustomSchema(schema_of(version)),
                definitions,
            )
            for version in obj["spec"]["versions"]
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
            self._webhooks = WebhookClient(cluster_resolver(ObjectGetter(self._scopes)), self._idle)
        webhook = obj["spec"]["conversion"]["webhook"]
        converter = conversion_module.Converter(
            endpoint_of(webhook["clientConfig"]), webhook["conversionReviewVersions"], self._webhooks.post
        )
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
            allow_unconditional_update=False,
            reset_fields=("status",) if subresources.get("status") is not None else (),
            selectable_fields={path: path for path in indexed},
            served_fields=selectable(version),
            presets_status=subresources.get("status") is not None and presets_status(stored_schema),
        )

        versions = CustomVersions(kind, kinds, stored, view, refreshes=refreshes)
        terminating = condition(obj, "Terminating") == "True"
        store = Store(
            StoreOptions(
                gvr=GroupVersionResource(spec["group"], versions.gvk.version, plural),
                versions=versions,
                namespaced=spec["scope"] == "Namespaced",
                prefix=prefix_of(spec["group"], plural),
                strategy=strategy,
                storage=self._scopes.storage if view is None else view,
                admission=NoCreation(self._scopes.services.admission)
                if terminating
                else self._scopes.services.admission,
                clock=self._scopes.clock,
                name_generator=generate_name,
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

    def _unpublish(self, name: str) -> None:
        gvrs = self._by_definition.pop(name, ())
        self._end_storages(gvrs)
        self._scopes.table.remove(*gvrs)
        for gvr in gvrs:
            del self._served[gvr]
        self._states.pop(name, None)

    async def _withdraw(self, definitions: Store, name: str) -> None:
        self._unpublish(name)
        self._names.pop(name, None)
        self._waiting.discard(name)
        self._done.pop(name, None)
        await self.registration.announce(name, ())
        await self._reconsider(definitions, name.partition(".")[2], name)

    # ------------------------------------------------------------------ the end

    async def _finalize(self, definitions: Store, obj: Object) -> None:
        """Deletes the instances, then lets the definition go (crd_finalizer.go)."""
        name = metadata(obj)["name"]
        if name in self._ending:
            return

        def begin(new: Object, now: float) -> None:
            message = "CustomResource deletion is in progress"
            set_condition(new, "Terminating", "True", "InstanceDeletionInProgress", message, now)

        obj = await self._write_status(definitions, obj, begin)
        if condition(obj, "Established") != "True":
            await self._let_go(definitions, obj, "NeverEstablished", "resource was never established")
            return
        gvrs = self._by_definition.get(name, ())
        served = self._served[gvrs[0]] if gvrs else None
        store = self._plain_store(obj)
        if served is not None and await self._delete_instances(store, served.kind):
            # Some have finalizers of their own.
            task = asyncio.create_task(self._wait_and_let_go(definitions, obj, store))
            self._ending[name] = task
            task.add_done_callback(lambda _: self._ending.pop(name, None))
            return
        await self._let_go(definitions, obj, "InstanceDeletionCompleted", "removed all instances")

    def _plain_store(self, obj: Object) -> Store:
        """A store for what needs nothing but metadata, so that no conversion can be in the way."""
        kinds = self._kinds(obj)
        stored = next(version for version in obj["spec"]["versions"] if version.get("storage"))
        return self._store(obj, stored, kinds, kinds[stored["name"]], None, refreshes=False)

    async def _delete_instances(self, store: Store, kind: CustomKind) -> bool:
        """Reports whether any are left."""
        for item in (await store.storage.list(store.prefix)).items:
            namespace, _, instance = item.key.removeprefix(store.prefix).rpartition("/")
            request = WriteRequest(
                kind=kind, user=_SERVER, manager="kube-apiserver", namespace=namespace, name=instance
            )
            with suppress(StatusError):
                await store.deleter.delete(request, Deletion())
        return bool((await store.storage.list(store.prefix, ListQuery(limit=1))).items)

    async def _wait_and_let_go(self, definitions: Store, obj: Object, store: Store) -> None:
        watcher = store.storage.watch(store.prefix, revision=None, predicate=None)
        try:
            while (await store.storage.list(store.prefix, ListQuery(limit=1))).items:
                if await watcher.next_batch(3600.0) is None:
                    return  # another state was restored
            await self._let_go(definitions, obj, "InstanceDeletionCompleted", "removed all instances")
        except StatusError as error:
            log.info("definition %s has moved on: %s", metadata(obj)["name"], error)
        finally:
            watcher.close()

    async def _let_go(self, definitions: Store, obj: Object, reason: str, message: str) -> None:
        def end(new: Object, now: float) -> None:
            meta = new["metadata"]
            meta["finalizers"] = [finalizer for finalizer in meta.get("finalizers", ()) if finalizer != FINALIZER]
            set_condition(new, "Terminating", "False", reason, message, now)

        await self._write_status(definitions, obj, end)

    def _request(self, store: Store, name: str, subresource: str) -> WriteRequest:
        gvk = store.gvk
        row = self._scopes.table.for_kind(gvk)
        scope = self._scopes.lookup(*row.gvr) if row is not None else None
        assert scope is not None
        return WriteRequest(
            kind=scope.kind, user=_SERVER, manager="kube-apiserver", namespace="", name=name, subresource=subresource
        )
