"""Writes the usage of each quota into its status (upstream: pkg/controller/resourcequota).

Admission charges what is created; after deletions and ends everything in the namespace is measured again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import ZERO
from fakeapiserver.apis.pod_resources import ResourceList, add, resource_list
from fakeapiserver.apis.quota.evaluators import (
    CLAIMS,
    IGNORED,
    PODS,
    RESOURCE_CLAIMS,
    SERVICES,
    Evaluator,
    evaluator_of,
    has_ended,
)
from fakeapiserver.apis.quota.scopes import is_terminating, selectors_of
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX, DeletedFinalStateUnknown, Indexer
from fakeapiserver.client.cache.shared_informer import Tombstone
from fakeapiserver.client.discovery import APIResource
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers import objects
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import RESOURCE_QUOTAS
from fakeapiserver.component_helpers.resource_monitors import ResourceMonitors
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

_VERBS: Final = ("create", "list", "watch", "delete")
_DEVICE_CLASSES: Final = GroupResource("resource.k8s.io", "deviceclasses")
# What is measured, or read to measure it, and not only counted.
_WHOLE: Final = frozenset((PODS, SERVICES, CLAIMS, RESOURCE_CLAIMS, _DEVICE_CLASSES))
# Before those that say how much is used already.
_MISSING_USAGE: Final = 1
# Seconds in which many deletions make one look at everything.
_TOGETHER: Final = 0.05


class QuotaController:
    """Requests are quotas, and EVERYTHING now and then."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._period = context.configuration.resource_quota_sync_period
        self.quotas = context.informer(RESOURCE_QUOTAS)
        for resource in (objects.PODS, objects.SERVICES, objects.PERSISTENT_VOLUME_CLAIMS):
            context.informer(resource)  # whole objects, not metadata only
        self._monitors = ResourceMonitors(context, _VERBS, _is_quotable, self._handler, whole=_WHOLE)
        workers = context.configuration.concurrent_resource_quota_syncs
        controller = context.controller(self, workers=workers)
        controller.add_source(Informer(self.quotas, self.quota_changed))
        controller.add_source(Periodic())
        self._queue = controller.queue
        self.controllers = (self._monitors.controller(f"{context.name}-sync"), controller)

    def quota_changed(self, event: Event, queue: Queue) -> None:
        """Queues a quota that is new or whose limits changed; its status follows from this controller's own writes."""
        if isinstance(event, CreateEvent):
            self._enqueue(event.object)
        elif isinstance(event, UpdateEvent) and _hard(event.object_old) != _hard(event.object_new):
            self._enqueue(event.object_new)

    def _enqueue(self, quota: Object) -> None:
        self._queue.add(_request(quota), _MISSING_USAGE if self._misses_usage(quota) else 0)

    def replenish(self, resource: GroupResource, namespace: str) -> None:
        """Something of the resource went, or uses less."""
        quotas = self.quotas.indexer.by_index(NAMESPACE_INDEX, namespace)
        if not quotas or resource == _DEVICE_CLASSES:
            return
        evaluator = evaluator_of(resource, self)
        for quota in quotas:
            if any(evaluator.knows(name) for name in (quota.get("status") or {}).get("hard") or ()):
                self._queue.add_after(_request(quota), _TOGETHER)

    def frees(self, resource: GroupResource, old: Object, new: Object) -> bool:
        """Reports whether an update may have the object use less (upstream: pkg/quota/v1/install/update_filter.go)."""
        if resource == PODS:
            now = self._clock.now()
            return (
                _containers_changed(old, new)
                or is_terminating(old) != is_terminating(new)
                or (has_ended(new, now) and not has_ended(old, now))
            )
        if resource == SERVICES:
            return _service_type(old) != _service_type(new)
        return resource == CLAIMS

    async def reconcile(self, request: Request) -> Result | None:
        if request == EVERYTHING:
            for each in self.quotas.indexer.list():
                self._queue.add(_request(each))
            return Result(requeue_after=self._period) if self._period else None
        await self._monitors.wait_for_sync()
        quota = self.quotas.indexer.get_by_key(f"{request.namespace}/{request.name}")
        if quota is None:
            return None
        hard = _hard(quota)
        status: Object = quota.get("status") or {}
        used = {name: amount for name, amount in _status(quota, "used").items() if name in hard}
        used |= self._usage(quota, hard)
        if "hard" in status and "used" in status and hard == _status(quota, "hard") and used == _status(quota, "used"):
            return None
        told = {"hard": _told(hard), "used": _told(used)}
        try:
            await self._client.resource(RESOURCE_QUOTAS, request.namespace).update_status({**quota, "status": told})
        except StatusError as error:
            if is_not_found(error):
                return None
            if is_conflict(error):  # admission charged usage meanwhile
                return Result(requeue=True)
            raise
        return None

    # -------------------------------------------------------------------------- usage

    def _usage(self, quota: Object, hard: ResourceList) -> ResourceList:
        """Returns the usage of the resources that can be measured."""
        namespace, selectors, now = quota["metadata"]["namespace"], selectors_of(quota), self._clock.now()
        usage: ResourceList = {}
        for evaluator, indexer in self._evaluators():
            names = [name for name in hard if evaluator.knows(name)]
            if not names:
                continue
            add(usage, dict.fromkeys(names, ZERO))
            for obj in indexer.by_index(NAMESPACE_INDEX, namespace):
                if all(evaluator.matches(selector, obj) for selector in selectors):
                    add(usage, evaluator.usage(obj, now))
        return {name: amount for name, amount in usage.items() if name in hard}

    def _evaluators(self) -> Iterator[tuple[Evaluator, Indexer]]:
        """Each with the objects that it measures."""
        for gvr, monitor in self._monitors.monitors.items():
            if gvr.group_resource != _DEVICE_CLASSES:
                yield evaluator_of(gvr.group_resource, self), monitor.informer.indexer

    def _misses_usage(self, quota: Object) -> bool:
        hard, used = _status(quota, "hard"), _status(quota, "used")
        return _hard(quota) != hard or any(
            name not in used and any(evaluator.knows(name) for evaluator, _ in self._evaluators()) for name in hard
        )

    # ----------------------------------------------------- what evaluators look up

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Returns an object of a measured resource such as `pods`."""
        return next((obj for obj in self.list(resource, namespace) if obj["metadata"]["name"] == name), None)

    def list(self, resource: str, namespace: str = "") -> Sequence[Object]:
        """Returns the objects of a measured resource such as `deviceclasses.resource.k8s.io`."""
        for gvr, monitor in self._monitors.monitors.items():
            if str(gvr.group_resource) == resource:
                indexer = monitor.informer.indexer
                return indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else indexer.list()
        return ()

    def _handler(self, resource: APIResource) -> "_Handler":
        return _Handler(self, resource.gvr.group_resource)


class _Handler(Struct, frozen=True):
    """Notices when something uses less than it did; what is new was charged when it was written."""

    controller: QuotaController
    resource: GroupResource

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        """Does nothing: all quotas are synced at the start anyway."""

    def on_update(self, old: Object, new: Object) -> None:
        if self.controller.frees(self.resource, old, new):
            self.controller.replenish(self.resource, new["metadata"].get("namespace", ""))

    def on_delete(self, obj: Tombstone) -> None:
        last = obj.object if isinstance(obj, DeletedFinalStateUnknown) else obj
        self.controller.replenish(self.resource, last["metadata"].get("namespace", ""))


def _is_quotable(resource: APIResource) -> bool:
    name = resource.gvr.group_resource
    return name == _DEVICE_CLASSES or (resource.namespaced and name not in IGNORED)


def _request(quota: Object) -> Request:
    return Request(quota["metadata"]["namespace"], quota["metadata"]["name"])


def _hard(quota: Object) -> ResourceList:
    return resource_list(quota["spec"].get("hard"))


def _status(quota: Object, which: str) -> ResourceList:
    return resource_list((quota.get("status") or {}).get(which))


def _told(values: ResourceList) -> Mapping[str, str]:
    return {name: str(ZERO + quantity) for name, quantity in values.items()}


def _containers_changed(old: Object, new: Object) -> bool:
    """Reports whether nodes give containers something else than before (upstream: install/update_filter.go)."""
    for field in ("containerStatuses", "initContainerStatuses"):
        after = {status["name"]: status.get("resources") for status in (new.get("status") or {}).get(field) or ()}
        for status in (old.get("status") or {}).get(field) or ():
            if status["name"] in after and after[status["name"]] != status.get("resources"):
                return True
    return False


def _service_type(service: Object) -> str:
    """Returns the service's type, as far as quotas distinguish it."""
    service_type: str = service["spec"].get("type", "")
    return service_type if service_type in ("NodePort", "LoadBalancer") else ""


def new(context: ControllerContext) -> Sequence[Controller]:
    return QuotaController(context).controllers
