"""Upstream: pkg/controller/garbagecollector/{garbagecollector,operations,patch}.go.

Upstream asks the server for each object and owner once more before it acts. Here what informers know of an object is enough where they
have seen it: a delete names uid and resourceVersion, so it fails where something has changed since.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import DeletedFinalStateUnknown
from fakeapiserver.client.cache.shared_informer import Tombstone
from fakeapiserver.client.discovery import APIResource
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, ResourceClient
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found, is_unsupported_media_type
from fakeapiserver.client.rest_mapper import NoMatchError
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.component_helpers.resource_monitors import ResourceMonitors
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.reconcile import ReconcilerFunc, Request, Result
from fakeapiserver.controllers.garbage_collector.graph import (
    FOREGROUND,
    ORPHAN,
    DependencyGraph,
    Node,
    ObjectReference,
    OwnerReference,
    owner_identity,
)

log = logging.getLogger(__name__)

_IGNORED: Final = frozenset((GroupResource("", "events"), GroupResource("events.k8s.io", "events")))
_VERBS: Final = ("delete", "list", "watch")
_ORPHANED_AT_ONCE: Final = 32
_MAX_TRIES: Final = 4


class _NamespacedOwnerOfClusterScopedObject(Exception):
    """Cluster-scoped objects cannot refer to namespaced owners: trying again is of no use."""


class _References(NamedTuple):
    """An object's references by what their owners are: there, gone, or waiting for their dependents to go."""

    solid: Sequence[OwnerReference]
    dangling: Sequence[OwnerReference]
    waiting: Sequence[OwnerReference]


