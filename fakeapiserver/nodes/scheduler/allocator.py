"""The devices of claims on a node: the first combination that satisfies all requests and constraints. Pure.

Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating (allocator_incubating.go, constraint.go,
consumable_capacity.go), which is what runs with the feature gates of 1.36.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Protocol

from fakeapiserver.apimachinery.cel import device as device_module
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.component_helpers.objects import key_of
from fakeapiserver.component_helpers.resource_claims import tolerates_device_taint
from fakeapiserver.nodes.scheduler.allocation_result import (
    AllocatedDevice,
    DeviceRequest,
    Part,
    config_of,
    consumed_by,
    is_valid,
    node_selector,
)
from fakeapiserver.nodes.scheduler.device_constraints import Distinct, Match
from fakeapiserver.nodes.scheduler.pools import (
    INCOMPLETE,
    INVALID,
    Amounts,
    Device,
    DeviceID,
    Pool,
    Slices,
    Taken,
    consumed_counters,
    is_on,
)

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
_MAX_RESULTS: Final = 32
# Devices that are looked at before it takes too long, which upstream measures in seconds.
_MAX_STEPS: Final = 50_000
_FORBIDDING: Final = ("NoExecute", "NoSchedule")
_ALL: Final = "All"
_NO_KEY: Final = "no such key:"
_HINT: Final = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"


class AllocationFailed(Exception):
    """Something is wrong with a claim or a class, whatever the node."""


class Unallocatable(Exception):
    """Not on this node."""


class _TooMany(Exception):
    """More devices than a claim can hold."""


class Classes(Protocol):
    """All device classes."""

    def get_by_key(self, key: str) -> Object | None: ...


class Allocator:
    """For one pod; asked for each node. `share_id` names a part of a shared device. `since_1_37`: it has 1.37's rules and messages."""

    def __init__(
        self, slices: Slices, classes: Classes, taken: Taken, share_id: Callable[[], str], *, since_1_37: bool = True
    ) -> None:
        self.slices = slices
        self.classes = classes
        self.taken = taken
        self.share_id = share_id
        self.since_1_37 = since_1_37
        self._variables: dict[int, Mapping[str, Any]] = {}
        self._selected: dict[tuple[int, str], bool] = {}

    def allocate(self, node: Object, claims: Sequence[Object]) -> Sequence[Object]:
        """An AllocationResult for each claim. Unallocatable, AllocationFailed."""
        return _Search(self, node).run(claims)

    def selects(self, device: Device, expression: str) -> bool:
        """ValueError with upstream's text."""
        key = id(device.spec), expression
        if key not in self._selected:
            if key[0] not in self._variables:
                self._variables[key[0]] = device_module.variables_of(device.id.driver, device.spec)
            self._selected[key] = device_module.matches(
                device_module.compile_selector(expression), self._variables[key[0]]
            )
        return self._selected[key]


