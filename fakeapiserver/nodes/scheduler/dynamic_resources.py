"""Claims for devices: a pod's are allocated on the node that it gets, and are its before it gets it.

What is decided counts at once, though it is written later, as upstream's claim tracker and assume cache see to.
Upstream: pkg/scheduler/framework/plugins/dynamicresources/{dynamicresources,dra_manager,allocateddevices}.go
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    DEVICE_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    is_terminating,
    key_of,
)
from fakeapiserver.component_helpers.resource_claims import (
    FINALIZER,
    claim_names,
    is_for,
    is_generated,
    is_reserved_for,
)
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.nodes.scheduler.allocation_result import score
from fakeapiserver.nodes.scheduler.allocator import Allocator, Classes, Unallocatable
from fakeapiserver.nodes.scheduler.node_info import NodeInfo, PodInfo
from fakeapiserver.nodes.scheduler.pools import Slices, Taken, selects
from fakeapiserver.nodes.scheduler.volumes import Assumed

POLL_SECONDS: Final = 5.0
_BINDING_SECONDS: Final = 600.0
_TRIES: Final = 5
_TIMEOUT: Final = "device binding timeout"
_UNAVAILABLE: Final = "resourceclaim not available on the node"


class DevicesFailed(Exception):
    """The pod must be scheduled again."""


class PodDevices(Struct):
    """A pod's claims. `problem`: why no node is suitable, or "".

    found: the allocations on each node for the unallocated claims, in their order. idle: the claims that are
    allocated where the pod can't
    run, by uid.
    """

    problem: str = ""
    claims: list[Object] = field(default_factory=list)
    allocator: Allocator | None = None
    found: dict[str, Sequence[Object]] = field(default_factory=dict)
    idle: dict[str, Object] = field(default_factory=dict)
    now: float = 0.0

    @property
    def unallocated(self) -> list[Object]:
        return [claim for claim in self.claims if _allocation(claim) is None]

    def refusal(self, node: NodeInfo) -> str:
        """Why the node won't do; "" if it will. AllocationFailed."""
        unavailable = False
        for claim in self.claims:
            allocation = _allocation(claim)
            if allocation is not None and not self._is_usable(claim, allocation, node):
                self.idle[claim["metadata"]["uid"]] = claim
                unavailable = True
        if self.allocator is not None:
            try:
                outcome = self.allocator.allocate(node.node, self.unallocated)
            except Unallocatable as error:
                return str(error)
            if not unavailable:
                self.found[node.name] = outcome
        return _UNAVAILABLE if unavailable else ""

    def _is_usable(self, claim: Object, allocation: Object, node: NodeInfo) -> bool:
        selector = allocation.get("nodeSelector")
        if selector is not None and not selects(selector, node.node):
            return False
        try:
            return _is_bound(claim) or not _is_overdue(claim, self.now)
        except DevicesFailed:
            return False

    def scores(self) -> Mapping[str, float]:
        """Returns the scores of nodes: higher, the earlier the claims' choices."""
        return {
            name: float(sum(map(score, self.unallocated, node_allocation)))
            + sum(score(claim, allocation) for claim in self.claims if (allocation := _allocation(claim)) is not None)
            for name, node_allocation in self.found.items()
        }


