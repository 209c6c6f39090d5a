"""Every service with a selector has EndpointSlices of the pods it selects.

Upstream: pkg/controller/endpointslice/endpointslice_controller.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.client.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    MaxOfRateLimiter,
)
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext
from fakeapiserver.component_helpers.endpoints.endpoint_slices import (
    EndpointSliceTracker,
    StaleInformerCache,
    add_service_indexer,
    service_of,
    slices_of,
)
from fakeapiserver.component_helpers.endpoints.service_pods import (
    TriggerTimeTracker,
    has_no_endpoints_of_ours,
    pods_of,
    services_of_event,
)
from fakeapiserver.component_helpers.objects import ENDPOINT_SLICES, NODES, PODS, SERVICES, is_terminating, labels_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.endpointslice.reconciler import CONTROLLER_NAME, ReconcileError, Reconciler
from fakeapiserver.controllers.endpointslice.topology_cache import ZONE, TopologyCache, is_node_ready

_MAX_RETRIES: Final = 15
# Seconds until a change of a slice by another client is handled.
_SLICE_CHANGE_DELAY: Final = 1.0


class EndpointSliceController:
    """Requests are services."""

    def __init__(self, context: ControllerContext) -> None:
        configuration = context.configuration
        self.services = context.informer(SERVICES)
        self.pods = context.informer(PODS)
        self.nodes = context.informer(NODES)
        self.slices = context.informer(ENDPOINT_SLICES)
        self._slices = add_service_indexer(self.slices)
        self.topology = TopologyCache()
        self._tracker = EndpointSliceTracker()
        self._trigger_times = TriggerTimeTracker()
        self._recorder = context.recorder("endpoint-slice-controller")
        self._batch_period = configuration.endpointslice_updates_batch_period
        # What happened to the slices of a service while they are being written: only afterwards is it known whether it is news.
        self._meanwhile: dict[Request, list[tuple[Event, Queue]]] = {}
        self._syncs = context.metrics.counter("endpoint_slice_controller_syncs", "Syncs of services", "result")
        self._reconciler = Reconciler(
            context.client,
            self.nodes.indexer,
            self._tracker,
            self.topology,
            self._recorder,
            configuration.max_endpoints_per_slice,
        )

    def pod_changed(self, event: Event, queue: Queue) -> None:
        for service in services_of_event(self.services.indexer, event):
            queue.add_after(service, self._batch_period)

    def slice_changed(self, event: Event, queue: Queue) -> None:
        """Queues the service of a slice that another client changed."""
        obj = object_of(event)
        service = service_of(obj)
        if service in self._meanwhile:
            self._meanwhile[service].append((event, queue))
            return
        for changed in self._tracker.concerned(event, CONTROLLER_NAME):
            queue.add_after(changed, max(_SLICE_CHANGE_DELAY, self._batch_period))

    async def reconcile(self, request: Request) -> None:
        self._meanwhile[request] = []
        result = "error"
        try:
            await self._sync(request)
            result = "success"
        except StaleInformerCache:
            result = "stale"
            raise
        finally:
            self._syncs.labels(result).inc()
            for event, queue in self._meanwhile.pop(request):
                self.slice_changed(event, queue)

    async def _sync(self, request: Request) -> None:
        service = self.services.indexer.get_by_key(str(request))
        if service is None:
            self._trigger_times.forget(request)
            self._tracker.forget(request)
            return
        if has_no_endpoints_of_ours(service):
            return
        pods = pods_of(self.pods.indexer, service)
        slices = [
            endpoint_slice
            for endpoint_slice in slices_of(self._slices, request, CONTROLLER_NAME)
            if not is_terminating(endpoint_slice)
        ]
        if self._tracker.stale_slices(request, slices):
            raise StaleInformerCache
        trigger_time = self._trigger_times.compute(request, service, pods)
        try:
            await self._reconciler.reconcile(service, pods, slices, trigger_time)
        except ReconcileError as error:
            message = f"Error updating Endpoint Slices for Service {request}: {error}"
            self._recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", message)
            raise


class _Topology:
    """Knows the nodes; services whose hints don't fit them any more are looked at."""

    def __init__(self, endpoint_slices: EndpointSliceController, services: Queue) -> None:
        self._endpoint_slices = endpoint_slices
        self._services = services

    async def reconcile(self, request: Request) -> None:
        topology = self._endpoint_slices.topology
        topology.set_nodes(self._endpoint_slices.nodes.indexer)
        for service in topology.overloaded_services():
            self._services.add(service)


def _node_changed(event: Event, queue: Queue) -> None:
    """In what zones' shares depend on."""
    if isinstance(event, UpdateEvent):
        old, new = event.object_old, event.object_new
        if is_node_ready(old) == is_node_ready(new) and labels_of(old).get(ZONE) == labels_of(new).get(ZONE):
            return
    queue.add(EVERYTHING)


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = EndpointSliceController(context)
    backoff = MaxOfRateLimiter(ItemExponentialFailureRateLimiter(1.0, 1000.0), BucketRateLimiter(clock=context.clock))
    services = context.controller(
        reconciler,
        workers=context.configuration.concurrent_service_endpoint_syncs,
        rate_limiter=backoff,
        max_retries=_MAX_RETRIES,
    )
    services.add_source(Informer(reconciler.services, enqueue))
    services.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    services.add_source(Informer(reconciler.slices, reconciler.slice_changed))
    topology = context.controller(_Topology(reconciler, services.queue), name=f"{context.name}-topology")
    topology.add_source(Informer(reconciler.nodes, _node_changed))
    return [services, topology]