class _Search:
    """On one node."""

    def __init__(self, allocator: Allocator, node: Object) -> None:
        self._allocator = allocator
        self._taken = allocator.taken
        self._node = node
        self._pools = allocator.slices.pools_for(node)
        self._devices = [device for pool in self._pools for device in pool.devices]
        self._parts: list[Part] = []
        self._steps = 0
        # Devices that are about to be given, and to which of the claims; what of shared ones; counters of pools.
        self._giving: dict[DeviceID, Counter[int]] = {}
        self._shares: Counter[DeviceID] = Counter()
        self._sharing: dict[DeviceID, Amounts] = {}
        self._consumed: dict[Pool, Counter[tuple[str, str]]] = {}
        self._available: dict[Pool, dict[tuple[str, str], Fraction]] = {}
        self._matching: dict[tuple[DeviceRequest, Device], bool] = {}

    def run(self, claims: Sequence[Object]) -> Sequence[Object]:
        self._parts = [self._part(claim) for claim in claims]
        if not self._solve():
            if any(pool.problem == INVALID for pool in self._pools):
                raise Unallocatable("invalid resource pools were encountered")
            raise Unallocatable(CANNOT_ALLOCATE)
        return [self._result(part) for part in self._parts]

    def _solve(self) -> bool:
        """Allocates claim by claim; if one gets nothing, the claim before it tries other devices."""
        tries = [self._requests(0, 0)] if self._parts else []
        while tries and len(tries) <= len(self._parts):
            try:
                next(tries[-1])
            except StopIteration:
                tries.pop()
            except _TooMany:
                tries.pop()
                if not tries:
                    raise AllocationFailed("allocation max size exceeded") from None
            else:
                if len(tries) == len(self._parts):
                    return True
                tries.append(self._requests(len(tries), 0))
        return not self._parts

    # ------------------------------------------------------------------ what is asked for

    def _part(self, claim: Object) -> Part:
        part, least = Part(claim), 0
        devices = claim["spec"].get("devices") or {}
        for request in devices.get("requests") or ():
            choices = [
                self._want(claim, request["name"], row["name"], row) for row in request.get("firstAvailable") or ()
            ]
            part.requests.append(choices or [self._want(claim, request["name"], "", request["exactly"])])
            count = min(want.count for want in part.requests[-1])
            if self._allocator.since_1_37 and least + count > _MAX_RESULTS:
                raise AllocationFailed(
                    f"claim {key_of(claim)}, request {request['name']}: adding {count} devices exceeds the claim limit of "
                    f"{_MAX_RESULTS}, with {least} already accounted for"
                )
            least += count
        if least > _MAX_RESULTS:
            raise AllocationFailed(
                f"claim {key_of(claim)}: number of requested devices {least} exceeds the claim limit of {_MAX_RESULTS}"
            )
        for i, row in enumerate(devices.get("constraints") or ()):
            if row.get("matchAttribute") is not None:
                part.constraints.append(Match(row))
            elif row.get("distinctAttribute") is not None:
                part.constraints.append(Distinct(row))
            else:
                raise AllocationFailed(
                    f"claim {key_of(claim)}, constraint #{i}: empty constraint (unsupported constraint type?)"
                )
        return part

    def _want(self, claim: Object, request: str, subrequest: str, spec: Object) -> DeviceRequest:
        about, name = f"claim {key_of(claim)}, request {subrequest or request}", spec["deviceClassName"]
        device_class = self._allocator.classes.get_by_key(name)
        if device_class is None:
            missing = f'deviceclass.resource.k8s.io "{name}" not found'
            raise AllocationFailed(f"{about}: could not retrieve device class {name}: {missing}")
        want = DeviceRequest(request, subrequest, spec, device_class, spec.get("count") or 0)
        if spec.get("allocationMode") != _ALL:
            return want
        for pool in self._pools:
            if pool.problem:
                state = "being updated" if pool.problem == INCOMPLETE else "invalid"
                raise AllocationFailed(f"{about}: asks for all devices, but resource pool {pool} is currently {state}")
        want.devices = [device for device in self._devices if self._is_selectable(claim, want, device)]
        want.devices = [device for device in want.devices if self._has_room(want, device)]
        want.count = len(want.devices)
        return want

    def _is_selectable(self, claim: Object, want: DeviceRequest, device: Device) -> bool:
        key = want, device
        if key not in self._matching:
            self._matching[key] = (
                self._is_selected(f"class {want.device_class['metadata']['name']}", want.device_class["spec"], device)
                and self._is_selected(f"claim {key_of(claim)}", want.spec, device)
                and (not device.slice["spec"].get("perDeviceNodeSelection") or is_on(device.spec, self._node))
            )
        return self._matching[key]

    def _is_selected(self, about: str, holder: Object, device: Device) -> bool:
        for i, row in enumerate(holder.get("selectors") or ()):
            try:
                if not self._allocator.selects(device, row["cel"]["expression"]):
                    return False
            except ValueError as error:
                where, hint = "", ""
                if self._allocator.since_1_37:
                    where, hint = f" on device {device.id}", _HINT if _NO_KEY in str(error) else ""
                raise AllocationFailed(f"{about}: selector #{i}{where}: CEL runtime error: {error}{hint}") from None
        return True

    # ------------------------------------------------------------------------- the search

    def _requests(self, number: int, request: int) -> Iterator[None]:
        """Yields with each way to give a claim what it asks for from this request on. _TooMany."""
        part = self._parts[number]
        if request == len(part.requests):
            yield
            return
        choices = part.requests[request]
        if not choices[0].subrequest:
            yield from self._give(number, request, choices[0], 0, 0)
            return
        too_many = True
        for i, want in enumerate(choices):
            part.chosen[request] = i
            try:
                yield from self._give(number, request, want, 0, 0)
            except _TooMany:
                continue
            too_many = False
        if too_many:
            raise _TooMany

    def _give(self, number: int, request: int, want: DeviceRequest, count: int, start: int) -> Iterator[None]:
        """Continues `_requests` with `count` devices of the request found; the next one is at `start` or after it."""
        if want.devices is not None and not want.devices:
            return
        if count >= want.count:
            yield from self._requests(number, request + 1)
            return
        part = self._parts[number]
        if len(part.given) + want.count - count > _MAX_RESULTS:
            raise _TooMany
        if want.devices is not None:
            given = self._fitting(number, want, want.devices[count], must=True)
            if given is not None:
                yield from self._with(number, given, self._give(number, request, want, count + 1, 0))
            return
        for place in range(start, len(self._devices)):
            device = self._devices[place]
            self._steps += 1
            if self._steps > _MAX_STEPS:
                name = self._node["metadata"]["name"]
                raise AllocationFailed(f"node {name}: timed out trying to allocate devices")
            if self._is_free(number, want, device) and self._is_selectable(part.claim, want, device):
                given = self._fitting(number, want, device)
                if given is not None:
                    yield from self._with(number, given, self._give(number, request, want, count + 1, place + 1))

    def _with(self, number: int, given: AllocatedDevice, rest: Iterator[None]) -> Iterator[None]:
        """Runs the rest while the claim has the device. The final choice stays."""
        self._mark(number, given, 1)
        try:
            yield from rest
        except _TooMany:
            self._mark(number, given, -1)
            raise
        self._mark(number, given, -1)

    # ------------------------------------------------------------------------- one device

    def _is_free(self, number: int, want: DeviceRequest, device: Device) -> bool:
        giving = self._giving.get(device.id)
        if want.is_admin:
            return giving is None or not giving[number]
        return device.id not in self._taken.devices and (giving is None or not giving.total())

    def _fitting(
        self, number: int, want: DeviceRequest, device: Device, *, must: bool = False
    ) -> AllocatedDevice | None:
        """The device, if it can be given for this. `must`: AllocationFailed if a constraint forbids what can't be replaced."""
        is_shared = bool(device.spec.get("allowMultipleAllocations"))
        if not (is_shared and want.is_admin) and not self._is_free(number, want, device):
            return None
        is_used = device.id in self._taken.capacity or self._shares[device.id] > 0
        if not (is_shared and is_used) and not self._has_counters(device):
            return None
        if self._is_tainted(want, device):
            return None
        part = self._parts[number]
        if not all(constraint.admits(want.request, want.subrequest, device) for constraint in part.constraints):
            if must:
                raise AllocationFailed(
                    f"claim {key_of(part.claim)}, request {want.subrequest or want.request}: cannot add device {device.id} "
                    "because a claim constraint would not be satisfied"
                )
            return None
        if not self._has_room(want, device):
            return None
        rows = device.spec.get("capacity") or {}
        consumed = (
            {name: consumed_by(want.capacity.get(name), row) for name, row in rows.items()} if is_shared else None
        )
        return AllocatedDevice(want, device, consumed)

    @staticmethod
    def _is_tainted(want: DeviceRequest, device: Device) -> bool:
        tolerations = want.spec.get("tolerations") or ()
        return any(
            taint["effect"] in _FORBIDDING and not any(tolerates_device_taint(row, taint) for row in tolerations)
            for taint in device.spec.get("taints") or ()
        )

    def _has_room(self, want: DeviceRequest, device: Device) -> bool:
        """Enough capacity is left."""
        rows = device.spec.get("capacity") or {}
        if not rows.keys() >= want.capacity.keys():
            return False
        used, giving = self._taken.capacity.get(device.id, {}), self._sharing.get(device.id, {})
        for name, row in rows.items():
            consumed = consumed_by(want.capacity.get(name), row)
            if not is_valid(consumed.amount, row.get("requestPolicy")):
                return False
            if consumed.amount + used.get(name, 0) + giving.get(name, 0) > parse(str(row["value"])).amount:
                return False
        return True

    def _has_counters(self, device: Device) -> bool:
        wanted = Counter[tuple[str, str]]()
        for counter_set, name, amount in consumed_counters(device.spec):
            wanted[counter_set, name] += amount  # type: ignore[assignment]
        if not wanted:
            return True
        consumed = self._consumed.get(device.pool, Counter())
        return all(left >= consumed[key] + wanted[key] for key, left in self._counters_of(device.pool).items())

    def _counters_of(self, pool: Pool) -> Mapping[tuple[str, str], Fraction]:
        """Returns the counters that claims with devices leave."""
        if pool not in self._available:
            counters = {(of, name): amount for of, row in pool.counters.items() for name, amount in row.items()}
            for device, spec in (*((row.id, row.spec) for row in pool.devices), *pool.others):
                if self._taken.has(device):
                    for of, name, amount in consumed_counters(spec):
                        counters[of, name] -= amount
            self._available[pool] = counters
        return self._available[pool]

    def _mark(self, number: int, given: AllocatedDevice, sign: int) -> None:
        """The claim has it, or hasn't any more."""
        part, want, device = self._parts[number], given.want, given.device
        is_shared = given.consumed is not None
        if sign > 0:
            # who is the first to share a device has its counters
            counts = not (is_shared and (device.id in self._taken.capacity or self._shares[device.id] > 0))
            part.given.append(given)
        else:
            part.given.pop()
            counts = not (is_shared and (device.id in self._taken.capacity or self._shares[device.id] > 1))
        if counts:
            consumed = self._consumed.setdefault(device.pool, Counter())
            for of, name, amount in consumed_counters(device.spec):
                consumed[of, name] += sign * amount  # type: ignore[assignment]
        for constraint in part.constraints:
            (constraint.add if sign > 0 else constraint.remove)(want.request, want.subrequest, device)
        if given.consumed is None:
            self._giving.setdefault(device.id, Counter())[number] += sign
            return
        self._shares[device.id] += sign
        sharing = self._sharing.setdefault(device.id, {})
        for name, quantity in given.consumed.items():
            sharing[name] = sharing.get(name, Fraction(0)) + sign * quantity.amount

    # ------------------------------------------------------------------------- the result

    def _result(self, part: Part) -> Object:
        devices: Object = {"results": [self._row(given) for given in part.given]}
        if config := config_of(part, joins=self._allocator.since_1_37):
            devices["config"] = config
        selector = node_selector(part.given, self._node)
        return {"devices": devices, **({"nodeSelector": selector} if selector else {})}

    def _row(self, given: AllocatedDevice) -> Object:
        want, device = given.want, given.device
        row: Object = {
            "request": want.name,
            "driver": device.id.driver,
            "pool": device.id.pool,
            "device": device.id.device,
        }
        if want.is_admin:
            row["adminAccess"] = True
        if want.spec.get("tolerations"):
            row["tolerations"] = want.spec["tolerations"]
        for name in ("bindingConditions", "bindingFailureConditions"):
            if device.spec.get(name):
                row[name] = device.spec[name]
        if given.consumed is not None:
            row["shareID"] = self._allocator.share_id()
            if given.consumed:
                row["consumedCapacity"] = {name: str(quantity) for name, quantity in given.consumed.items()}
        return row
