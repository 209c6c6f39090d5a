"""The slices that a service should have, and what has to be written for it.

Slices of one address type and set of ports are filled up to the limit. What is in a slice stays in it; what is new goes into slices
that are written anyway, then into one with enough room, then into new ones.
Upstream: k8s.io/endpointslice/{reconciler,utils}.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.ip_addresses import canonical_ip, is_ipv6
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.component_helpers.endpoints.endpoint_slices import (
    MANAGED_BY,
    SERVICE_NAME,
    EndpointSet,
    EndpointSliceTracker,
    PortMapKey,
    endpoint_key,
    endpoint_ports,
    endpoints_equal_beyond_key,
    name_prefix,
    port_map_key,
    slice_copy,
)
from fakeapiserver.component_helpers.endpoints.service_pods import (
    HEADLESS,
    LAST_CHANGE_TRIGGER_TIME,
    find_port,
    is_service_ip_set,
    pod_ips,
    should_pod_be_in_endpoints,
    should_set_hostname,
)
from fakeapiserver.component_helpers.objects import (
    ENDPOINT_SLICES,
    is_namespace_terminating,
    is_terminating,
    labels_of,
)
from fakeapiserver.component_helpers.pods import is_pod_ready
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controllers.endpointslice.topology_cache import (
    ZONE,
    ServiceEvent,
    SliceInfo,
    TopologyCache,
    disabled,
    remove_hints_from_slices,
)
from fakeapiserver.controllers.endpointslice.traffic_distribution import DISTRIBUTIONS, reconcile_hints

CONTROLLER_NAME: Final = "endpointslice-controller.k8s.io"
_FAMILIES: Final = ("IPv4", "IPv6")
_RESERVED_LABELS: Final = (SERVICE_NAME, MANAGED_BY, HEADLESS)
# The later one is the older one, and counts first.
_TOPOLOGY_MODES: Final = ("service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints")


class _Changes(Struct):
    """Slices to create have no name yet; those to delete are the informer's."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


class ReconcileError(Exception):
    """Something couldn't be done; the rest was."""


