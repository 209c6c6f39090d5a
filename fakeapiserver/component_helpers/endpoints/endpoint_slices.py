"""Shared code of the controllers that write EndpointSlices.

Upstream: k8s.io/endpointslice/util/{endpointset,endpointslice_tracker,controller_utils}.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.cache.shared_informer import SharedInformer
from fakeapiserver.component_helpers.objects import labels_of
from fakeapiserver.component_helpers.pods import add_indexer
from fakeapiserver.component_helpers.workloads.deep_hash import fnv128a, spew
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.reconcile import Request

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_BY_SERVICE: Final = "endpoint slices by service"

# name, protocol, port, appProtocol
_Port = tuple[str | None, str | None, int | None, str | None]
PortMapKey = tuple[_Port, ...]
# addresses, hostname, namespace and name of the target
EndpointKey = tuple[tuple[str, ...], str, str, str]
EndpointSet = dict[EndpointKey, Object]


class StaleInformerCache(Exception):
    """The informer has not seen the controller's own last write yet."""

    def __init__(self) -> None:
        super().__init__("EndpointSlice informer cache is out of date")


def port_map_key(ports: Iterable[Mapping[str, Any]]) -> PortMapKey:
    """Ports in their order of hashes, which is the one they are written in."""
    rows = [(port.get("name"), port.get("protocol"), port.get("port"), port.get("appProtocol")) for port in ports]
    return tuple(sorted(rows, key=_port_hash)) if len(rows) > 1 else tuple(rows)


def endpoint_ports(key: PortMapKey) -> list[Object]:
    """Ports as they are written."""
    return [
        {
            member: value
            for member, value in zip(("name", "protocol", "port", "appProtocol"), port, strict=True)
            if value is not None
        }
        for port in key
    ]


@lru_cache(4096)
def _port_hash(port: _Port) -> int:
    name, protocol, number, app_protocol = port
    members = (
        spew("Name", "*string", name),
        spew("Protocol", "*v1.Protocol", protocol),
        spew("Port", "*int32", number),
        spew("AppProtocol", "*string", app_protocol),
    )
    return fnv128a(f"(v1.EndpointPort){{{' '.join(members)}}}")


def endpoint_key(endpoint: Object) -> EndpointKey:
    """Returns the identity of an endpoint, which does not depend on its readiness."""
    target = endpoint.get("targetRef") or {}
    addresses: list[str] = endpoint["addresses"]
    return (
        tuple(sorted(addresses)) if len(addresses) > 1 else tuple(addresses),
        endpoint.get("hostname") or "",
        target.get("namespace") or "",
        target.get("name") or "",
    )


def endpoints_equal_beyond_key(left: Object, right: Object) -> bool:
    """Reports whether two endpoints with one key need no write."""
    return (
        left.get("nodeName") == right.get("nodeName")
        and left.get("zone") == right.get("zone")
        and (left.get("conditions") or {}) == (right.get("conditions") or {})
        and _referred(left) == _referred(right)
    )


def _referred(endpoint: Object) -> Mapping[str, str] | None:
    target: Mapping[str, str] | None = endpoint.get("targetRef")
    if target is not None and "resourceVersion" in target:
        return {name: value for name, value in target.items() if name != "resourceVersion"}
    return target


def name_prefix(service: str) -> str:
    """Returns the prefix of the names of a service's slices."""
    prefix = f"{service}-"
    return service if names.name_is_dns_subdomain(prefix, True) else prefix


def slice_copy(endpoint_slice: Object) -> Object:
    """Returns a copy whose metadata, endpoints and ports can be replaced; the endpoints themselves are shared."""
    return {
        **endpoint_slice,
        "metadata": {**endpoint_slice["metadata"]},
        "endpoints": [*(endpoint_slice.get("endpoints") or ())],
    }


def service_of(endpoint_slice: Object) -> Request | None:
    """The service whose slice it says it is."""
    name = labels_of(endpoint_slice).get(SERVICE_NAME)
    return Request(endpoint_slice["metadata"].get("namespace", ""), name) if name else None


