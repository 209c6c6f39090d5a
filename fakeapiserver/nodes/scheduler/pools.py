"""Pools of devices as a node sees them, and what of them is taken.

Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go,
pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.component_helpers.scheduling import matches_term

INCOMPLETE: Final = "incomplete"
INVALID: Final = "invalid"
Amounts = dict[str, Fraction]
# Set of counters -> counter -> how much there is of it.
Counters = dict[str, Amounts]


class DeviceID(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class Device(Struct, eq=False):
    """A device of a slice. The node can reach the slice; if the slice leaves that to its devices, not each of them."""

    id: DeviceID
    spec: Object
    slice: Object
    pool: "Pool"


class Pool(Struct, eq=False):
    """`problem`: why nothing is taken from it: INCOMPLETE, INVALID or "". `others`: (id, device) of slices that are other nodes'."""

    driver: str
    name: str
    problem: str = ""
    devices: Sequence[Device] = ()
    others: Sequence[tuple[DeviceID, Object]] = ()
    counters: Counters = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    @property
    def has_binding_conditions(self) -> bool:
        return any(device.spec.get("bindingConditions") is not None for device in self.devices)


class Slices:
    """All slices; those of one node are found by its name."""

    def __init__(self, slices: Sequence[Object]) -> None:
        self._of_node: dict[str, list[Object]] = {}
        self._shared: list[Object] = []
        self._of_pool: dict[tuple[str, str], list[Object]] = {}
        for resource_slice in slices:
            spec = resource_slice["spec"]
            if spec.get("nodeName") and not spec.get("sharedCounters"):
                self._of_node.setdefault(spec["nodeName"], []).append(resource_slice)
            else:
                self._shared.append(resource_slice)
            self._of_pool.setdefault((spec["driver"], spec["pool"]["name"]), []).append(resource_slice)

    def pools_for(self, node: Object) -> Sequence[Pool]:
        """Sorted by name; those whose devices have to be bound come last."""
        newest: dict[tuple[str, str], list[Object]] = {}
        for candidate in (*self._of_node.get(node["metadata"]["name"], ()), *self._shared):
            if not _is_for(candidate["spec"], node):
                continue
            pool = candidate["spec"]["pool"]
            known = newest.setdefault((candidate["spec"]["driver"], pool["name"]), [])
            if known and pool["generation"] > known[0]["spec"]["pool"]["generation"]:
                known.clear()
            if not known or pool["generation"] == known[0]["spec"]["pool"]["generation"]:
                known.append(candidate)
        pools = [pool for key in sorted(newest) if (pool := self._pool(key, newest[key])) is not None]
        return sorted(pools, key=lambda pool: pool.has_binding_conditions)

    def _pool(self, key: tuple[str, str], slices: list[Object]) -> Pool | None:
        """Returns the pool, or None if a newer generation replaces it that has nothing on the node."""
        wanted = slices[0]["spec"]["pool"]
        everything = slices
        if len(slices) != wanted["resourceSliceCount"]:
            generations = [resource_slice["spec"]["pool"]["generation"] for resource_slice in self._of_pool[key]]
            if max(generations) > wanted["generation"]:
                return None
            pairs = zip(self._of_pool[key], generations, strict=True)
            everything = [resource_slice for resource_slice, generation in pairs if generation == wanted["generation"]]
            if len(everything) != wanted["resourceSliceCount"]:
                return Pool(*key, INCOMPLETE)
        return _built(key, sorted(slices, key=_name), everything)


