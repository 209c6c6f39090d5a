"""Upstream: pkg/controller/namespace/namespace_controller.go, deletion/namespaced_resources_deleter.go."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.discovery import APIResource, check_complete, preferred_resources
from fakeapiserver.client.errors import (
    StatusError,
    TransportError,
    is_conflict,
    is_method_not_supported,
    is_not_found,
)
from fakeapiserver.client.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    MaxOfRateLimiter,
)
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NAMESPACES, PODS, is_terminating
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.namespace.conditions import Findings, with_findings

log = logging.getLogger(__name__)

# The estimated time until a finalizer's owner removes it, in seconds.
_FINALIZER_ESTIMATE: Final = 15
_FINALIZER: Final = "kubernetes"
_Failures = (StatusError, TransportError, TimeoutError, OSError)


class _Emptied(NamedTuple):
    """The rest of one resource. estimate: seconds until it is gone; 0 if that is unknown or nothing is left."""

    estimate: int = 0
    remaining: int = 0
    finalizers: Mapping[str, int] = MappingProxyType({})
    error: Exception | None = None


class NamespaceController:
    """Requests are namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._discovery = context.discovery
        self._clock = context.clock
        self._grace = context.configuration.namespace_deletion_grace
        self._namespaces = context.client.resource(NAMESPACES)
        self.namespaces = context.informer(NAMESPACES)
        self.pods = context.informer(PODS)

    def namespace_changed(self, event: Event, queue: Queue) -> None:
        """Some seconds after its deletion was asked for."""
        if isinstance(event, DeleteEvent):
            return
        obj = object_of(event)
        if is_terminating(obj):
            queue.add_after(Request("", obj["metadata"]["name"]), self._grace)

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """The rest of a terminating namespace can go once its last pod is gone."""
        if not isinstance(event, DeleteEvent):
            return
        name = object_of(event)["metadata"]["namespace"]
        namespace = self.namespaces.indexer.get_by_key(name)
        if namespace is None or not is_terminating(namespace) or self.pods.indexer.by_index(NAMESPACE_INDEX, name):
            return
        since = seconds_of(namespace["metadata"]["deletionTimestamp"]) or 0.0
        queue.add_after(Request("", name), max(0.0, since + self._grace - self._clock.now()))

    async def reconcile(self, request: Request) -> Result | None:
        if self.namespaces.indexer.get_by_key(request.name) is None:
            return None
        try:
            return await self._delete(request.name)
        except StatusError as error:
            if is_not_found(error):  # another client deleted it
                return None
            raise

    async def _delete(self, name: str) -> Result | None:
        namespace = await self._namespaces.get(name)
        if not is_terminating(namespace):
            return None
        namespace = await self._retry_on_conflict(namespace, self._mark_terminating)
        if not is_terminating(namespace) or not namespace["spec"].get("finalizers"):
            return None
        namespace, estimate, findings = await self._delete_all_content(namespace)
        if failures := findings.failures():
            raise ExceptionGroup(f"deletion of namespace {name} failed", failures)
        if estimate:
            log.debug("content remains in namespace %s, perhaps for %d s", name, estimate)
            return Result(requeue_after=estimate // 2 + 1)
        await self._retry_on_conflict(namespace, self._finalize)
        return None

    async def _retry_on_conflict(self, namespace: Object, write: Callable[[Object], Awaitable[Object]]) -> Object:
        """RuntimeError when the name is another namespace's by now."""
        while True:
            try:
                return await write(namespace)
            except StatusError as error:
                if not is_conflict(error):
                    raise
            latest = await self._namespaces.get(namespace["metadata"]["name"])
            if latest["metadata"]["uid"] != namespace["metadata"]["uid"]:
                raise RuntimeError("namespace uid has changed across retries")
            namespace = latest

    async def _mark_terminating(self, namespace: Object) -> Object:
        if not is_terminating(namespace) or namespace["status"].get("phase") == "Terminating":
            return namespace
        return await self._namespaces.update_status(
            {**namespace, "status": {**namespace["status"], "phase": "Terminating"}}
        )

    async def _finalize(self, namespace: Object) -> Object:
        others = sorted({name for name in namespace["spec"].get("finalizers") or () if name != _FINALIZER})
        return await self._namespaces.update(
            {**namespace, "spec": {**namespace["spec"], "finalizers": others}}, "finalize"
        )

    # ------------------------------------------------------------------------ content

    async def _delete_all_content(self, namespace: Object) -> tuple[Object, int, Findings]:
        """The namespace as it is now, the estimated seconds until everything is gone, and what was found."""
        findings, estimate = Findings(), 0
        for resource in await self._deletable_resources(findings):
            emptied = await self._empty(namespace, resource)
            estimate = max(estimate, emptied.estimate)
            error = emptied.error
            if emptied.remaining:
                findings.remaining[resource.gvr.group_resource] += emptied.remaining
                findings.finalizers.update(emptied.finalizers)
            if resource.gvr == PODS:
                if error is not None:
                    error = RuntimeError(
                        f"failed to delete pods for namespace: {namespace['metadata']['name']}, err: {error}"
                    )
                    findings.errors.append(error)
                if emptied.remaining:
                    # what pods use stays until they are gone
                    break
            elif error is not None:
                findings.errors.append(error)
        else:
            findings.counted = True
        changed = with_findings(namespace, findings, rfc3339(self._clock.now()))
        if changed is not None:
            try:
                namespace = await self._namespaces.update_status(changed)
            except _Failures as error:
                log.warning("couldn't update the conditions of namespace %s: %s", namespace["metadata"]["name"], error)
        return namespace, estimate, findings

    async def _deletable_resources(self, findings: Findings) -> Sequence[APIResource]:
        """Pods first. Those that can't be discovered now are found later."""
        try:
            groups = await self._discovery.groups()
        except _Failures as error:
            findings.discovery_error = error
            return ()
        try:
            check_complete(groups)
        except Exception as error:
            findings.discovery_error = error
        resources = [resource for resource in preferred_resources(groups, ("delete",)) if resource.namespaced]
        return sorted(resources, key=lambda resource: resource.gvr != PODS)

    async def _empty(self, namespace: Object, resource: APIResource) -> _Emptied:
        """Deletes all objects of one resource, and looks what is left."""
        name, gvr = namespace["metadata"]["name"], resource.gvr
        estimate = 0
        try:
            # most namespaces have nothing of most resources
            if await self._list(resource, name) == []:
                return _Emptied()
            if gvr == PODS:
                estimate = await self._estimate_graceful_termination(namespace)
            if not await self._delete_collection(resource, name):
                await self._delete_each_item(resource, name)
            left = await self._list(resource, name)
        except _Failures as error:
            return _Emptied(estimate, error=error)
        if left is None:
            return _Emptied(estimate)
        if not left:
            return _Emptied()
        finalizers = Counter(each for obj in left for each in obj["metadata"].get("finalizers") or ())
        if estimate:
            return _Emptied(estimate, len(left), finalizers)
        if finalizers:
            return _Emptied(_FINALIZER_ESTIMATE, len(left), finalizers)
        unexpected = RuntimeError(f"unexpected items still remain in namespace: {name} for gvr: {_text(gvr)}")
        return _Emptied(0, len(left), error=unexpected)

    async def _delete_collection(self, resource: APIResource, namespace: str) -> bool:
        """Reports whether the server can do that."""
        if "deletecollection" not in resource.verbs:
            return False
        objects = self._client.resource(resource.gvr, namespace)
        try:
            await objects.delete_collection(propagation_policy="Background")
        except StatusError as error:
            if is_method_not_supported(error) or is_not_found(error):
                return False
            raise
        return True

    async def _delete_each_item(self, resource: APIResource, namespace: str) -> None:
        objects = self._client.resource(resource.gvr, namespace)
        for obj in await self._list(resource, namespace) or ():
            try:
                await objects.delete(obj["metadata"]["name"], propagation_policy="Background")
            except StatusError as error:
                if not (is_not_found(error) or is_method_not_supported(error)):
                    raise

    async def _list(self, resource: APIResource, namespace: str) -> Sequence[Object] | None:
        """Returns the metadata of the objects, or None if the resource can't be listed."""
        if "list" not in resource.verbs:
            return None
        try:
            objects = await self._client.resource(resource.gvr, namespace, metadata_only=True).list()
        except StatusError as error:
            if is_method_not_supported(error) or is_not_found(error):
                return None
            raise
        items: Sequence[Object] = objects.get("items") or ()
        return items

    async def _estimate_graceful_termination(self, namespace: Object) -> int:
        """Seconds that pods may take to end; 0 when they had as much."""
        pods = (await self._client.resource(PODS, namespace["metadata"]["name"]).list())["items"]
        estimate = max(
            (
                pod["spec"].get("terminationGracePeriodSeconds") or 0
                for pod in pods
                if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            ),
            default=0,
        )
        since = seconds_of(namespace["metadata"]["deletionTimestamp"]) or 0.0
        return 0 if self._clock.now() - since >= estimate else estimate


def _text(gvr: GroupVersionResource) -> str:
    """Returns the resource as Go prints it: the legacy group is an empty word."""
    return f"{gvr.group}/{gvr.version}, Resource={gvr.resource}"


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = NamespaceController(context)
    limiter = MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 60.0), BucketRateLimiter(clock=context.clock))
    workers = context.configuration.concurrent_namespace_syncs
    controller = context.controller(reconciler, workers=workers, rate_limiter=limiter)
    controller.add_source(Informer(reconciler.namespaces, reconciler.namespace_changed))
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    return [controller]