def add_service_indexer(informer: SharedInformer) -> Indexer:
    """The informer's indexer, for `slices_of`."""
    return add_indexer(informer, _BY_SERVICE, _service_index)


def _service_index(endpoint_slice: Object) -> Iterable[str]:
    service = service_of(endpoint_slice)
    return () if service is None else (str(service),)


def slices_of(slices: Indexer, service: Request, manager: str) -> Sequence[Object]:
    """The slices of a service that `manager` wrote."""
    return [
        endpoint_slice
        for endpoint_slice in slices.by_index(_BY_SERVICE, str(service))
        if is_managed_by(endpoint_slice, manager)
    ]


def is_managed_by(endpoint_slice: Object, manager: str) -> bool:
    return labels_of(endpoint_slice).get(MANAGED_BY) == manager


_DELETION_EXPECTED: Final = -1


class EndpointSliceTracker:
    """Remembers the generation of each EndpointSlice that this controller wrote, to recognise stale cache reads."""

    def __init__(self) -> None:
        self._services: dict[Request, dict[str, int]] = {}

    def has(self, endpoint_slice: Object) -> bool:
        return endpoint_slice["metadata"]["uid"] in self._services.get(_tracked_as(endpoint_slice), {})

    def should_sync(self, endpoint_slice: Object) -> bool:
        """Whether another client wrote the slice."""
        generation = self._services.get(_tracked_as(endpoint_slice), {}).get(endpoint_slice["metadata"]["uid"])
        return generation is None or _generation(endpoint_slice) > generation

    def stale_slices(self, service: Request, slices: Iterable[Object]) -> bool:
        """`slices` isn't all that was written yet, or still has what was deleted."""
        generations = self._services.get(service, {})
        given = set()
        for endpoint_slice in slices:
            uid = endpoint_slice["metadata"]["uid"]
            given.add(uid)
            generation = generations.get(uid)
            if generation is not None and (
                generation == _DELETION_EXPECTED or generation > _generation(endpoint_slice)
            ):
                return True
        return any(generation != _DELETION_EXPECTED and uid not in given for uid, generation in generations.items())

    def update(self, endpoint_slice: Object) -> None:
        """Remembers a slice as this controller wrote it."""
        self._services.setdefault(_tracked_as(endpoint_slice), {})[endpoint_slice["metadata"]["uid"]] = _generation(
            endpoint_slice
        )

    def expect_deletion(self, endpoint_slice: Object) -> None:
        """Remembers that this controller deletes the slice."""
        self._services.setdefault(_tracked_as(endpoint_slice), {})[endpoint_slice["metadata"]["uid"]] = (
            _DELETION_EXPECTED
        )

    def handle_deletion(self, endpoint_slice: Object) -> bool:
        """Forgets a deleted slice; returns whether the deletion was expected."""
        generation = self._services.get(_tracked_as(endpoint_slice), {}).pop(endpoint_slice["metadata"]["uid"], None)
        return generation is None or generation == _DELETION_EXPECTED

    def concerned(self, event: Event, manager: str) -> Sequence[Request]:
        """Returns the services that `manager` must sync because another client changed one of their slices."""
        endpoint_slice = object_of(event)
        service, ours = service_of(endpoint_slice), is_managed_by(endpoint_slice, manager)
        services = [] if service is None else [service]
        if isinstance(event, DeleteEvent):
            return services if ours and self.has(endpoint_slice) and not self.handle_deletion(endpoint_slice) else ()
        if isinstance(event, UpdateEvent):
            before = service_of(event.object_old)
            if before != service:
                return services if before is None else [*services, before]
            if is_managed_by(event.object_old, manager) != ours:
                return services
        return services if ours and self.should_sync(endpoint_slice) else ()

    def forget(self, service: Request) -> None:
        """The service is gone."""
        self._services.pop(service, None)


def _tracked_as(endpoint_slice: Object) -> Request:
    return service_of(endpoint_slice) or Request(endpoint_slice["metadata"].get("namespace", ""), "")


def _generation(endpoint_slice: Object) -> int:
    generation: int = endpoint_slice["metadata"].get("generation", 0)
    return generation
