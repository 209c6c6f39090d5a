"""Mirrors Endpoints of services without a selector to EndpointSlices.

Upstream: pkg/controller/endpointslicemirroring.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.ip_addresses import canonical_ip, is_ipv6
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.workqueue import BucketRateLimiter, ItemExponentialFailureRateLimiter, MaxOfRateLimiter
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.endpoints.endpoint_slices import (
    MANAGED_BY,
    SERVICE_NAME,
    EndpointSet,
    EndpointSliceTracker,
    PortMapKey,
    StaleInformerCache,
    add_service_indexer,
    endpoint_key,
    endpoint_ports,
    endpoints_equal_beyond_key,
    name_prefix,
    port_map_key,
    slices_of,
)
from fakeapiserver.component_helpers.endpoints.endpoint_subsets import repack_subsets
from fakeapiserver.component_helpers.endpoints.service_pods import LAST_CHANGE_TRIGGER_TIME, LEADER
from fakeapiserver.component_helpers.objects import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    SERVICES,
    is_namespace_terminating,
    is_terminating,
    labels_of,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_NAME: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_RETRIES: Final = 15
# Address type and ports of a slice.
_Key = tuple[str, PortMapKey]


class _Changes(Struct):
    """Slices to create have no name yet."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


class EndpointSliceMirroringController:
    """Requests are Endpoints, and the services of the same name."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.endpoints = context.informer(ENDPOINTS)
        self.slices = context.informer(ENDPOINT_SLICES)
        self._slices = add_service_indexer(self.slices)
        self.services = context.informer(SERVICES)
        self._tracker = EndpointSliceTracker()
        self._batch_period = context.configuration.mirroring_endpointslice_updates_batch_period
        self._max_endpoints = context.configuration.mirroring_max_endpoints_per_subset
        self._recorder = context.recorder("endpoint-slice-mirroring-controller")

    def endpoints_changed(self, event: Event, queue: Queue) -> None:
        """Queues Endpoints that are to be mirrored, or were."""
        if isinstance(event, UpdateEvent):
            if _should_mirror(event.object_new) or _should_mirror(event.object_old):
                queue.add(request_for(event.object_new))
        elif _should_mirror(event.object):
            queue.add(request_for(event.object))

    def service_changed(self, event: Event, queue: Queue) -> None:
        """Queues services without a selector, and those that gain or lose theirs."""
        if isinstance(event, UpdateEvent):
            if _has_selector(event.object_new) != _has_selector(event.object_old):
                queue.add(request_for(event.object_new))
        elif not _has_selector(event.object):
            queue.add(request_for(event.object))

    def slice_changed(self, event: Event, queue: Queue) -> None:
        """Queues the service of a slice that another client changed."""
        for service in self._tracker.concerned(event, _NAME):
            queue.add_after(service, self._batch_period)

    async def reconcile(self, request: Request) -> None:
        endpoints = self.endpoints.indexer.get_by_key(str(request))
        service = self.services.indexer.get_by_key(str(request))
        slices = slices_of(self._slices, request, _NAME)
        if endpoints is None or not _should_mirror(endpoints) or service is None or _has_selector(service):
            self._tracker.forget(request)
            await self._delete(request, slices)
            return
        if self._tracker.stale_slices(request, slices):
            raise StaleInformerCache
        changes = self._changes(endpoints, slices)
        _recycle(changes)
        await self._write(request, endpoints, changes)

    async def _delete(self, request: Request, slices: Sequence[Object]) -> None:
        client = self._client.resource(ENDPOINT_SLICES, request.namespace)
        errors = []
        for endpoint_slice in slices:
            try:
                await client.delete(endpoint_slice["metadata"]["name"])
            except StatusError as error:
                errors.append(error)
        if errors:
            raise RuntimeError(
                f"error(s) deleting {len(errors)}/{len(slices)} EndpointSlices for {request} Endpoints, "
                f"including: {errors[0]}"
            )

    def _changes(self, endpoints: Object, slices: Sequence[Object]) -> _Changes:
        desired = self._desired(endpoints)
        existing: dict[_Key, list[Object]] = {}
        for endpoint_slice in slices:
            existing.setdefault(
                (endpoint_slice["addressType"], port_map_key(endpoint_slice.get("ports") or ())), []
            ).append(endpoint_slice)
        changes = _Changes()
        for key, wanted in desired.items():
            self._mirror(endpoints, key, wanted, existing.pop(key, []), changes)
        for of_no_use in existing.values():
            changes.delete += of_no_use
        return changes

    def _desired(self, endpoints: Object) -> dict[_Key, EndpointSet]:
        """Returns the wanted endpoints by family and ports, and records events about addresses that aren't mirrored."""
        desired: dict[_Key, EndpointSet] = {}
        invalid = skipped = 0
        for subset in repack_subsets(endpoints.get("subsets") or ()):
            ports = port_map_key({"name": "", **port} for port in subset.get("ports") or ())
            sets = {family: desired.setdefault((family, ports), {}) for family in ("IPv4", "IPv6")}
            room = self._max_endpoints
            for members, ready in (("addresses", True), ("notReadyAddresses", False)):
                for address in subset.get(members) or ():
                    ip = canonical_ip(address["ip"])
                    if room <= 0:
                        skipped += 1
                    elif not ip:
                        invalid += 1
                    else:
                        endpoint = _endpoint(address, ip, ready=ready)
                        sets["IPv6" if is_ipv6(ip) else "IPv4"][endpoint_key(endpoint)] = endpoint
                        room -= 1
        if invalid:
            message = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
            self._recorder.event(endpoints, "Warning", "InvalidIPAddress", message)
        if skipped:
            message = (
                f"A max of {self._max_endpoints} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped + invalid} addresses were skipped"
            )
            self._recorder.event(endpoints, "Warning", "TooManyAddressesToMirror", message)
        return desired

    def _mirror(
        self, endpoints: Object, key: _Key, wanted: EndpointSet, existing: Sequence[Object], changes: _Changes
    ) -> None:
        """Plans the one slice for a key."""
        if not wanted:
            changes.delete += existing
            return
        changes.delete += existing[1:]
        if existing and _is_mirror(existing[0], endpoints, wanted):
            if not self._tracker.has(existing[0]):
                self._tracker.update(existing[0])
            return
        mirrored = _new_slice(endpoints, key, [*wanted.values()][: self._max_endpoints])
        if existing:
            mirrored["metadata"]["name"] = existing[0]["metadata"]["name"]
            changes.update.append(mirrored)
        else:
            mirrored["metadata"]["generateName"] = name_prefix(endpoints["metadata"]["name"])
            changes.create.append(mirrored)

    async def _write(self, request: Request, endpoints: Object, changes: _Changes) -> None:
        slices = self._client.resource(ENDPOINT_SLICES, request.namespace)
        for endpoint_slice in changes.create if not is_terminating(endpoints) else ():
            try:
                self._tracker.update(await slices.create(endpoint_slice))
            except StatusError as error:
                if is_namespace_terminating(error):
                    return
                raise
        for endpoint_slice in changes.update:
            self._tracker.update(await slices.update(endpoint_slice))
        for endpoint_slice in changes.delete:
            await slices.delete(endpoint_slice["metadata"]["name"])
            self._tracker.expect_deletion(endpoint_slice)


