"""Gives addresses to Services of type LoadBalancer, as a local cluster with a cloud provider does.

The controller is upstream's (k8s.io/cloud-provider/controllers/service/controller.go); there is no load balancer
behind it: an address is allocated, and freed when the service no longer wants it. Services with a
loadBalancerClass are left to the controller of that class.
"""

import ipaddress
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext
from fakeapiserver.component_helpers.objects import NODES, SERVICES, is_terminating, key_of, labels_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

NAME: Final = "service-lb-controller"
ACCOUNT: Final = "service-controller"
FINALIZER: Final = "service.kubernetes.io/load-balancer-cleanup"
_WORKERS: Final = 5
_LEAST_RETRY, _MOST_RETRY = 5.0, 300.0  # seconds
_EXCLUDED: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
_TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
# Beside the addresses of simulated nodes.
_RANGES: Final[Mapping[str, ipaddress.IPv4Network | ipaddress.IPv6Network]] = {
    "IPv4": ipaddress.IPv4Network("172.18.128.0/17"),
    "IPv6": ipaddress.IPv6Network("fc00:f853:ccd:e793:8000::/112"),
}
_PORT_MEMBERS: Final = ("name", "protocol", "port", "nodePort", "targetPort", "appProtocol")
# The fields of a service that a load balancer depends on, besides ports, annotations and the number of families.
_MEMBERS: Final = (
    "sessionAffinity",
    "sessionAffinityConfig",
    "loadBalancerIP",
    "externalIPs",
    "externalTrafficPolicy",
    "healthCheckNodePort",
)


class LoadBalancers:
    """The addresses of services. A freed address is allocated again when all others were used once."""

    def __init__(self) -> None:
        self._new = {family: network.hosts() for family, network in _RANGES.items()}
        self._returned: dict[str, deque[str]] = {family: deque() for family in _RANGES}
        self._taken: set[str] = set()
        self._of: dict[str, dict[str, str]] = {}

    def exists(self, service: Object) -> bool:
        """Reports whether the service has a load balancer, or had one under another controller."""
        return key_of(service) in self._of or bool(_ingress(service))

    def ensure(self, service: Object) -> Sequence[str]:
        """An address of each of the service's families: the one it asks for, the one it has, or a free one."""
        spec, key = service["spec"], key_of(service)
        asked = spec.get("loadBalancerIP")
        told = {_family(row["ip"]): row["ip"] for row in _ingress(service) if row.get("ip")}
        had = {**self._of.get(key, told), **({_family(asked): asked} if asked else {})}
        families = spec.get("ipFamilies") or ["IPv4"]
        addresses = {family: had.get(family) or self._free(family) for family in families}
        for family, address in self._of.get(key, {}).items():
            if addresses.get(family) != address:
                self._give_back(family, address)
        self._of[key] = addresses
        self._taken.update(addresses.values())
        return [*addresses.values()]

    def delete(self, service: Object) -> None:
        """Its addresses are free."""
        for family, address in self._of.pop(key_of(service), {}).items():
            self._give_back(family, address)

    def _free(self, family: str) -> str:
        for address in self._new[family]:
            if str(address) not in self._taken:
                return str(address)
        return next(address for address in iter(self._returned[family].popleft, None) if address not in self._taken)

    def _give_back(self, family: str, address: str) -> None:
        self._taken.discard(address)
        if ipaddress.ip_address(address) in _RANGES[family]:
            self._returned[family].append(address)


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


