"""Every service with a selector has Endpoints of the pods it selects (upstream: pkg/controller/endpoint/endpoints_controller.go)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery.ip_addresses import canonical_ip, is_ipv6
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_already_exists, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.endpoints.endpoint_subsets import repack_subsets
from fakeapiserver.component_helpers.endpoints.service_pods import (
    HEADLESS,
    LAST_CHANGE_TRIGGER_TIME,
    LEADER,
    TriggerTimeTracker,
    find_port,
    has_no_endpoints_of_ours,
    is_service_ip_set,
    pod_ips,
    pods_of,
    services_of_event,
    should_pod_be_in_endpoints,
    should_set_hostname,
)
from fakeapiserver.component_helpers.objects import ENDPOINTS, PODS, SERVICES, is_namespace_terminating, labels_of
from fakeapiserver.component_helpers.pods import is_pod_ready
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_NAME: Final = "endpoint-controller"
_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_MAX_CAPACITY: Final = 1000
_MAX_RETRIES: Final = 15


class StaleEndpoints(Exception):
    """The informer has not seen the controller's own last write yet."""


class EndpointController:
    """Requests are services, whose Endpoints have the same name."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.services = context.informer(SERVICES)
        self.pods = context.informer(PODS)
        self.endpoints = context.informer(ENDPOINTS)
        self._batch_period = context.configuration.endpoint_updates_batch_period
        self._trigger_times = TriggerTimeTracker()
        # The resourceVersions that were overwritten.
        self._stale: dict[Request, str] = {}
        self._recorder = context.recorder(_NAME)

    def pod_changed(self, event: Event, queue: Queue) -> None:
        for service in services_of_event(self.services.indexer, event):
            queue.add_after(service, self._batch_period)

    def endpoints_changed(self, event: Event, queue: Queue) -> None:
        """Queues the service of Endpoints that were deleted, or existed at the start without a leader's record."""
        if isinstance(event, DeleteEvent) or (
            isinstance(event, CreateEvent) and event.is_in_initial_list and not _leads(event.object)
        ):
            queue.add(request_for(event.object))

    async def reconcile(self, request: Request) -> None:
        service = self.services.indexer.get_by_key(str(request))
        if service is None:
            await self._forget(request)
            return
        if has_no_endpoints_of_ours(service):
            return
        pods = pods_of(self.pods.indexer, service)
        trigger_time = self._trigger_times.compute(request, service, pods)
        subsets = repack_subsets(_subsets(service, pods))
        current = self.endpoints.indexer.get_by_key(str(request))
        if current is not None:
            version = current["metadata"]["resourceVersion"]
            if self._stale.get(request) == version:
                raise StaleEndpoints(
                    "endpoints informer cache is out of date, "
                    f"resource version {version} already processed for endpoints {request}"
                )
            if _is_right(current, service, subsets):
                return
        await self._write(request, service, current, subsets, trigger_time)

    async def _forget(self, request: Request) -> None:
        try:
            await self._client.resource(ENDPOINTS, request.namespace).delete(request.name)
        except StatusError as error:
            if not is_not_found(error):
                raise
        self._trigger_times.forget(request)
        self._stale.pop(request, None)

    async def _write(
        self, request: Request, service: Object, current: Object | None, subsets: list[Object], trigger_time: str
    ) -> None:
        # New ones name no namespace, as upstream, so that the event of a refused create is in "default".
        metadata: Object = {"name": request.name} if current is None else current["metadata"]
        annotations = {**(metadata.get("annotations") or {})}
        annotations.pop(LAST_CHANGE_TRIGGER_TIME, None)
        annotations.pop(_OVER_CAPACITY, None)
        if trigger_time:
            annotations[LAST_CHANGE_TRIGGER_TIME] = trigger_time
        truncated = _truncated(subsets)
        if truncated is not subsets:
            annotations[_OVER_CAPACITY] = "truncated"
        labels = {name: value for name, value in labels_of(service).items() if name != HEADLESS}
        if not is_service_ip_set(service):
            labels[HEADLESS] = ""
        labels[_MANAGED_BY] = _NAME
        written = {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**metadata, "labels": labels, "annotations": annotations},
            "subsets": truncated,
        }
        endpoints = self._client.resource(ENDPOINTS, request.namespace)
        try:
            if current is None:
                await endpoints.create(written)
                return
            updated = await endpoints.update(written)
        except StatusError as error:
            if current is None and is_namespace_terminating(error):
                return
            if current is None and is_already_exists(error):
                raise StaleEndpoints(str(error)) from error
            what = "Create" if current is None else "Update"
            whose = "for service " if current is None else ""
            message = f"Failed to {what.lower()} endpoint {whose}{request}: {error}"
            self._recorder.event(written, "Warning", f"FailedTo{what}Endpoint", message)
            raise
        if updated["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            self._stale[request] = metadata["resourceVersion"]


def _leads(endpoints: Object) -> bool:
    return LEADER in (endpoints["metadata"].get("annotations") or {})


def _subsets(service: Object, pods: Iterable[Object]) -> Iterator[Object]:
    """Yields a subset for each port of each pod."""
    spec = service["spec"]
    unready_too = spec.get("publishNotReadyAddresses", False)
    for pod in pods:
        if not should_pod_be_in_endpoints(pod, include_terminating=unready_too):
            continue
        address = _address(service, pod)
        if address is None:
            continue
        members = "addresses" if unready_too or is_pod_ready(pod) else "notReadyAddresses"
        if not spec.get("ports"):
            if spec.get("clusterIP") == "None":
                yield {members: [address]}
            continue
        for port in spec["ports"]:
            number = find_port(pod, port)
            if number is not None:
                yield {members: [address], "ports": [{**port, "port": number}]}


def _address(service: Object, pod: Object) -> Object | None:
    """Returns the pod's address, or None if it has none of the service's IP family."""
    wants_ipv6 = _primary_family(service, pod) == "IPv6"
    for text in pod_ips(pod):
        ip = canonical_ip(text)
        if ip and is_ipv6(ip) == wants_ipv6:
            break
    else:
        return None
    metadata = pod["metadata"]
    address: Object = {
        "ip": ip,
        "nodeName": pod["spec"].get("nodeName", ""),
        "targetRef": {
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if should_set_hostname(pod, service):
        address["hostname"] = pod["spec"]["hostname"]
    return address


def _primary_family(service: Object, pod: Object) -> str:
    spec = service["spec"]
    if families := spec.get("ipFamilies"):
        family: str = families[0]
        return family
    address = spec["clusterIP"] if is_service_ip_set(service) else pod.get("status", {}).get("podIP", "")
    return "IPv6" if is_ipv6(address) else "IPv4"


def _is_right(current: Object, service: Object, subsets: Sequence[Object]) -> bool:
    present = [_comparable(subset) for subset in current.get("subsets") or ()]
    return (
        (present == subsets or repack_subsets(present) == subsets)
        and _has_right_labels(labels_of(current), labels_of(service))
        and _count(present) <= _MAX_CAPACITY
        and _OVER_CAPACITY not in (current["metadata"].get("annotations") or {})
    )


def _comparable(subset: Object) -> Object:
    """Returns the subset without the resourceVersions of its targets."""
    copy = {**subset}
    for members in ("addresses", "notReadyAddresses"):
        if members in subset:
            copy[members] = [_without_version(address) for address in subset[members]]
    return copy


def _without_version(address: Object) -> Object:
    target = address.get("targetRef") or {}
    if "resourceVersion" not in target:
        return address
    return {**address, "targetRef": {name: value for name, value in target.items() if name != "resourceVersion"}}


def _has_right_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    if labels.get(_MANAGED_BY) != _NAME:
        return False
    own = {name: value for name, value in labels.items() if name not in (HEADLESS, _MANAGED_BY)}
    return len(own) == len(wanted) and own.items() <= wanted.items()


def _count(subsets: Iterable[Object]) -> int:
    return sum(len(subset.get("addresses", ())) + len(subset.get("notReadyAddresses", ())) for subset in subsets)


def _truncated(subsets: list[Object]) -> list[Object]:
    """A thousand addresses of them, ready ones first, each subset with its share; the same list where there are no more."""
    ready = sum(len(subset.get("addresses", ())) for subset in subsets)
    not_ready = sum(len(subset.get("notReadyAddresses", ())) for subset in subsets)
    if ready + not_ready <= _MAX_CAPACITY:
        return subsets
    cuts_ready = ready > _MAX_CAPACITY
    members = "addresses" if cuts_ready else "notReadyAddresses"
    room, total = (_MAX_CAPACITY, ready) if cuts_ready else (_MAX_CAPACITY - ready, not_ready)
    left, truncated = room, []
    for subset in subsets:
        candidates = subset.get(members, ())
        kept = candidates[: min(left, math.ceil(len(candidates) / total * room))]
        left -= len(kept)
        cut = {name: value for name, value in subset.items() if not cuts_ready or name != "notReadyAddresses"}
        truncated.append({**cut, members: kept} if kept else {name: cut[name] for name in cut if name != members})
    return truncated


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = EndpointController(context)
    controller = context.controller(
        reconciler, workers=context.configuration.concurrent_endpoint_syncs, max_retries=_MAX_RETRIES
    )
    controller.add_source(Informer(reconciler.services, enqueue))
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    controller.add_source(Informer(reconciler.endpoints, reconciler.endpoints_changed))
    return [controller]
