"""The controllers that run while there are remote APIServices: they follow them, their Services and their endpoints.

Upstream: k8s.io/kube-aggregator/pkg/apiserver/apiserver.go (the post-start hooks).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.instruments import Values
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.endpoints.object_getter import ObjectGetter
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.aggregator.api_services import APIServices
from fakeapiserver.server.aggregator.availability import Availability
from fakeapiserver.server.aggregator.discovery import DiscoveryManager
from fakeapiserver.server.aggregator.openapi import FIRST, OpenAPIAggregation
from fakeapiserver.server.aggregator.proxy import Proxy
from fakeapiserver.server.aggregator.work_queue import WorkQueue
from fakeapiserver.server.upkeep.watch_loop import follow
from fakeapiserver.storage.interface import Event

_API_SERVICES: Final = GroupResource("apiregistration.k8s.io", "apiservices")
_SERVICES: Final = GroupResource("", "services")
_SLICES: Final = GroupResource("discovery.k8s.io", "endpointslices")
_SERVICE_NAME: Final = "kubernetes.io/service-name"


class Controllers:
    def __init__(
        self,
        scopes: RequestScopes,
        objects: ObjectGetter,
        services: APIServices,
        proxy: Proxy,
        unavailable: Counter[Values],
    ) -> None:
        self._scopes = scopes
        self._services = services
        scope = scopes.lookup(_API_SERVICES.group, "v1", _API_SERVICES.resource)
        assert scope is not None
        availability = Availability(scope, objects, services, proxy, unavailable)
        self._availability = WorkQueue(availability.sync, scopes.clock, base=0.005, longest=30.0)

        self._manager = DiscoveryManager(services, proxy, scopes.clock, scopes.table.set_remote)
        self._discovery = WorkQueue(self._manager.sync, scopes.clock, base=0.5, longest=60.0)
        self.openapi = OpenAPIAggregation(services, proxy, scopes.table)
        self._openapi_queues = [
            WorkQueue(sync, scopes.clock, base=60.0, longest=3600.0)
            for sync in (self.openapi.sync_version_2, self.openapi.sync_version_3)
        ]
        self._remote: set[str] = set()

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._availability.run())
            tasks.create_task(self._discovery.run())
            for queue in self._openapi_queues:
                tasks.create_task(queue.run())
            tasks.create_task(self._follow(_API_SERVICES, self._api_service_changed))
            tasks.create_task(self._follow(_SERVICES, self._service_changed))
            tasks.create_task(self._follow(_SLICES, self._slice_changed))

    def recheck(self) -> None:
        """Asks every aggregated server at once whether it is still there."""
        for service in self._services.remote.values():
            self._availability.add(service.name)

    def _api_service_changed(self, obj: Object) -> None:
        self._touch(metadata(obj)["name"])

    def _touch(self, name: str) -> None:
        self._availability.add(name)
        self._manager.mark_dirty(name)
        self._discovery.add(name)
        self._follow_openapi(name)

    def _follow_openapi(self, name: str) -> None:
        """A server is asked for its documents a second after it was named, and again when it has failed and changes."""
        remote, known = name in self._services.remote, name in self._remote
        for queue in self._openapi_queues:
            if remote and (not known or queue.failing(name)):
                queue.forget(name)
                queue.add(name, FIRST)
            elif known and not remote:
                queue.forget(name)
                queue.add(name)
        (self._remote.add if remote else self._remote.discard)(name)

    def _service_changed(self, obj: Object) -> None:
        self._recheck(metadata(obj)["namespace"], metadata(obj)["name"])

    def _slice_changed(self, obj: Object) -> None:
        self._recheck(metadata(obj)["namespace"], (metadata(obj).get("labels") or {}).get(_SERVICE_NAME, ""))

    def _recheck(self, namespace: str, name: str) -> None:
        """Whatever the Service leads to may have come or gone."""
        for service in self._services.remote.values():
            if (service.service.namespace, service.service.name) == (namespace, name):
                self._availability.add(service.name)

    async def _follow(self, resource: GroupResource, changed: Callable[[Object], None]) -> None:
        """Calls `changed` with every object that exists and with every one that changes."""
        store = self._scopes.store_for(resource)
        assert store is not None

        async def began() -> None:
            for name in list(self._remote) if resource == _API_SERVICES else ():
                self._touch(name)  # it may not exist in a restored state
            for item in store.storage.list_now(store.prefix).items:
                changed(store.decode(item.value))

        async def written(events: Sequence[Event]) -> None:
            for event in events:
                changed(store.decode(event.object.value))

        await follow(store, began, written)
