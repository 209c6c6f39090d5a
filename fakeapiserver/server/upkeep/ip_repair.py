"""Every address of a service has its IPAddress, and every IPAddress that was given out its service.

Upstream: pkg/registry/core/service/ipallocator/controller/repairip.go. It looks at each written object at once, and at all of them
every three minutes; here the second look is for services that have lost an IPAddress.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.ip_addresses import canonical_ip
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.clock import Timer, Timers
from fakeapiserver.endpoints.object_getter import ObjectGetter
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.core.service.ips import (
    ALLOCATOR,
    FAMILY,
    IP_ADDRESSES,
    MANAGED_BY,
    ClusterIPs,
    family_of,
    new_ip_address,
)
from fakeapiserver.server.upkeep.loopback_writer import LoopbackWriter
from fakeapiserver.server.upkeep.repair_events import RepairEvents
from fakeapiserver.server.upkeep.watch_loop import follow
from fakeapiserver.storage.interface import Event

log = logging.getLogger(__name__)

_SERVICES: Final = GroupResource("", "services")
_ADDRESSES: Final = GroupResource("networking.k8s.io", "ipaddresses")
_INTERVAL: Final = 180.0
# Seconds within which a service with an allocated address must exist; and within which an existing one must have it.
_CREATION: Final = 60.0
_UPDATE: Final = 5.0
# As Go prints it.
_REFERENCE: Final = ("group", "resource", "namespace", "name")
_Work = tuple[Callable[[Object], Awaitable[None]], Object]


class ServiceIPRepair:
    def __init__(self, scopes: RequestScopes, objects: ObjectGetter, writer: LoopbackWriter, clock: Timers) -> None:
        self._scopes = scopes
        self._objects = objects
        self._writer = writer
        self._clock = clock
        self._ips = ClusterIPs(objects)
        self._began = clock.monotonic()
        self._queue: asyncio.Queue[_Work] = asyncio.Queue()
        self._timers: set[Timer] = set()
        self._events = RepairEvents("ipallocator-repair-controller", writer, clock)

    async def run(self) -> None:
        """Runs until cancelled, where addresses are served."""
        if self._scopes.store_for(_ADDRESSES) is None:
            return
        try:
            async with asyncio.TaskGroup() as tasks:  # if one fails, the others end as well
                tasks.create_task(self._follow(_SERVICES, self._sync_service))
                tasks.create_task(self._follow(_ADDRESSES, self._sync_address))
                tasks.create_task(self._work())
        finally:
            for timer in self._timers:
                timer.cancel()

    async def _follow(self, resource: GroupResource, sync: Callable[[Object], Awaitable[None]]) -> None:
        store = self._scopes.store_for(resource)
        if store is None:
            return

        async def began() -> None:
            for item in store.storage.list_now(store.prefix).items:
                self._queue.put_nowait((sync, store.decode(item.value)))

        async def changed(events: Sequence[Event]) -> None:
            for event in events:
                obj = store.decode(event.object.value)
                if event.type != "DELETED":
                    self._queue.put_nowait((sync, obj))
                elif resource == _ADDRESSES:
                    self._lost(obj)

        await follow(store, began, changed)

    async def _work(self) -> None:
        while True:
            sync, obj = await self._queue.get()
            try:
                await sync(obj)
            except StatusError as error:  # the next event brings the next try
                log.warning("%s could not be repaired: %s", metadata(obj)["name"], error)

    def _later(self, seconds: float, sync: Callable[[Object], Awaitable[None]], obj: Object) -> None:
        def due() -> None:
            self._timers.discard(timer)
            self._queue.put_nowait((sync, obj))

        timer = self._clock.call_later(seconds, due)
        self._timers.add(timer)

    # --------------------------------------------------------------------- services

    def _lost(self, address: Object) -> None:
        """A service that has this address without an IPAddress is looked at when upstream looks at them all."""
        service = self._parent(address)
        if service is not None and metadata(address)["name"] in _addresses(service):
            left = _INTERVAL - (self._clock.monotonic() - self._began) % _INTERVAL
            self._later(left, self._sync_service, service)

    async def _sync_service(self, service: Object) -> None:
        meta = metadata(service)
        stored = self._objects.get("services", meta["namespace"], meta["name"])
        for ip in _addresses(stored) if stored is not None else ():
            await self._sync_service_address(stored or {}, ip)

    async def _sync_service_address(self, service: Object, ip: str) -> None:
        meta, family = metadata(service), family_of(ip)
        if not self._ips.is_in_range(ip):
            note = f"Cluster IP [{family}]: {ip} is not within any configured Service CIDR; please recreate service"
            await self._events.warn(service, "ClusterIPOutOfRange", "ClusterIPAllocation", note)
            return
        address = self._objects.get(IP_ADDRESSES, "", ip)
        if address is None:
            note = f"Cluster IP [{family}]: {ip} is not allocated; repairing"
            await self._events.warn(service, "ClusterIPNotAllocated", "ClusterIPAllocation", note)
            await self._writer.create(IP_ADDRESSES, new_ip_address(ip, meta["namespace"], meta["name"]))
            return
        owner = self._parent(address)
        if owner is None:
            where = f"{meta['namespace']}/{meta['name']}"
            note = f"the ClusterIP [{family}]: {ip} for Service {where} has a wrong reference; repairing"
            await self._events.warn(service, "ClusterIPNotAllocated", "ClusterIPAllocation", note)
            await self._make_again(service, ip)
            return
        if metadata(owner)["uid"] != meta["uid"] and ip in _addresses(owner):
            note = f"Cluster IP [{family}]:{ip} was assigned to multiple services; please recreate service"
            await self._events.warn(service, "ClusterIPAlreadyAllocated", "ClusterIPAllocation", note)
        labels = metadata(address).get("labels") or {}
        if labels.get(MANAGED_BY) != ALLOCATOR or labels.get(FAMILY) != family:
            await self._make_again(service, ip)

    async def _make_again(self, service: Object, ip: str) -> None:
        with suppress(StatusError):  # it is gone already
            await self._writer.remove(IP_ADDRESSES, "", ip)
        meta = metadata(service)
        await self._writer.create(IP_ADDRESSES, new_ip_address(ip, meta["namespace"], meta["name"]))

    # -------------------------------------------------------------------- addresses

    async def _sync_address(self, address: Object) -> None:
        name = metadata(address)["name"]
        stored = self._objects.get(IP_ADDRESSES, "", name)
        if stored is None or (metadata(stored).get("labels") or {}).get(MANAGED_BY) != ALLOCATOR:
            return
        parent = stored["spec"]["parentRef"]
        if not _is_of_service(stored):
            await self._clean_up(
                stored,
                "IPAddressNotAllocated",
                f"IPAddress {name} appears to have been modified, not referencing a Service",
            )
            return
        service, age = self._parent(stored), self._age(stored)
        where = f"{parent.get('namespace', '')}/{parent.get('name', '')}"
        if service is None:
            if age > _CREATION:
                note = f"IPAddress: {name} for Service {where} appears to have leaked: cleaning up"
                await self._clean_up(stored, "IPAddressNotAllocated", note)
            else:
                self._later(_CREATION - age + 1, self._sync_address, stored)
            return
        if name in _addresses(service):
            return
        if service["spec"]["type"] == "ExternalName" and age < _CREATION:
            self._later(_CREATION - age, self._sync_address, stored)
        elif age < _UPDATE:
            self._later(_UPDATE, self._sync_address, stored)
        else:
            note = f"IPAddress: {name} for Service {where} has a wrong reference; cleaning up"
            await self._clean_up(stored, "IPAddressWrongReference", note)

    async def _clean_up(self, address: Object, reason: str, note: str) -> None:
        await self._events.warn(address, reason, "IPAddressAllocation", note)
        with suppress(StatusError):  # it is gone already
            await self._writer.remove(IP_ADDRESSES, "", metadata(address)["name"])

    def _parent(self, address: Object) -> Object | None:
        """The service that it names, if it names one that there is."""
        parent = address["spec"]["parentRef"]
        if not _is_of_service(address):
            return None
        return self._objects.get("services", parent.get("namespace", ""), parent.get("name", ""))

    def _age(self, obj: Object) -> float:
        return self._clock.now() - (seconds_of(metadata(obj)["creationTimestamp"]) or 0.0)


def _addresses(service: Object) -> list[str]:
    """Returns the names of the service's IPAddresses."""
    return [canonical_ip(ip) for ip in service["spec"].get("clusterIPs") or () if ip != "None"]


def _is_of_service(address: Object) -> bool:
    parent = address["spec"]["parentRef"]
    return not parent.get("group") and parent.get("resource") == "services"
