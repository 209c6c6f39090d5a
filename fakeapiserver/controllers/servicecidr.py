"""Ranges of service addresses are ready, and stay as long as addresses need them.

Upstream: pkg/controller/servicecidrs/servicecidrs_controller.go, pkg/api/servicecidr/servicecidr.go.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import IP_ADDRESSES, SERVICE_CIDRS, is_terminating, labels_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

_NAME: Final = "service-cidr-controller"
_FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
_MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
_FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
_ALLOCATOR: Final = "ipallocator.k8s.io"
# Seconds in which those who give out addresses have heard of the deletion.
_DELETION_GRACE: Final = 10.0
_MAX_RETRIES: Final = 15
_READY: Final = {"status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
_IN_USE: Final = {
    "status": "False",
    "reason": "Terminating",
    "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
}
_Network = IPv4Network | IPv6Network
_Address = IPv4Address | IPv6Address


class ServiceCIDRController:
    """Requests are ServiceCIDRs."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self.ranges = context.informer(SERVICE_CIDRS)
        self.addresses = context.informer(IP_ADDRESSES)
        self._recorder = context.recorder(_NAME)

    def range_changed(self, event: Event, queue: Queue) -> None:
        """A new one may make up for others that go."""
        queue.add(request_for(object_of(event)))
        if isinstance(event, CreateEvent):
            for network in _networks(event.object):
                for other in self._overlapping(network):
                    queue.add(request_for(other))

    def address_changed(self, event: Event, queue: Queue) -> None:
        """Queues the ranges of an address that may block or unblock their deletion."""
        if isinstance(event, UpdateEvent) or labels_of(event.object).get(_MANAGED_BY) != _ALLOCATOR:
            return
        for service_cidr in self._containing(ip_address(event.object["metadata"]["name"])):
            queue.add(request_for(service_cidr))

    async def reconcile(self, request: Request) -> Result | None:
        service_cidr = self.ranges.indexer.get_by_key(request.name)
        if service_cidr is None:
            return None
        if not is_terminating(service_cidr):
            await self._add_finalizer(service_cidr)
            try:
                await self._set_condition(service_cidr, _READY)
            except StatusError:
                message = "The ServiceCIDR Status can not be set to Ready=True"
                self._recorder.event(service_cidr, "Warning", "KubernetesServiceCIDRError", message)
                raise
            return None
        if not self._can_go(service_cidr):
            await self._set_condition(service_cidr, _IN_USE)
            return None
        since = seconds_of(service_cidr["metadata"]["deletionTimestamp"]) or 0.0
        left = _DELETION_GRACE - (self._clock.now() - since)
        if left > 0:
            return Result(requeue_after=left)
        await self._remove_finalizer(service_cidr)
        return None

    def _can_go(self, service_cidr: Object) -> bool:
        """Others hold all its addresses, or it has none."""
        networks = [*_networks(service_cidr)]
        if all(any(other is not service_cidr for other in self._ranges_around(network)) for network in networks):
            return True
        families = {f"IPv{network.version}" for network in networks}
        return not any(
            self._holds_alone(service_cidr, ip_address(address["metadata"]["name"]))
            for address in self.addresses.indexer.list()
            if labels_of(address).get(_MANAGED_BY) == _ALLOCATOR and labels_of(address).get(_FAMILY) in families
        )

    def _holds_alone(self, service_cidr: Object, address: _Address) -> bool:
        holding = [*self._containing(address)]
        return len(holding) == 1 and holding[0] is service_cidr

    def _containing(self, address: _Address) -> Iterable[Object]:
        return self._ranges(lambda network: _contains(network, address))

    def _overlapping(self, network: _Network) -> Iterable[Object]:
        return self._ranges(lambda other: _overlaps(other, network))

    def _ranges_around(self, network: _Network) -> Iterable[Object]:
        return self._ranges(lambda other: _overlaps(other, network) and other.prefixlen <= network.prefixlen)

    def _ranges(self, suits: Callable[[_Network], bool]) -> Iterable[Object]:
        for service_cidr in self.ranges.indexer.list():
            for network in _networks(service_cidr):
                if suits(network):
                    yield service_cidr

    async def _add_finalizer(self, service_cidr: Object) -> None:
        if _FINALIZER not in (service_cidr["metadata"].get("finalizers") or ()):
            await self._patch(service_cidr, {"finalizers": [_FINALIZER]})

    async def _remove_finalizer(self, service_cidr: Object) -> None:
        if _FINALIZER in (service_cidr["metadata"].get("finalizers") or ()):
            await self._patch(service_cidr, {"$deleteFromPrimitiveList/finalizers": [_FINALIZER]})

    async def _patch(self, service_cidr: Object, metadata: Object) -> None:
        ranges, name = self._client.resource(SERVICE_CIDRS), service_cidr["metadata"]["name"]
        try:
            await ranges.patch(name, {"metadata": metadata}, patch_type=STRATEGIC_MERGE_PATCH)
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _set_condition(self, service_cidr: Object, wanted: dict[str, str]) -> None:
        for condition in service_cidr.get("status", {}).get("conditions") or ():
            if condition["type"] == "Ready" and all(condition.get(key, "") == value for key, value in wanted.items()):
                return
        condition = {"type": "Ready", **wanted, "lastTransitionTime": rfc3339(self._clock.now())}
        await self._client.resource(SERVICE_CIDRS).apply_status(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "ServiceCIDR",
                "metadata": {"name": service_cidr["metadata"]["name"]},
                "status": {"conditions": [condition]},
            },
            field_manager=_NAME,
            force=True,
        )


def _networks(service_cidr: Object) -> Iterator[_Network]:
    for cidr in service_cidr["spec"].get("cidrs") or ():
        yield ip_network(cidr, strict=False)


def _overlaps(left: _Network, right: _Network) -> bool:
    return left.version == right.version and left.overlaps(right)


def _contains(network: _Network, address: _Address) -> bool:
    """Reports whether the address can be allocated: neither the network's own nor, for IPv4, the broadcast address."""
    if address not in network or address == network.network_address:
        return False
    return address.version == 6 or address != network.broadcast_address


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ServiceCIDRController(context)
    controller = context.controller(reconciler, workers=5, max_retries=_MAX_RETRIES)
    controller.add_source(Informer(reconciler.ranges, reconciler.range_changed))
    controller.add_source(Informer(reconciler.addresses, reconciler.address_changed))
    return [controller]