class Reconciler:
    """Brings a service's slices to the wanted state, with at most max_endpoints each."""

    def __init__(
        self,
        client: DynamicClient,
        nodes: Indexer,
        tracker: EndpointSliceTracker,
        topology: TopologyCache,
        recorder: CoreEventRecorder,
        max_endpoints: int,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._tracker = tracker
        self._topology = topology
        self._recorder = recorder
        self._max_endpoints = max_endpoints

    async def reconcile(
        self, service: Object, pods: Sequence[Object], existing: Sequence[Object], trigger_time: str
    ) -> None:
        """ReconcileError says all that went wrong."""
        request = Request(service["metadata"]["namespace"], service["metadata"]["name"])
        families = _address_types(service)
        errors: list[str] = []
        for family in families:
            of_family = [endpoint_slice for endpoint_slice in existing if endpoint_slice["addressType"] == family]
            errors += await self._reconcile_family(request, service, pods, of_family, trigger_time, family)
        for endpoint_slice in existing:
            if endpoint_slice["addressType"] not in families:
                self._topology.remove_hints(request, endpoint_slice["addressType"])
                errors += await self._delete_unsupported(request, endpoint_slice)
        if errors:
            raise ReconcileError(aggregated(errors))

    async def _delete_unsupported(self, request: Request, endpoint_slice: Object) -> Sequence[str]:
        name = endpoint_slice["metadata"]["name"]
        try:
            await self._client.resource(ENDPOINT_SLICES, request.namespace).delete(name)
        except StatusError as error:
            return [f"error deleting {name} EndpointSlice for Service {request}: {error}"]
        self._tracker.expect_deletion(endpoint_slice)
        return ()

    async def _reconcile_family(
        self,
        request: Request,
        service: Object,
        pods: Sequence[Object],
        existing: Sequence[Object],
        trigger_time: str,
        family: str,
    ) -> Sequence[str]:
        changes = _Changes()
        by_ports: dict[PortMapKey, list[Object]] = {}
        for endpoint_slice in existing:
            if _owned_by(endpoint_slice, service):
                by_ports.setdefault(port_map_key(endpoint_slice.get("ports") or ()), []).append(endpoint_slice)
            else:
                changes.delete.append(endpoint_slice)
        desired, errors = self._desired(request, service, pods, family)
        for ports, endpoints in desired.items():
            self._fill(service, by_ports.get(ports, ()), endpoints, ports, family, changes)
        for ports, slices in by_ports.items():
            if ports not in desired:
                changes.delete += slices
        if len(existing) == len(changes.delete) and not changes.create:
            placeholder = _new_slice(service, (), family)
            if len(changes.delete) == 1 and _same_placeholder(changes.delete[0], placeholder):
                changes.delete.clear()
            else:
                changes.create.append(placeholder)
        events = self._set_hints(request, service, existing, changes, family)
        try:
            await self._write(request, service, changes, trigger_time)
        except ReconcileError as error:
            errors.append(str(error))
        for event in events:
            self._recorder.event(service, *event)
        return errors

    def _desired(
        self, request: Request, service: Object, pods: Iterable[Object], family: str
    ) -> tuple[dict[PortMapKey, EndpointSet], list[str]]:
        """Returns the wanted endpoints by their ports. Pods on unknown nodes are left out for now."""
        desired: dict[PortMapKey, EndpointSet] = {}
        errors: list[str] = []
        numbered: dict[tuple[int | None, ...], PortMapKey] = {}
        service_ports = service["spec"].get("ports") or ()
        unready_too = service["spec"].get("publishNotReadyAddresses", False)
        for pod in pods:
            if not should_pod_be_in_endpoints(pod, include_terminating=True):
                continue
            numbers = tuple(find_port(pod, port) for port in service_ports)
            ports = numbered.get(numbers)
            if ports is None:
                ports = numbered[numbers] = port_map_key(_endpoint_ports(service_ports, numbers))
            endpoints = desired.setdefault(ports, {})
            node_name = pod["spec"].get("nodeName", "")
            node = self._nodes.get_by_key(node_name)
            if node is None and not unready_too:
                errors.append(
                    f"skipping Pod {pod['metadata']['name']} for Service {request}: Node {node_name} Not Found"
                )
                continue
            endpoint = _pod_to_endpoint(pod, node, service, family, publishes_unready=unready_too)
            if endpoint["addresses"]:
                endpoints[endpoint_key(endpoint)] = endpoint
        return desired, errors

    def _fill(
        self,
        service: Object,
        existing: Sequence[Object],
        desired: EndpointSet,
        ports: PortMapKey,
        family: str,
        changes: _Changes,
    ) -> None:
        """Puts the endpoints into slices; `desired` is empty afterwards."""
        update: dict[str, Object] = {}
        unchanged: dict[str, Object] = {}
        for endpoint_slice in existing:
            name = endpoint_slice["metadata"]["name"]
            before = endpoint_slice.get("endpoints") or ()
            kept, differs = _keep(before, desired)
            labels, relabelled = _slice_labels(labels_of(endpoint_slice), service)
            if not (differs or relabelled or len(kept) != len(before)):
                unchanged[name] = endpoint_slice
            elif not kept and len(before):
                changes.delete.append(endpoint_slice)
            else:
                copy = update[name] = slice_copy(endpoint_slice)
                copy["metadata"]["labels"] = labels
                if differs or len(kept) != len(before):
                    copy["endpoints"] = kept
        waiting = [*desired.values()]
        desired.clear()
        waiting.reverse()  # taken from its end
        for endpoint_slice in sorted(update.values(), key=lambda endpoint_slice: -len(endpoint_slice["endpoints"])):
            self._take(endpoint_slice, waiting)
        while waiting:
            roomy = self._roomy(unchanged.values(), len(waiting))
            if roomy is None:
                filled = _new_slice(service, ports, family)
                changes.create.append(filled)
            else:
                filled = slice_copy(roomy)
                name = filled["metadata"]["name"]
                update[name] = filled
                del unchanged[name]
            self._take(filled, waiting)
        changes.update += update.values()

    def _take(self, endpoint_slice: Object, waiting: list[Object]) -> None:
        room = self._max_endpoints - len(endpoint_slice["endpoints"])
        while waiting and room > 0:
            endpoint_slice["endpoints"].append(waiting.pop())
            room -= 1

    def _roomy(self, slices: Iterable[Object], endpoints: int) -> Object | None:
        """The one that is fullest with so many endpoints more."""
        if endpoints >= self._max_endpoints:
            return None
        roomy = [
            (room, candidate)
            for candidate in slices
            if (room := self._max_endpoints - endpoints - len(candidate.get("endpoints") or ())) >= 0
        ]
        return min(roomy, key=lambda pair: pair[0])[1] if roomy else None

    def _set_hints(
        self, request: Request, service: Object, existing: Iterable[Object], changes: _Changes, family: str
    ) -> Sequence[ServiceEvent]:
        touched = {endpoint_slice["metadata"]["name"] for endpoint_slice in (*changes.update, *changes.delete)}
        unchanged = [endpoint_slice for endpoint_slice in existing if endpoint_slice["metadata"]["name"] not in touched]
        info = SliceInfo(request, family, changes.create, changes.update, unchanged)
        if _hints_enabled(service):
            return self._topology.add_hints(info)
        events: Sequence[ServiceEvent] = ()
        if self._topology.has_populated_hints(request):
            events = (disabled("Topology Aware Hints has been disabled", family),)
        self._topology.remove_hints(request, family)
        distribution = service["spec"].get("trafficDistribution")
        if distribution in DISTRIBUTIONS:
            reconcile_hints(distribution, info)
        else:
            remove_hints_from_slices(info)
        return events

    async def _write(self, request: Request, service: Object, changes: _Changes, trigger_time: str) -> None:
        _recycle(service, changes)
        slices = self._client.resource(ENDPOINT_SLICES, request.namespace)
        what = "create"
        name = ""
        try:
            for endpoint_slice in changes.create if not is_terminating(service) else ():
                _set_trigger_time(endpoint_slice, trigger_time)
                self._tracker.update(await slices.create(endpoint_slice))
            what = "update "
            for endpoint_slice in changes.update:
                name = endpoint_slice["metadata"]["name"]
                _set_trigger_time(endpoint_slice, trigger_time)
                self._tracker.update(await slices.update(endpoint_slice))
            what = "delete "
            for endpoint_slice in changes.delete:
                name = endpoint_slice["metadata"]["name"]
                await slices.delete(name)
                self._tracker.expect_deletion(endpoint_slice)
        except StatusError as error:
            if what == "create" and is_namespace_terminating(error):
                return
            raise ReconcileError(f"failed to {what}{name} EndpointSlice for Service {request}: {error}") from error


def aggregated(errors: Sequence[str]) -> str:
    """Several errors as one (upstream: k8s.io/apimachinery/pkg/util/errors)."""
    messages = [*dict.fromkeys(errors)]
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def _keep(before: Iterable[Object], desired: EndpointSet) -> tuple[list[Object], bool]:
    """The endpoints that stay in their slice, as they should be now, and whether one looks different. `desired` loses them."""
    kept, differs = [], False
    for endpoint in before:
        wanted = desired.pop(endpoint_key(endpoint), None)
        if wanted is not None:
            kept.append(wanted)
            differs = differs or not endpoints_equal_beyond_key(wanted, endpoint)
    return kept, differs


def _recycle(service: Object, changes: _Changes) -> None:
    """Overwrites slices that would be deleted with slices that would be created."""
    delete = []
    for endpoint_slice in changes.delete:
        if (
            changes.create
            and endpoint_slice["addressType"] == changes.create[-1]["addressType"]
            and _owned_by(endpoint_slice, service)
        ):
            recycled = changes.create.pop()
            recycled["metadata"]["name"] = endpoint_slice["metadata"]["name"]
            changes.update.append(recycled)
        else:
            delete.append(endpoint_slice)
    changes.delete = delete


def _address_types(service: Object) -> Sequence[str]:
    spec = service["spec"]
    families = [family for family in spec.get("ipFamilies") or () if family in _FAMILIES]
    if families:
        return families
    if is_service_ip_set(service):
        return ("IPv6",) if is_ipv6(spec["clusterIP"]) else ("IPv4",)
    return _FAMILIES


def _owned_by(endpoint_slice: Object, service: Object) -> bool:
    uid = service["metadata"]["uid"]
    return any(
        owner["uid"] == uid and owner["kind"] == "Service" and owner["apiVersion"] == "v1"
        for owner in endpoint_slice["metadata"].get("ownerReferences") or ()
    )


def _endpoint_ports(service_ports: Iterable[Object], numbers: Iterable[int | None]) -> Iterable[Mapping[str, object]]:
    for port, number in zip(service_ports, numbers, strict=True):
        if number is not None:
            yield {
                "name": port.get("name", ""),
                "port": number,
                "protocol": port.get("protocol", "TCP"),
                "appProtocol": port.get("appProtocol"),
            }


def _pod_to_endpoint(
    pod: Object, node: Object | None, service: Object, family: str, *, publishes_unready: bool
) -> Object:
    metadata, spec = pod["metadata"], pod["spec"]
    serving, terminating = is_pod_ready(pod), is_terminating(pod)
    addresses = [address for text in pod_ips(pod) if (address := canonical_ip(text))]
    endpoint: Object = {
        "addresses": sorted(address for address in addresses if is_ipv6(address) == (family == "IPv6")),
        "conditions": {
            "ready": publishes_unready or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if spec.get("nodeName"):
        endpoint["nodeName"] = spec["nodeName"]
    if node is not None and (zone := labels_of(node).get(ZONE)):
        endpoint["zone"] = zone
    if should_set_hostname(pod, service):
        endpoint["hostname"] = spec["hostname"]
    return endpoint


def _new_slice(service: Object, ports: PortMapKey, family: str) -> Object:
    metadata = service["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labels, _ = _slice_labels({}, service)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": name_prefix(metadata["name"]),
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "addressType": family,
        "ports": endpoint_ports(ports),
        "endpoints": [],
    }


def _same_placeholder(endpoint_slice: Object, placeholder: Object) -> bool:
    return (
        not endpoint_slice.get("endpoints")
        and not endpoint_slice.get("ports")
        and endpoint_slice["addressType"] == placeholder["addressType"]
        and labels_of(endpoint_slice) == labels_of(placeholder)
    )


def _slice_labels(labels: Mapping[str, str], service: Object) -> tuple[dict[str, str], bool]:
    """The labels of a service's slice, and whether those it has are others; those of our own don't count for that."""
    own = {name: value for name, value in labels.items() if name not in _RESERVED_LABELS}
    wanted = {name: value for name, value in labels_of(service).items() if name not in _RESERVED_LABELS}
    differ = own != wanted
    if not is_service_ip_set(service):
        wanted[HEADLESS] = ""
    wanted[SERVICE_NAME] = service["metadata"]["name"]
    wanted[MANAGED_BY] = CONTROLLER_NAME
    return wanted, differ


def _set_trigger_time(endpoint_slice: Object, time: str) -> None:
    annotations = {**(endpoint_slice["metadata"].get("annotations") or {})}
    annotations.pop(LAST_CHANGE_TRIGGER_TIME, None)
    if time:
        annotations[LAST_CHANGE_TRIGGER_TIME] = time
    endpoint_slice["metadata"]["annotations"] = annotations


def _hints_enabled(service: Object) -> bool:
    annotations = service["metadata"].get("annotations") or {}
    modes = [annotations[name] for name in _TOPOLOGY_MODES if name in annotations]
    return bool(modes) and modes[-1] in ("Auto", "auto")
