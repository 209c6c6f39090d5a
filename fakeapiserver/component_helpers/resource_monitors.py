"""Handlers at the informers of all resources that a server has, whatever comes and goes.

Upstream looks at discovery every 30 seconds (pkg/controller/garbagecollector/garbagecollector.go, Sync; graph_builder.go,
syncMonitors). Here that is done when definitions or APIServices change, and periodically only where another server decides what
it has. While a version's server doesn't answer, the monitors of its resources stay.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from fakeapiserver.client.cache.shared_informer import Registration, ResourceEventHandler, SharedInformer
from fakeapiserver.client.discovery import APIResource, preferred_resources
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

log = logging.getLogger(__name__)

# Seconds. Discovery follows a change a little later: it is looked at soon, and twice again; not so soon that what the last deletions
# of a resource free isn't counted any more.
_FIRST: Final = 0.1
_AGAIN: Final = (2.0, 28.0)
_PERIOD: Final = 30.0
_MAX_WAIT: Final = 30.0


class Monitor(Struct, frozen=True):
    """A resource's informer, and the handler's registration at it."""

    resource: APIResource
    informer: SharedInformer
    registration: Registration


class ResourceMonitors:
    """handler: made for each resource that has all of `verbs` and that `wanted` doesn't refuse. whole: resources of which more than
    the metadata is wanted. on_failure: called when some could not be read in time."""

    def __init__(
        self,
        context: ControllerContext,
        verbs: Collection[str],
        wanted: Callable[[APIResource], bool],
        handler: Callable[[APIResource], ResourceEventHandler],
        *,
        whole: Collection[GroupResource] = (),
        on_failure: Callable[[], object] = lambda: None,
    ) -> None:
        self._context = context
        self._verbs = verbs
        self._wanted = wanted
        self._handler = handler
        self._whole = whole
        self._on_failure = on_failure
        self._monitors: dict[GroupVersionResource, Monitor] = {}
        self._kinds: dict[GroupVersionKind, Monitor] = {}
        self._synced = asyncio.Event()
        self._again = 0

    def controller(self, name: str) -> Controller:
        """Returns the controller that keeps the monitors up to date; `new` returns it with the others."""
        context = self._context
        controller = context.controller(self, name=name)
        controller.add_source(Periodic())
        controller.add_source(_Stopping(self))
        for informer in (
            context.informer(CUSTOM_RESOURCE_DEFINITIONS, metadata_only=True),
            context.informer(API_SERVICES),
        ):
            controller.add_source(Informer(informer, self._changed))
        return controller

    async def wait_for_sync(self) -> None:
        """Waits until the handlers were called for all existing objects, for half a minute at most."""
        await self._synced.wait()

    def of(self, kind: GroupVersionKind) -> Monitor | None:
        """Returns the monitor of a kind, in the version that is monitored."""
        return self._kinds.get(kind)

    @property
    def monitors(self) -> Mapping[GroupVersionResource, Monitor]:
        return self._monitors

    def stop(self) -> None:
        """Stops all monitors."""
        for gvr in [*self._monitors]:
            self._remove(gvr)
        self._synced.clear()

    def _changed(self, event: Event, queue: Queue) -> None:
        self._again = 0
        queue.add_after(EVERYTHING, _FIRST)

    async def reconcile(self, request: Request) -> Result | None:
        groups = await self._context.discovery.groups()
        stale = {(group.name, version) for group in groups for version in group.stale}
        monitors = {
            resource.gvr: resource for resource in preferred_resources(groups, self._verbs) if self._wanted(resource)
        }
        gone = [gvr for gvr in self._monitors if gvr not in monitors and gvr.group_version not in stale]
        new = [resource for gvr, resource in monitors.items() if gvr not in self._monitors]
        if gone or new:
            self._context.mapper.reset()
        for gvr in gone:
            self._remove(gvr)
        for resource in new:
            self._add(resource)
        log.debug("%s: %d monitors added, %d removed", self._context.name, len(new), len(gone))
        await self._sync(new)
        return self._next(remote=bool(stale) or self._has_remote_servers())

    def _next(self, *, remote: bool) -> Result | None:
        if self._again < len(_AGAIN):
            self._again += 1
            return Result(requeue_after=_AGAIN[self._again - 1])
        return Result(requeue_after=_PERIOD) if remote else None

    def _has_remote_servers(self) -> bool:
        return any(service["spec"].get("service") for service in self._context.informer(API_SERVICES).indexer.list())

    def _add(self, resource: APIResource) -> None:
        informer = self._context.running_informer(resource.gvr, whole=resource.gvr.group_resource in self._whole)
        registration = informer.add_event_handler(self._handler(resource))
        monitor = Monitor(resource, informer, registration)
        self._monitors[resource.gvr] = monitor
        self._kinds[resource.kind] = monitor

    def _remove(self, gvr: GroupVersionResource) -> None:
        monitor = self._monitors.pop(gvr)
        self._kinds.pop(monitor.resource.kind, None)
        monitor.registration.remove()
        self._context.release(gvr)

    async def _sync(self, new: Collection[APIResource]) -> None:
        if self._synced.is_set():
            return  # handlers get objects of later resources as they arrive
        timer = self._context.clock.call_later(_MAX_WAIT, self._synced.set)
        syncing = asyncio.gather(*(_sync(self._monitors[resource.gvr]) for resource in new))
        waiting = asyncio.ensure_future(self._synced.wait())
        try:
            await asyncio.wait((syncing, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            syncing.cancel()
            waiting.cancel()
        if not self._synced.is_set():
            self._synced.set()
        else:
            self._on_failure()
            log.warning("%s: not all resource monitors could be synced, proceeding anyways", self._context.name)


async def _sync(monitor: Monitor) -> None:
    """Waits until the handler was called for all existing objects. A resource that has gone since it was discovered has no objects."""
    await monitor.informer.wait_for_answer()
    if monitor.informer.has_synced:
        await monitor.registration.wait_for_sync()


class _Stopping(Struct, frozen=True):
    """A source of nothing that ends with its controller."""

    monitors: ResourceMonitors

    async def start(self, queue: Queue) -> None:
        """The controller's other sources say when there is something to do."""

    async def wait_for_sync(self) -> None:
        """Returns at once: nothing exists in the beginning."""

    def stop(self) -> None:
        self.monitors.stop()
