"""In which zone's traffic each endpoint of a service is to have its part, by the zones' shares of all CPUs.

Upstream: k8s.io/endpointslice/topologycache.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import amount
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.component_helpers.endpoints.endpoint_slices import slice_copy
from fakeapiserver.component_helpers.objects import labels_of
from fakeapiserver.controller_runtime.reconcile import Request

ZONE: Final = "topology.kubernetes.io/zone"
_OVERLOAD_THRESHOLD: Final = 0.2
_CONTROL_PLANES: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_TOO_LITTLE_KNOWN: Final = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
_OVERLOADED: Final = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"


class ServiceEvent(NamedTuple):
    """An event about the service."""

    event_type: str
    reason: str
    message: str


class SliceInfo(Struct):
    """The slices of a service and address type, as they are going to be written. Those unchanged are the informer's."""

    service: Request
    address_type: str
    to_create: list[Object]
    to_update: list[Object]
    unchanged: list[Object]

    def ready_endpoints(self) -> int:
        return sum(
            endpoint_ready(endpoint)
            for endpoint_slice in (*self.to_create, *self.to_update, *self.unchanged)
            for endpoint in endpoint_slice.get("endpoints") or ()
        )


class _Allocation(NamedTuple):
    minimum: int
    maximum: int
    desired: float


class TopologyCache:
    """The shares of zones, and the hints that were given."""

    def __init__(self) -> None:
        self._ratios: Mapping[str, float] | None = None
        # A node because of which there are no shares, so that not all nodes are looked at whenever one changes.
        self._preventing = ""
        self._endpoints: dict[Request, dict[str, dict[str, int]]] = {}
        self._populated: set[Request] = set()

    def set_nodes(self, nodes: Indexer) -> None:
        """Computes the zones' shares; without the zone and CPU of each ready node, and two zones, no shares exist."""
        if (node := nodes.get_by_key(self._preventing)) is not None and _counts(node) and _share(node) is None:
            return
        by_zone: dict[str, Fraction] = {}
        self._ratios, self._preventing = None, ""
        for node in filter(_counts, nodes.list()):
            share = _share(node)
            if share is None:
                self._preventing = node["metadata"]["name"]
                return
            zone, cpu = share
            by_zone[zone] = by_zone.get(zone, Fraction(0)) + cpu
        if len(by_zone) >= 2:
            total = _milli(sum(by_zone.values(), Fraction(0)))
            self._ratios = {zone: _milli(cpu) / total for zone, cpu in by_zone.items()}

    def overloaded_services(self) -> Sequence[Request]:
        """Returns the services with too few endpoints for some zone."""
        return [
            service
            for service, by_type in self._endpoints.items()
            if any(self._overloaded(by_zone) for by_zone in by_type.values())
        ]

    def _overloaded(self, by_zone: Mapping[str, int]) -> bool:
        if not by_zone:
            return False
        if not self._ratios:
            return True
        total = float(sum(by_zone.values()))
        return any(
            zone not in by_zone or by_zone[zone] < math.ceil(total * ratio * (1 / (1 + _OVERLOAD_THRESHOLD)))
            for zone, ratio in self._ratios.items()
        )

    def has_populated_hints(self, service: Request) -> bool:
        return service in self._populated

    def remove_hints(self, service: Request, address_type: str) -> None:
        """Forgets the hints of a service."""
        by_type = self._endpoints.get(service)
        if by_type is not None:
            by_type.pop(address_type, None)
            if not by_type:
                del self._endpoints[service]
        self._populated.discard(service)

    def add_hints(self, info: SliceInfo) -> Sequence[ServiceEvent]:
        """Gives every ready endpoint that is written a zone; slices whose hints don't do any more are written too."""
        allocations = self._allocations(info.ready_endpoints())
        if isinstance(allocations, str):
            return self._disabled(info, allocations)
        allocated = _keep_what_fits(info, allocations)
        written = [*info.to_create, *info.to_update]
        for endpoint_slice in written:
            for i, endpoint in enumerate(endpoint_slice["endpoints"]):
                if not endpoint_ready(endpoint):
                    continue
                zone = endpoint.get("zone")
                if not zone:
                    return self._disabled(info, "One or more endpoints do not have a zone specified")
                allocated[zone] = allocated.get(zone, 0) + 1
                endpoint_slice["endpoints"][i] = {**endpoint, "hints": {"forZones": [{"name": zone}]}}
        giving, receiving = _giving_and_receiving(allocations, allocated)
        _redistribute(written, giving, receiving, allocated)
        if not allocated:
            return self._disabled(info, "No hints allocated for zones")
        enabled = info.service in self._populated
        self._endpoints.setdefault(info.service, {})[info.address_type] = allocated
        self._populated.add(info.service)
        if enabled:
            return ()
        message = f"Topology Aware Hints has been enabled, addressType: {info.address_type}"
        return (ServiceEvent("Normal", "TopologyAwareHintsEnabled", message),)

    def _disabled(self, info: SliceInfo, why: str) -> Sequence[ServiceEvent]:
        self.remove_hints(info.service, info.address_type)
        remove_hints_from_slices(info)
        return (disabled(why, info.address_type),)

    def _allocations(self, endpoints: int) -> Mapping[str, _Allocation] | str:
        """Returns each zone's share of the endpoints, or why there are no shares."""
        if self._ratios is None:
            return _TOO_LITTLE_KNOWN
        counted = f"({endpoints} endpoints, {len(self._ratios)} zones)"
        if len(self._ratios) > endpoints:
            return f"Insufficient number of endpoints {counted}"
        desired = {zone: ratio * endpoints for zone, ratio in self._ratios.items()}
        minimum = {zone: math.ceil(share * (1 / (1 + _OVERLOAD_THRESHOLD))) for zone, share in desired.items()}
        spare = endpoints - sum(minimum.values())
        if spare < 0:
            return f"{_OVERLOADED} {counted}"
        return {
            zone: _Allocation(minimum[zone], minimum[zone] + spare, max(share, float(minimum[zone])))
            for zone, share in desired.items()
        }