class DeviceBinder:
    """Keeps the devices and their users."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._since_1_37 = context.configuration.feature_gates.at_least("v1.37")
        self.claims = context.informer(RESOURCE_CLAIMS, optional=True)
        self.slices = context.informer(RESOURCE_SLICES, optional=True)
        self.classes = context.informer(DEVICE_CLASSES, optional=True)
        self._known = Assumed(self.claims.indexer)
        self._taken = Taken()
        self._slices: Slices | None = None
        # Decided, but not written yet: by claims' uids.
        self._pending: dict[str, Object] = {}
        # Pods whose claims are theirs, and that wait for drivers to bind the devices: until when.
        self._waiting: dict[Request, float] = {}

    # ------------------------------------------------------------------------- events

    def claim_changed(self, event: Event) -> None:
        """Before anybody asks."""
        claim = event.object_new if isinstance(event, UpdateEvent) else event.object
        uid = claim["metadata"]["uid"]
        if isinstance(event, UpdateEvent) and event.object_old["metadata"]["uid"] != uid:
            self._taken.set(event.object_old["metadata"]["uid"], None)
        if isinstance(event, DeleteEvent):
            self._taken.set(uid, None)
        elif uid not in self._pending:
            self._taken.set(uid, _allocation(self._known.get_by_key(key_of(claim)) or claim))

    def slices_changed(self) -> None:
        """Drops the sorted slices, which are sorted again when needed."""
        self._slices = None

    # --------------------------------------------------------------------- before all nodes

    def waits_for(self, pod: Object) -> str | None:
        """Returns the key of a claim that must exist and be the pod's first; "" if the pod's status lacks its name;
        None if nothing is missing.
        """
        for row, name in claim_names(pod):
            if name is None:
                return ""
            key = f"{pod['metadata']['namespace']}/{name}"
            claim = self._known.get_by_key(key) if name else None
            if name and (claim is None or is_terminating(claim) or (is_generated(row) and not is_for(pod, claim))):
                return key
        return None

    def devices_of(self, pod: Object) -> PodDevices:
        """Returns the pod's claims at the start of the filters."""
        pod_devices = PodDevices(now=self._context.clock.now())
        if not pod["spec"].get("resourceClaims"):
            return pod_devices
        pod_devices.claims = self.claims_of(pod)
        for claim in pod_devices.unallocated:
            pod_devices.problem = self._problem(claim)
            if pod_devices.problem:
                pod_devices.claims = []
                return pod_devices
        if pod_devices.unallocated:
            if self._slices is None:
                self._slices = Slices(self.slices.indexer.list())
            pod_devices.allocator = Allocator(
                self._slices, self._classes, self._taken, self._share_id, since_1_37=self._since_1_37
            )
        return pod_devices

    def _share_id(self) -> str:
        return str(uuid.UUID(int=self._context.random.getrandbits(128), version=4))

    def claims_of(self, pod: Object) -> list[Object]:
        """Returns the pod's existing claims."""
        keys = [f"{pod['metadata']['namespace']}/{name}" for _, name in claim_names(pod) if name]
        return [claim for key in keys if (claim := self._known.get_by_key(key)) is not None]

    @property
    def _classes(self) -> Classes:
        return self.classes.indexer

    def _problem(self, claim: Object) -> str:
        if claim["metadata"]["uid"] in self._pending:
            return f"resource claim {key_of(claim)} is in the process of being allocated"
        for request in (claim["spec"].get("devices") or {}).get("requests") or ():
            choices = [(f"{request['name']}/{row['name']}", row) for row in request.get("firstAvailable") or ()]
            for name, row in choices or [(request["name"], request["exactly"])]:
                if self.classes.indexer.get_by_key(row["deviceClassName"]) is None:
                    return f"request {name}: device class {row['deviceClassName']} does not exist"
        return ""

    # ---------------------------------------------------------------------- when it is decided

    def reserve(self, devices: PodDevices, node: str) -> Mapping[str, Object]:
        """Reserves the devices, so that no other pod gets them. Returns the allocations by the claims' uids."""
        allocations = dict(
            zip((claim["metadata"]["uid"] for claim in devices.unallocated), devices.found.get(node, ()), strict=True)
        )
        for uid, allocation in allocations.items():
            self._pending[uid] = allocation
            self._taken.set(uid, allocation)
        return allocations

    async def bind(self, info: PodInfo, devices: PodDevices, allocations: Mapping[str, Object]) -> Sequence[Object]:
        """The claims, written as the pod's. DevicesFailed; then they are to be released."""
        claims = list(devices.claims)
        for i, claim in enumerate(claims):
            if not is_reserved_for(info.pod, claim):
                uid = claim["metadata"]["uid"]
                claims[i] = await self._bind_claim(info, claim, allocations.get(uid))
                self._known.assume(claims[i])
                self._pending.pop(uid, None)
        return claims

    async def _bind_claim(self, info: PodInfo, claim: Object, allocation: Object | None) -> Object:
        """Writes a claim, again after a write by another client."""
        claims = self._context.client.resource(RESOURCE_CLAIMS, info.namespace)
        about, name = key_of(claim), claim["metadata"]["name"]
        for tries in range(_TRIES):
            if tries:
                try:
                    claim = await claims.get(name)
                except StatusError as error:
                    raise DevicesFailed(f"get updated claim {about} after conflict: {error}") from error
            if is_terminating(claim):
                raise DevicesFailed(f"claim {about} got deleted in the meantime")
            what = "add reservation to"
            try:
                if allocation is not None:
                    if _allocation(claim) is not None:
                        raise DevicesFailed(f"claim {about} got allocated elsewhere in the meantime")
                    what = "add finalizer to"
                    claim = await claims.update(_protected(claim)) if not _is_protected(claim) else claim
                    what = "add allocation and reservation to"
                return await claims.update_status(self._reserved(info, claim, allocation))
            except StatusError as error:
                if not is_conflict(error) or tries == _TRIES - 1:
                    raise DevicesFailed(f"{what} claim {about}: {error}") from error
        raise AssertionError("the last try returns or raises")

    def _reserved(self, info: PodInfo, claim: Object, allocation: Object | None) -> Object:
        allocated = allocation or _allocation(claim)
        if allocated is None:
            raise DevicesFailed(f"claim {key_of(claim)} got deallocated elsewhere in the meantime")
        metadata, status = info.pod["metadata"], claim.get("status") or {}
        consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        since = allocated.get("allocationTimestamp") or rfc3339(self._context.clock.now())
        status = {
            **status,
            "allocation": {**allocated, "allocationTimestamp": since},
            "reservedFor": [*(status.get("reservedFor") or ()), consumer],
        }
        return {**claim, "status": status}

    async def release(self, info: PodInfo) -> None:
        """The pod doesn't get its node: what wasn't written never was, what was is no longer the pod's."""
        uid = info.pod["metadata"]["uid"]
        self._waiting.pop(_request(info), None)
        for claim in self.claims_of(info.pod):
            of = claim["metadata"]["uid"]
            if self._pending.pop(of, None) is not None:
                self._taken.set(of, _allocation(claim))
            if _allocation(claim) is None or not is_reserved_for(info.pod, claim):
                continue
            patch = {"metadata": {"uid": of}, "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]}}
            resource = self._context.client.resource(RESOURCE_CLAIMS, info.namespace)
            try:
                await resource.patch(claim["metadata"]["name"], patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
            except StatusError:
                continue  # it will be seen when the pod is tried again

    # ----------------------------------------------------------- devices that drivers have to bind

    def begin_waiting(self, request: Request) -> None:
        """For drivers."""
        self._waiting[request] = self._context.clock.monotonic() + _BINDING_SECONDS

    def is_waiting(self, request: Request) -> bool:
        return request in self._waiting

    def forget(self, request: Request) -> None:
        """The pod has its node, or is gone."""
        self._waiting.pop(request, None)

    def is_bound(self, info: PodInfo) -> bool:
        """All drivers have said so. DevicesFailed where they won't."""
        for _, name in claim_names(info.pod):
            key = f"{info.namespace}/{name}"
            claim = self._known.get_by_key(key) if name else None
            if name and claim is None:
                raise DevicesFailed(f'resourceclaims "{name}" not found')
            if claim is not None and not _is_bound(claim):
                if _is_overdue(claim, self._context.clock.now()):
                    raise DevicesFailed(f"{_TIMEOUT}: claim={name}")
                if self._context.clock.monotonic() >= self._waiting[_request(info)]:
                    raise DevicesFailed(f"{_TIMEOUT}: context deadline exceeded")
                return False
        return True

    # --------------------------------------------------------------------- when no node would do

    async def make_room(self, info: PodInfo, devices: PodDevices) -> str:
        """Frees a claim without other users that is allocated where the pod can't run; returns the text for the event, "" from 1.37 on
        if there is no such claim.
        """
        if not devices.claims:
            return "" if self._since_1_37 else "no new claims to deallocate"
        uid = info.pod["metadata"]["uid"]
        for claim in devices.idle.values():
            users = (claim.get("status") or {}).get("reservedFor") or ()
            if not users or [row["uid"] for row in users] == [uid]:
                resource = self._context.client.resource(RESOURCE_CLAIMS, info.namespace)
                gone = ("allocation", "reservedFor", "devices")
                status = {name: value for name, value in claim["status"].items() if name not in gone}
                try:
                    await resource.update_status({**claim, "status": status})
                except StatusError as error:
                    if not (is_conflict(error) or is_not_found(error)):
                        raise
                return "deallocation of ResourceClaim completed"
        return "" if self._since_1_37 else "still not schedulable"


def uses(pod: Object, claim: Object) -> bool:
    """Reports whether it is one of the pod's claims."""
    same = pod["metadata"]["namespace"] == claim["metadata"]["namespace"]
    return same and any(name == claim["metadata"]["name"] for _, name in claim_names(pod))


def is_deallocated(event: Event) -> bool:
    """Reports whether the claim's devices were freed."""
    return (
        isinstance(event, UpdateEvent)
        and _allocation(event.object_old) is not None
        and _allocation(event.object_new) is None
    )


def has_binding_conditions(claims: Sequence[Object]) -> bool:
    """Drivers have to bind some of the devices."""
    return any(row.get("bindingConditions") for claim in claims for row in _results(claim))


def _request(info: PodInfo) -> Request:
    return Request(info.namespace, info.pod["metadata"]["name"])


def _allocation(claim: Object) -> Object | None:
    allocation: Object | None = (claim.get("status") or {}).get("allocation")
    return allocation


def _results(claim: Object) -> Sequence[Mapping[str, Any]]:
    results: Sequence[Mapping[str, Any]] = ((_allocation(claim) or {}).get("devices") or {}).get("results") or ()
    return results


def _is_protected(claim: Object) -> bool:
    return FINALIZER in (claim["metadata"].get("finalizers") or ())


def _protected(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {**claim, "metadata": {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), FINALIZER]}}


def _is_bound(claim: Object) -> bool:
    """Reports whether the claim's devices are bound as far as needed. Raises DevicesFailed if one can't be."""
    for row in _results(claim):
        wanted = row.get("bindingConditions") or ()
        if not wanted:
            continue
        place = row["driver"], row["pool"], row["device"]
        told: Mapping[str, Any] | None = next(
            (
                condition
                for condition in (claim.get("status") or {}).get("devices") or ()
                if (condition["driver"], condition["pool"], condition["device"]) == place
            ),
            None,
        )
        if told is None:
            return False
        conditions = {condition["type"]: condition for condition in told.get("conditions") or ()}
        for name in row.get("bindingFailureConditions") or ():
            failed = conditions.get(name)
            if failed is not None and failed["status"] == "True":
                reason, message = failed.get("reason", ""), go_quote(failed.get("message", ""))
                about = f"claim={claim['metadata']['name']}, reason={reason}, message={message}"
                raise DevicesFailed(f"device binding failed: {about}")
        if any((conditions.get(name) or {}).get("status") != "True" for name in wanted):
            return False
    return True


def _is_overdue(claim: Object, now: float) -> bool:
    since = seconds_of((_allocation(claim) or {}).get("allocationTimestamp") or "")
    return (
        since is not None
        and any(row.get("bindingConditions") for row in _results(claim))
        and now > since + _BINDING_SECONDS
    )