class GarbageCollector:
    """Requests are uids of the graph's nodes. It is the graph's Attempts."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._mapper = context.mapper
        self._recorder = context.recorder("garbage-collector-controller")
        self.graph = DependencyGraph(self)
        failures = context.metrics.counter(
            "garbagecollector_controller_resources_sync_error_total", "Times when not all resources could be read"
        )
        self.monitors = ResourceMonitors(context, _VERBS, _is_collected, self._handler, on_failure=failures.inc)
        # Resources of which the server takes no strategic merge patch.
        self._merge_only: set[GroupVersionResource] = set()
        workers = context.configuration.concurrent_gc_syncs
        self._to_delete = context.controller(
            ReconcilerFunc(self.reconcile_deletion), workers=workers, name=f"{context.name}-attempt-to-delete"
        )
        self._to_orphan = context.controller(
            ReconcilerFunc(self.reconcile_orphaning), workers=workers, name=f"{context.name}-attempt-to-orphan"
        )
        self.controllers = (self.monitors.controller(f"{context.name}-sync"), self._to_delete, self._to_orphan)

    def _handler(self, resource: APIResource) -> "_Handler":
        return _Handler(self.graph, str(resource.kind.group_version), resource.kind.kind)

    # ------------------------------------------------------------ what the graph finds

    def attempt_to_delete(self, node: Node) -> None:
        self._to_delete.queue.add(Request("", node.identity.uid))

    def attempt_to_delete_later(self, node: Node) -> None:
        self._to_delete.queue.add_rate_limited(Request("", node.identity.uid))

    def attempt_to_orphan(self, node: Node) -> None:
        self._to_orphan.queue.add(Request("", node.identity.uid))

    def invalid_owner_namespace(self, dependent: ObjectReference, owner: ObjectReference) -> None:
        kind, api_version, namespace, name, uid = dependent
        self._recorder.event(
            {"kind": kind, "namespace": namespace, "name": name, "uid": uid, "apiVersion": api_version},
            "Warning",
            "OwnerRefInvalidNamespace",
            f'ownerRef {owner} does not exist in namespace "{namespace}"',
        )

    # -------------------------------------------------------------------- queues

    async def reconcile_deletion(self, request: Request) -> Result | None:
        await self.monitors.wait_for_sync()
        node = self.graph.nodes.get(request.name)
        if node is None:
            return None
        try:
            result = await self._attempt_to_delete(node)
        except _NamespacedOwnerOfClusterScopedObject:
            return None
        except NoMatchError as error:
            # the kind may become known, or it never was one
            log.debug("%s: %s", node.identity, error)
            return Result(requeue=True)
        except StatusError as error:
            if not is_conflict(error):
                raise
            return Result(requeue=True)  # the informers' state is outdated
        # a virtual node whose object comes and goes unseen would stay for ever
        return Result(requeue=True) if result and node.virtual else None

    async def reconcile_orphaning(self, request: Request) -> None:
        await self.monitors.wait_for_sync()
        owner = self.graph.nodes.get(request.name)
        if owner is None:
            return
        await self._orphan_dependents(owner)
        await self._remove_finalizer(owner.identity, ORPHAN)

    async def _attempt_to_delete(self, node: Node) -> bool:
        """Tries to delete a node's object; returns False, after informing the graph, if no object has the node's
        identity.
        """
        if node.being_deleted and not node.deleting_dependents:
            return True
        latest = await self._latest(node)
        if latest is None:
            self.graph.found_absent(node.identity)
            return False
        if node.deleting_dependents:
            await self._process_deleting_dependents(node)
            return True
        metadata = latest["metadata"]
        owners = metadata.get("ownerReferences") or ()
        if not owners:
            return True
        references = await self._classify(node, owners)
        if references.solid:
            # those that wait must not wait for this one
            await self._remove_owners(node, [*references.dangling, *references.waiting])
            return True
        if references.waiting and node.dependents:
            if any(dependent.deleting_dependents for dependent in node.dependents):
                await self._unblock_owners(node)  # there may be a circle
            policy = "Foreground"
        else:
            policy = _policy_of(metadata.get("finalizers") or ())
        if await self._delete(node.identity, metadata["resourceVersion"], owners, policy):
            return True
        self.graph.found_absent(node.identity)
        return False

    async def _process_deleting_dependents(self, node: Node) -> None:
        blocking = node.blocking_dependents()
        if not blocking:
            await self._remove_finalizer(node.identity, FOREGROUND)
        for dependent in blocking:
            if not dependent.being_deleted:
                self.attempt_to_delete(dependent)

    async def _classify(self, node: Node, references: Sequence[OwnerReference]) -> _References:
        solid, dangling, waiting = [], [], []
        for reference in references:
            owner = await self._owner(node, reference)
            if owner is None:
                dangling.append(reference)
            elif is_terminating(owner) and FOREGROUND in (owner["metadata"].get("finalizers") or ()):
                waiting.append(reference)
            else:
                solid.append(reference)
        return _References(solid, dangling, waiting)

    async def _owner(self, node: Node, reference: OwnerReference) -> Object | None:
        """Returns the owner, or None if it doesn't exist.

        Raises NoMatchError, _NamespacedOwnerOfClusterScopedObject.
        """
        namespace = node.identity.namespace
        known = self.graph.absent_owners
        if owner_identity(reference, "") in known or owner_identity(reference, namespace) in known:
            return None
        _, namespaced = await self._resource(reference["apiVersion"], reference["kind"])
        if namespaced and not namespace:
            raise _NamespacedOwnerOfClusterScopedObject
        identity = owner_identity(reference, namespace if namespaced else "")
        owner = self._known(identity) or await self._get(identity)
        if owner is None or owner["metadata"]["uid"] != identity.uid:
            known.add(identity)
            return None
        return owner

    async def _orphan_dependents(self, owner: Node) -> None:
        """Removes the owner's reference from its dependents. Raises an ExceptionGroup of the failures."""
        reference = {"uid": owner.identity.uid}
        errors: list[Exception] = []
        dependents = [*owner.dependents]
        for start in range(0, len(dependents), _ORPHANED_AT_ONCE):
            some = dependents[start : start + _ORPHANED_AT_ONCE]
            done = await asyncio.gather(
                *(self._remove_owners(dependent, [reference]) for dependent in some), return_exceptions=True
            )
            errors += [error for error in done if isinstance(error, Exception) and not is_not_found(error)]
        if errors:
            raise ExceptionGroup(f"failed to orphan dependents of owner {owner.identity}", errors)

    # ------------------------------------------------------------------- the server

    async def _resource(self, api_version: str, kind: str) -> tuple[GroupVersionResource, bool]:
        """(where objects of the kind are, whether they are in namespaces). NoMatchError."""
        gvk = GroupVersionKind(*_group_version(api_version), kind)
        monitor = self.monitors.of(gvk)
        if monitor is not None:
            return monitor.resource.gvr, monitor.resource.namespaced
        mapping = await self._mapper.mapping_of(gvk)
        return mapping.gvr, mapping.namespaced

    async def _objects(self, identity: ObjectReference) -> ResourceClient:
        """Returns the client for the object. Raises NoMatchError, _NamespacedOwnerOfClusterScopedObject."""
        gvr, namespaced = await self._resource(identity.api_version, identity.kind)
        if namespaced and not identity.namespace:
            raise _NamespacedOwnerOfClusterScopedObject
        return self._client.resource(gvr, identity.namespace if namespaced else "", metadata_only=True)

    async def _latest(self, node: Node) -> Object | None:
        """Returns the object with the node's identity, or None."""
        obj = None if node.virtual else self._known(node.identity)
        if obj is None:
            obj = await self._get(node.identity)
        return obj if obj is not None and obj["metadata"]["uid"] == node.identity.uid else None

    def _known(self, identity: ObjectReference) -> Object | None:
        """Returns the informer's object with this uid, or None."""
        monitor = self.monitors.of(GroupVersionKind(*_group_version(identity.api_version), identity.kind))
        if monitor is None:
            return None
        name, namespace = identity.name, identity.namespace if monitor.resource.namespaced else ""
        obj = monitor.informer.indexer.get_by_key(f"{namespace}/{name}" if namespace else name)
        return obj if obj is not None and obj["metadata"]["uid"] == identity.uid else None

    async def _get(self, identity: ObjectReference) -> Object | None:
        objects = await self._objects(identity)
        try:
            return await objects.get(identity.name)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    async def _delete(
        self, identity: ObjectReference, version: str, owners: Sequence[OwnerReference], policy: str
    ) -> bool:
        """False: it isn't there. A change since `version` matters only if it has other `owners` now."""
        objects = await self._objects(identity)
        try:
            await objects.delete(identity.name, uid=identity.uid, resource_version=version, propagation_policy=policy)
            return True
        except StatusError as error:
            if is_not_found(error):
                return False
            if not (is_conflict(error) and version):
                raise
            latest = await self._get(identity)
            if latest is None:
                return False
            metadata = latest["metadata"]
            unchanged = [*(metadata.get("ownerReferences") or ())] == [*owners]
            if metadata["uid"] != identity.uid or metadata["resourceVersion"] == version or not unchanged:
                raise
        return await self._delete(identity, "", (), policy)

    async def _remove_finalizer(self, identity: ObjectReference, finalizer: str) -> None:
        for tries in range(_MAX_TRIES):
            latest = await self._get(identity)
            if latest is None:
                return
            metadata = latest["metadata"]
            finalizers = metadata.get("finalizers") or ()
            if finalizer not in finalizers:
                return
            others = [name for name in finalizers if name != finalizer]
            change = {"resourceVersion": metadata["resourceVersion"], "finalizers": others}
            try:
                await (await self._objects(identity)).patch(identity.name, {"metadata": change})
                return
            except StatusError as error:
                if not is_conflict(error) or tries == _MAX_TRIES - 1:
                    raise

    async def _remove_owners(self, node: Node, references: Sequence[OwnerReference]) -> None:
        uids = {reference["uid"] for reference in references}
        if not uids:
            return
        await self._patch(
            node,
            [{"$patch": "delete", "uid": uid} for uid in uids],
            lambda owners: [owner for owner in owners if owner["uid"] not in uids],
        )

    async def _unblock_owners(self, node: Node) -> None:
        """Its owners don't wait for it any more."""
        await self._patch(
            node,
            [{**owner, "blockOwnerDeletion": False} for owner in node.owners if owner.get("blockOwnerDeletion")],
            lambda _: [{**owner, "blockOwnerDeletion": False} for owner in node.owners],
        )

    async def _patch(
        self,
        node: Node,
        strategic: Sequence[OwnerReference],
        merged: Callable[[Sequence[OwnerReference]], Sequence[OwnerReference]],
    ) -> None:
        """Changes ownerReferences by a list to merge, or, where the server does not support that, by `merged` of the
        existing ones.
        """
        identity = node.identity
        objects = await self._objects(identity)
        if objects.gvr not in self._merge_only:
            patch = {"metadata": {"uid": identity.uid, "ownerReferences": strategic}}
            try:
                await objects.patch(identity.name, patch, patch_type=STRATEGIC_MERGE_PATCH)
                return
            except StatusError as error:
                if not is_unsupported_media_type(error):
                    raise
            self._merge_only.add(objects.gvr)
        metadata = (self._known(identity) or await objects.get(identity.name))["metadata"]
        if metadata["uid"] != identity.uid:
            return
        change = {
            "resourceVersion": metadata["resourceVersion"],
            "ownerReferences": merged(metadata.get("ownerReferences") or ()) or None,
        }
        await objects.patch(identity.name, {"metadata": change})