class ServiceController:
    """Requests are services."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._recorder = context.recorder(ACCOUNT)
        self._balancers = LoadBalancers()
        self.services = context.informer(SERVICES)
        self.nodes = context.informer(NODES)
        # Those that were looked at: what they were, and the nodes that their load balancers know.
        self._cache: dict[str, Object] = {}
        self._hosts: dict[str, Mapping[str, str]] = {}

    def service_changed(self, event: Event, queue: Queue) -> None:
        """A finalizer keeps services whose load balancer is to be looked after; of others it goes unseen."""
        if isinstance(event, UpdateEvent):
            if _needs_update(event.object_old, event.object_new) or _needs_cleanup(event.object_new):
                queue.add(request_for(event.object_new))
        elif isinstance(event, DeleteEvent):
            self._balancers.delete(event.object)
            self._cache.pop(key_of(event.object), None)
        elif _wants(event.object) or _needs_cleanup(event.object):
            queue.add(request_for(event.object))

    def node_changed(self, event: Event, queue: Queue) -> None:
        """Queues all services after a change of a node that matters."""
        if not isinstance(event, UpdateEvent) or _host_shape(event.object_old) != _host_shape(event.object_new):
            queue.add(EVERYTHING)

    async def reconcile(self, request: Request) -> None:
        key = str(request)
        service = self.services.indexer.get_by_key(key)
        if service is None:
            return
        self._cache[key] = service
        try:
            ensured = await self._sync(service)
        except StatusError as error:
            self._tell(service, "SyncLoadBalancerFailed", f"Error syncing load balancer: {error}", "Warning")
            raise
        if not ensured:
            self._cache.pop(key, None)

    async def _sync(self, service: Object) -> bool:
        """Reports whether it has a load balancer now."""
        ensured = _wants(service) and not _needs_cleanup(service)
        ingress: list[Object] | None = None
        if ensured:
            self._tell(service, "EnsuringLoadBalancer", "Ensuring load balancer")
            if not _has_finalizer(service):
                await self._patch(service, {"metadata": {"finalizers": [FINALIZER]}})
            hosts = self._hosts[key_of(service)] = self._available()
            if not hosts:
                self._tell_of_no_nodes(service)
            ingress = [{"ip": address, "ipMode": "VIP"} for address in self._balancers.ensure(service)]
            self._tell(service, "EnsuredLoadBalancer", "Ensured load balancer")
        else:
            if self._balancers.exists(service):
                self._tell(service, "DeletingLoadBalancer", "Deleting load balancer")
                self._balancers.delete(service)
            if _has_finalizer(service):
                await self._patch(service, {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}})
            self._tell(service, "DeletedLoadBalancer", "Deleted load balancer")
        if ingress != (_ingress(service) or None):
            try:
                await self._patch(service, {"status": {"loadBalancer": {"ingress": ingress}}})
            except StatusError as error:
                if not is_not_found(error):
                    raise
        return ensured

    def sync_nodes(self) -> None:
        """Updates load balancers after nodes came or went."""
        available = self._available()
        for key, service in self._cache.items():
            if not _wants(service):
                continue
            before, self._hosts[key] = self._hosts.get(key, {}), available
            if before == available:
                continue
            if available:
                self._tell(service, "UpdatedLoadBalancer", "Updated load balancer with new hosts")
            else:
                self._tell_of_no_nodes(service)

    def _available(self) -> Mapping[str, str]:
        """Name -> provider's ID, of the nodes that traffic may go to."""
        return {
            node["metadata"]["name"]: node["spec"].get("providerID", "")
            for node in self.nodes.indexer.list()
            if not is_terminating(node)
            and _is_included(node)
            and all(taint["key"] != _TO_BE_DELETED for taint in node["spec"].get("taints") or ())
        }

    def _tell_of_no_nodes(self, service: Object) -> None:
        message = "There are no available nodes for LoadBalancer"
        self._tell(service, "UnAvailableLoadBalancer", message, "Warning")

    def _tell(self, service: Object, reason: str, message: str, kind: str = "Normal") -> None:
        self._recorder.event(service, kind, reason, message)

    async def _patch(self, service: Object, change: Object) -> None:
        metadata = service["metadata"]
        services = self._client.resource(SERVICES, metadata["namespace"])
        await services.patch(metadata["name"], change, "status", patch_type=STRATEGIC_MERGE_PATCH)


class NodeSync:
    """EVERYTHING is all nodes."""

    def __init__(self, services: ServiceController) -> None:
        self._services = services

    async def reconcile(self, request: Request) -> None:
        assert request == EVERYTHING
        self._services.sync_nodes()


def _wants(service: Object) -> bool:
    spec = service["spec"]
    return spec.get("type") == "LoadBalancer" and spec.get("loadBalancerClass") is None


def _has_finalizer(service: Object) -> bool:
    return FINALIZER in (service["metadata"].get("finalizers") or ())


def _needs_cleanup(service: Object) -> bool:
    return _has_finalizer(service) and (is_terminating(service) or service["spec"].get("type") != "LoadBalancer")


def _needs_update(old: Object, new: Object) -> bool:
    return (_wants(old) or _wants(new)) and _shape(old) != _shape(new)


def _shape(service: Object) -> tuple[Any, ...]:
    """Returns the parts of a service that a load balancer depends on."""
    spec, metadata = service["spec"], service["metadata"]
    return (
        _wants(service),
        metadata["uid"],
        metadata.get("annotations"),
        spec.get("loadBalancerSourceRanges"),
        len(spec.get("ipFamilies") or ()),
        [[port.get(member) for member in _PORT_MEMBERS] for port in spec.get("ports") or ()],
        [spec.get(member) for member in _MEMBERS],
    )


def _host_shape(node: Object) -> tuple[bool, str]:
    return _is_included(node), node["spec"].get("providerID", "")


def _is_included(node: Object) -> bool:
    """A label that says neither yes nor no excludes it."""
    excluded = labels_of(node).get(_EXCLUDED)
    return excluded is None or excluded in _FALSE


def _ingress(service: Object) -> Sequence[Object]:
    status = (service.get("status") or {}).get("loadBalancer") or {}
    ingress: Sequence[Object] = status.get("ingress") or []
    return ingress


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ServiceController(context)
    limiter = ItemExponentialFailureRateLimiter(_LEAST_RETRY, _MOST_RETRY)
    services = context.controller(reconciler, workers=_WORKERS, rate_limiter=limiter)
    services.add_source(Informer(reconciler.services, reconciler.service_changed))
    nodes = context.controller(NodeSync(reconciler), name=f"{context.name}-nodes")
    nodes.add_source(Informer(reconciler.nodes, reconciler.node_changed))
    return [services, nodes]