def disabled(why: str, address_type: str) -> ServiceEvent:
    """Says that a service has no hints by zones' shares, and why."""
    return ServiceEvent("Warning", "TopologyAwareHintsDisabled", f"{why}, addressType: {address_type}")


def remove_hints_from_slices(info: SliceInfo) -> None:
    """Takes all hints away; unchanged slices that had some are updated."""
    for endpoint_slice in (*info.to_create, *info.to_update):
        endpoint_slice["endpoints"] = [_without_hints(endpoint) for endpoint in endpoint_slice["endpoints"]]
    unchanged = []
    for endpoint_slice in info.unchanged:
        if any("hints" in endpoint for endpoint in endpoint_slice.get("endpoints") or ()):
            copy = slice_copy(endpoint_slice)
            copy["endpoints"] = [_without_hints(endpoint) for endpoint in copy["endpoints"]]
            info.to_update.append(copy)
        else:
            unchanged.append(endpoint_slice)
    info.unchanged = unchanged


def _without_hints(endpoint: Object) -> Object:
    return {name: value for name, value in endpoint.items() if name != "hints"} if "hints" in endpoint else endpoint


def endpoint_ready(endpoint: Object) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is True


def is_node_ready(node: Object) -> bool:
    for condition in node.get("status", {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return bool(condition["status"] == "True")
    return False


def _counts(node: Object) -> bool:
    """Reports whether the node is ready and runs workloads."""
    return not any(name in labels_of(node) for name in _CONTROL_PLANES) and is_node_ready(node)


def _share(node: Object) -> tuple[str, Fraction] | None:
    """Returns the node's zone and CPU, or None if one of them is missing."""
    zone, cpu = labels_of(node).get(ZONE), amount((node["status"].get("allocatable") or {}).get("cpu", "0"))
    return (zone, cpu) if zone and cpu else None


def _milli(cpu: Fraction) -> float:
    return float(math.ceil(cpu * 1000))


def _keep_what_fits(info: SliceInfo, allocations: Mapping[str, _Allocation]) -> dict[str, int]:
    """Returns how many hints each zone has in unchanged slices; slices whose hints don't fit are queued for an
    update.
    """
    allocated: dict[str, int] = {}
    unchanged = []
    for endpoint_slice in info.unchanged:
        hints = _fitting_hints(endpoint_slice, allocated, allocations)
        if hints is None:
            info.to_update.append(slice_copy(endpoint_slice))
            continue
        unchanged.append(endpoint_slice)
        for zone, count in hints.items():
            allocated[zone] = allocated.get(zone, 0) + count
    info.unchanged = unchanged
    return allocated


def _fitting_hints(
    endpoint_slice: Object, allocated: Mapping[str, int], allocations: Mapping[str, _Allocation]
) -> Mapping[str, int] | None:
    counts: dict[str, int] = {}
    for endpoint in endpoint_slice.get("endpoints") or ():
        if not endpoint_ready(endpoint):
            continue
        zones = (endpoint.get("hints") or {}).get("forZones")
        if not zones or any(zone["name"] not in allocations for zone in zones):
            return None
        for zone in zones:
            counts[zone["name"]] = counts.get(zone["name"], 0) + 1
    fits = all(count + allocated.get(zone, 0) <= allocations[zone].maximum for zone, count in counts.items())
    return counts if fits else None


def _giving_and_receiving(
    allocations: Mapping[str, _Allocation], allocated: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Returns how many endpoints zones have too many, and how many others need."""
    too_many = {zone: allocated.get(zone, 0) - allocation.desired for zone, allocation in allocations.items()}
    giving_wish = {zone: share for zone, share in too_many.items() if share > 0}
    receiving_wish = {zone: -share for zone, share in too_many.items() if share < 0}
    giving: dict[str, int] = {}
    receiving: dict[str, int] = {}
    while True:
        giver, give = _most(giving_wish)
        receiver, receive = _most(receiving_wish)
        if not giver or not receiver or (give < 1.0 and receive < 1.0) or give < 0.5 or receive < 0.5:
            return giving, receiving
        giving[giver] = giving.get(giver, 0) + 1
        giving_wish[giver] -= 1
        receiving[receiver] = receiving.get(receiver, 0) + 1
        receiving_wish[receiver] -= 1


def _most(zones: Mapping[str, float]) -> tuple[str, float]:
    zone = max(zones, key=zones.__getitem__, default="")
    return (zone, zones[zone]) if zone and zones[zone] > 0 else ("", 0.0)


def _redistribute(
    slices: Iterable[Object], giving: dict[str, int], receiving: dict[str, int], allocated: dict[str, int]
) -> None:
    """Moves endpoints from zones that have too many to zones that need some."""
    for endpoint_slice in slices:
        for i, endpoint in enumerate(endpoint_slice["endpoints"]):
            if not giving or not receiving:
                return
            zone = endpoint.get("zone")
            if not endpoint_ready(endpoint) or zone not in giving:
                continue
            receiver = next(iter(receiving))
            endpoint_slice["endpoints"][i] = {**endpoint, "hints": {"forZones": [{"name": receiver}]}}
            _take_one(giving, zone)
            _take_one(receiving, receiver)
            allocated[receiver] = allocated.get(receiver, 0) + 1
            allocated[zone] = allocated.get(zone, 0) - 1


def _take_one(counts: dict[str, int], zone: str) -> None:
    counts[zone] -= 1
    if not counts[zone]:
        del counts[zone]