def _should_mirror(endpoints: Object) -> bool:
    annotations = endpoints["metadata"].get("annotations") or {}
    return labels_of(endpoints).get(_SKIP_MIRROR) != "true" and LEADER not in annotations


def _has_selector(service: Object) -> bool:
    return service["spec"].get("selector") is not None


def _endpoint(address: Object, ip: str, *, ready: bool) -> Object:
    names = ("targetRef", "nodeName", "hostname")
    return {
        "addresses": [ip],
        "conditions": {"ready": ready},
        **{name: address[name] for name in names if address.get(name) is not None and address[name] != ""},
    }


def _mirrored_annotations(endpoints: Object) -> dict[str, str]:
    annotations: Mapping[str, str] = endpoints["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in (LAST_CHANGE_TRIGGER_TIME, _LAST_APPLIED)}


def _new_slice(endpoints: Object, key: _Key, mirrored: Iterable[Object]) -> Object:
    family, ports = key
    metadata = endpoints["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": metadata["namespace"],
            "labels": {**labels_of(endpoints), SERVICE_NAME: metadata["name"], MANAGED_BY: _NAME},
            "annotations": _mirrored_annotations(endpoints),
            "ownerReferences": [owner],
        },
        "addressType": family,
        "ports": endpoint_ports(ports),
        "endpoints": [*mirrored],
    }


def _is_mirror(endpoint_slice: Object, endpoints: Object, wanted: EndpointSet) -> bool:
    """Whether the slice is up to date."""
    metadata = endpoint_slice["metadata"]
    mirrored = endpoint_slice.get("endpoints") or ()
    own_labels = {
        name: value for name, value in labels_of(endpoint_slice).items() if name not in (MANAGED_BY, SERVICE_NAME)
    }
    return (
        len(mirrored) == len(wanted)
        and all(
            (other := wanted.get(endpoint_key(endpoint))) is not None and endpoints_equal_beyond_key(endpoint, other)
            for endpoint in mirrored
        )
        and own_labels == labels_of(endpoints)
        and (metadata.get("annotations") or {}) == _mirrored_annotations(endpoints)
        and not any(
            owner["kind"] == "Endpoints"
            and owner["name"] == endpoints["metadata"]["name"]
            and owner["uid"] != endpoints["metadata"]["uid"]
            for owner in metadata.get("ownerReferences") or ()
        )
    )


def _recycle(changes: _Changes) -> None:
    """Overwrites slices that would be deleted with slices that would be created."""
    create = []
    for endpoint_slice in changes.create:
        old = next((other for other in changes.delete if other["addressType"] == endpoint_slice["addressType"]), None)
        if old is None:
            create.append(endpoint_slice)
            continue
        changes.delete.remove(old)
        endpoint_slice["metadata"]["name"] = old["metadata"]["name"]
        changes.update.append(endpoint_slice)
    changes.create = create


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = EndpointSliceMirroringController(context)
    controller = context.controller(
        reconciler,
        workers=context.configuration.mirroring_concurrent_service_endpoint_syncs,
        rate_limiter=MaxOfRateLimiter(
            ItemExponentialFailureRateLimiter(1.0, 100.0), BucketRateLimiter(clock=context.clock)
        ),
        max_retries=_MAX_RETRIES,
    )
    controller.add_source(Informer(reconciler.endpoints, reconciler.endpoints_changed))
    controller.add_source(Informer(reconciler.slices, reconciler.slice_changed))
    controller.add_source(Informer(reconciler.services, reconciler.service_changed))
    return [controller]