class _Handler(Struct, frozen=True):
    """Passes an informer's events on to the graph."""

    graph: DependencyGraph
    api_version: str
    kind: str

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        self.graph.changed(self.api_version, self.kind, None, obj)

    def on_update(self, old: Object, new: Object) -> None:
        if old["metadata"]["uid"] == new["metadata"]["uid"]:
            self.graph.changed(self.api_version, self.kind, old, new)
        else:  # the watch missed a deletion and a creation
            self.graph.deleted(self.api_version, self.kind, old)
            self.graph.changed(self.api_version, self.kind, None, new)

    def on_delete(self, obj: Tombstone) -> None:
        last = obj.object if isinstance(obj, DeletedFinalStateUnknown) else obj
        self.graph.deleted(self.api_version, self.kind, last)


def _is_collected(resource: APIResource) -> bool:
    return resource.gvr.group_resource not in _IGNORED


def _policy_of(finalizers: Collection[str]) -> str:
    """Returns the propagation policy of a deletion that has begun."""
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"


def _group_version(api_version: str) -> GroupVersion:
    """Parses an apiVersion. Raises NoMatchError for an invalid one."""
    try:
        return GroupVersion.parse(api_version)
    except ValueError as error:
        raise NoMatchError(str(error)) from None


def new(context: ControllerContext) -> Sequence[Controller]:
    """Returns the controllers; none if the configuration switches garbage collection off."""
    if not context.configuration.enable_garbage_collector:
        return []
    return GarbageCollector(context).controllers