def _built(key: tuple[str, str], slices: Sequence[Object], everything: Sequence[Object]) -> Pool:
    pool = Pool(*key)
    names: set[str] = set()
    devices: list[Device] = []
    for resource_slice in slices:
        for row in resource_slice["spec"].get("sharedCounters") or ():
            if row["name"] in pool.counters:
                pool.problem = INVALID
            pool.counters[row["name"]] = _amounts(row)
        for row in _devices(resource_slice) if not resource_slice["spec"].get("sharedCounters") else ():
            if row["name"] in names:
                pool.problem = INVALID
            names.add(row["name"])
            devices.append(Device(DeviceID(*key, row["name"]), row, resource_slice, pool))
    ours = {_name(resource_slice) for resource_slice in slices}
    others = [
        row for resource_slice in everything if _name(resource_slice) not in ours for row in _devices(resource_slice)
    ]
    for row in (*(row for resource_slice in slices for row in _devices(resource_slice)), *others):
        for consumed in row.get("consumesCounters") or ():
            known = pool.counters.get(consumed["counterSet"])
            if known is None or not known.keys() >= consumed["counters"].keys():
                pool.problem = INVALID
    if not pool.problem:
        pool.devices, pool.others = devices, [(DeviceID(*key, row["name"]), row) for row in others]
    return pool


def _name(resource_slice: Object) -> str:
    name: str = resource_slice["metadata"]["name"]
    return name


def _devices(resource_slice: Object) -> Sequence[Object]:
    devices: Sequence[Object] = resource_slice["spec"].get("devices") or ()
    return devices


def _amounts(row: Mapping[str, Any]) -> Amounts:
    return {name: parse(str(counter["value"])).amount for name, counter in row["counters"].items()}


def _is_for(spec: Object, node: Object) -> bool:
    if spec.get("sharedCounters"):
        return True
    if spec.get("nodeName") or spec.get("allNodes") or spec.get("nodeSelector") is not None:
        return is_on(spec, node)
    return bool(spec.get("perDeviceNodeSelection")) and any(is_on(row, node) for row in spec.get("devices") or ())


def is_on(row: Object, node: Object) -> bool:
    """Reports whether a slice or a device says that the node can reach it."""
    if row.get("nodeName"):
        return bool(row["nodeName"] == node["metadata"]["name"])
    return bool(row.get("allNodes")) or (row.get("nodeSelector") is not None and selects(row["nodeSelector"], node))


def selects(selector: Object, node: Object) -> bool:
    """Reports whether a NodeSelector does."""
    return any(matches_term(term, node) for term in selector.get("nodeSelectorTerms") or ())


def consumed_counters(row: Object) -> Iterator[tuple[str, str, Fraction]]:
    """(set, counter, how much) of a device."""
    for consumed in row.get("consumesCounters") or ():
        for name, amount in _amounts(consumed).items():
            yield consumed["counterSet"], name, amount


class Taken:
    """The devices that claims have: whole ones, and what of shared ones is used. Kept by claims' uids."""

    def __init__(self) -> None:
        self.devices: set[DeviceID] = set()
        # How many share a device, and what they have of it.
        self.shares: Counter[DeviceID] = Counter()
        self.capacity: dict[DeviceID, Amounts] = {}
        self._by_claim: dict[str, Object] = {}

    def has(self, device: DeviceID) -> bool:
        """Any of it."""
        return device in self.devices or self.shares[device] > 0

    def set(self, uid: str, allocation: Object | None) -> None:
        """Sets the claim's allocation."""
        before = self._by_claim.pop(uid, None)
        if before is not None:
            self._count(before, -1)
        if allocation is not None:
            self._by_claim[uid] = allocation
            self._count(allocation, 1)

    def _count(self, allocation: Object, sign: int) -> None:
        for row in _exclusive(allocation):
            name = DeviceID(row["driver"], row["pool"], row["device"])
            if row.get("shareID") is None:
                (self.devices.add if sign > 0 else self.devices.discard)(name)
                continue
            self.shares[name] += sign
            used = self.capacity.setdefault(name, {})
            for key, text in (row.get("consumedCapacity") or {}).items():
                used[key] = used.get(key, Fraction(0)) + sign * parse(str(text)).amount
            if not self.shares[name]:
                del self.capacity[name]


def _exclusive(allocation: Object) -> Iterable[Object]:
    """Returns the results for exclusive use: administrative access leaves a device to others."""
    return [row for row in (allocation.get("devices") or {}).get("results") or () if not row.get("adminAccess")]
