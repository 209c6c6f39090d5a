"""Deletes pods that use devices with NoExecute taints that their claims don't tolerate, when their time is over.

Taints are those of resource slices and of DeviceTaintRules.
Upstream: pkg/controller/devicetainteviction/device_taint_eviction.go.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.conditions import Condition, pod_condition_patch
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, is_terminating
from fakeapiserver.component_helpers.pods import add_indexer
from fakeapiserver.component_helpers.resource_claims import (
    claim_names,
    is_for,
    is_generated,
    is_reserved_for,
    tolerates_device_taint,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.device_taint_eviction.rules import STATUS_PERIOD, DeviceTaintRules, published, selects

_MAX_EVICTED: Final = 500
_BY_POOL: Final = "devicePool"
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)
_REASON: Final = "DeviceTaintManagerEviction"
_DELETED: Final[Condition] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


def _pool(row: Mapping[str, Any]) -> str:
    """Returns the pool of an allocated device."""
    return f"{row['driver']}/{row['pool']}"


def _pool_of(resource_slice: Object) -> str:
    spec = resource_slice["spec"]
    return f"{spec['driver']}/{spec['pool']['name']}"


def _allocated(claim: Object) -> Sequence[Mapping[str, Any]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results: Sequence[Mapping[str, Any]] = (allocation.get("devices") or {}).get("results") or ()
    return results


class Eviction(NamedTuple):
    """When a pod has to go, in seconds since the epoch, and the rules that are a reason, by their uids."""

    when: float
    rules: Mapping[str, Object]


class DeviceTaintEviction:
    """Requests are pods, and DeviceTaintRules, which have no namespace."""

    # Of its controller.
    queue: Queue

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder(context.name)
        # Uids of pods that wait for their time.
        self._pending: dict[Request, str] = {}
        # Uids of the pods that were evicted, the latest last.
        self._evicted: OrderedDict[str, None] = OrderedDict()
        name = "device_taint_eviction_controller_pod_deletion"
        self._deletions = context.metrics.counter(f"{name}s_total", "Pods that were deleted")
        self._deletion_seconds = context.metrics.histogram(
            f"{name}_duration_seconds", "From when a pod's time was over until it was deleted", _BUCKETS
        )
        self.rules = DeviceTaintRules(context)
        self.pods = context.informer(PODS)
        self.claims = context.informer(RESOURCE_CLAIMS)
        self.slices = context.informer(RESOURCE_SLICES)
        self._claims_by_pool = add_indexer(
            self.claims, _BY_POOL, lambda claim: {_pool(row) for row in _allocated(claim)}
        )
        self._slices_by_pool = add_indexer(self.slices, _BY_POOL, lambda resource_slice: (_pool_of(resource_slice),))

    # ------------------------------------------------------------------------- events

    def pod_changed(self, event: Event, queue: Queue) -> None:
        pod = object_of(event)
        if not isinstance(event, DeleteEvent) and not pod["spec"].get("resourceClaims"):
            return
        if isinstance(event, UpdateEvent) and _seen(event.object_old) == _seen(pod):
            return
        queue.add(request_for(pod))

    def claim_changed(self, event: Event, queue: Queue) -> None:
        for claim in (event.object_old, event.object_new) if isinstance(event, UpdateEvent) else (event.object,):
            self._consumers(claim, queue)

    def slice_changed(self, event: Event, queue: Queue) -> None:
        pools = (event.object_old, event.object_new) if isinstance(event, UpdateEvent) else (event.object,)
        for pool in {_pool_of(resource_slice) for resource_slice in pools}:
            for claim in self._claims_by_pool.by_index(_BY_POOL, pool):
                self._consumers(claim, queue)

    def rule_changed(self, event: Event, queue: Queue) -> None:
        """Queues the rule, and then every pod with devices: rules are few."""
        rule = object_of(event)
        if isinstance(event, UpdateEvent) and event.object_old["spec"] == rule["spec"]:
            return
        if isinstance(event, DeleteEvent):
            self.rules.forget(rule["metadata"]["uid"])
        else:
            queue.add(request_for(rule))
        for claim in self.claims.indexer.list():
            if _allocated(claim):
                self._consumers(claim, queue)

    @staticmethod
    def _consumers(claim: Object, queue: Queue) -> None:
        for row in (claim.get("status") or {}).get("reservedFor") or ():
            if row["resource"] == "pods" and not row.get("apiGroup"):
                queue.add(Request(claim["metadata"]["namespace"], row["name"]))

    # ----------------------------------------------------------------------- eviction

    async def reconcile(self, request: Request) -> Result | None:
        return await (self._sync_pod(request) if request.namespace else self._sync_rule(request))

    async def _sync_rule(self, request: Request) -> Result | None:
        rule = self.rules.get(request.name)
        if rule is None:
            return None
        if wait := self.rules.seconds_until_due(rule):
            return Result(requeue_after=wait)
        effect, uid = rule["spec"]["taint"]["effect"], rule["metadata"]["uid"]
        pods: Sequence[Object] = ()
        devices = (0, 0)
        if effect in ("None", "NoExecute"):
            rules = [rule] if effect == "None" else self.rules.evicting()
            pods = [pod for pod in self.pods.indexer.list() if self._has_to_go(pod, uid, rules)]
        if effect == "None":
            devices = self._selected(rule)
        await self.rules.write_status(rule, pods, devices)
        return None

    def _has_to_go(self, pod: Object, uid: str, rules: Sequence[Object]) -> bool:
        """Reports whether the rule with this uid is a reason for the pod to go, with these rules in effect."""
        if is_terminating(pod) or not pod["spec"].get("resourceClaims"):
            return False
        eviction = self._eviction(pod, rules)
        return eviction is not None and uid in eviction.rules

    def _selected(self, rule: Object) -> tuple[int, int]:
        """Returns how many published and how many allocated devices a rule selects."""
        in_slices = 0
        for pool in {_pool_of(resource_slice) for resource_slice in self.slices.indexer.list()}:
            slices = self._slices_by_pool.by_index(_BY_POOL, pool)
            place = {"driver": slices[0]["spec"]["driver"], "pool": slices[0]["spec"]["pool"]["name"]}
            in_slices += sum(selects(rule, {**place, "device": device["name"]}) for device in published(slices))
        in_claims = sum(selects(rule, row) for claim in self.claims.indexer.list() for row in _allocated(claim))
        return in_slices, in_claims

    async def _sync_pod(self, request: Request) -> Result | None:
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None:
            self._pending.pop(request, None)
            return None
        uid, eviction = pod["metadata"]["uid"], self._eviction(pod, self.rules.evicting())
        if eviction is None:
            if self._pending.pop(request, None) == uid:
                self._recorder.event(pod, "Normal", _REASON, "Cancelling deletion")
            return None
        self._pending[request] = uid
        # an evicted pod whose claims change is scheduled again, without effect, as upstream does
        if uid in self._evicted:
            return None
        left = eviction.when - self._context.clock.now()
        if left > 0:
            return Result(requeue_after=left)
        if await self._delete(request, pod):
            self._deletions.inc()
            self._deletion_seconds.observe(-left)
            for rule_uid, rule in eviction.rules.items():
                self.rules.evicted(rule_uid)
                # the informer may not have seen the deletion yet
                self.queue.add_after(request_for(rule), STATUS_PERIOD)
        self._pending.pop(request, None)
        self._evicted[uid] = None
        if len(self._evicted) > _MAX_EVICTED:
            self._evicted.popitem(last=False)
        return None

    def _eviction(self, pod: Object, rules: Sequence[Object]) -> Eviction | None:
        """Returns when the pod has to go, with these rules in effect; None: never."""
        if not pod["spec"].get("nodeName"):
            return None
        times: list[float] = []
        reasons: dict[str, Object] = {}
        for row, name in claim_names(pod):
            claim = self.claims.indexer.get_by_key(f"{pod['metadata']['namespace']}/{name}") if name else None
            if claim is None or (is_generated(row) and not is_for(pod, claim)) or not is_reserved_for(pod, claim):
                continue
            for device in _allocated(claim):
                for time, rule in self._times(device, rules):
                    times.append(time)
                    if rule is not None:
                        reasons[rule["metadata"]["uid"]] = rule
        return Eviction(min(times), reasons) if times else None

    def _times(self, allocated: Mapping[str, Any], rules: Sequence[Object]) -> Iterator[tuple[float, Object | None]]:
        """Yields when what uses the device has to go, for each taint that isn't tolerated for ever, and the rule that the taint is of."""
        for given, rule in self._taints(allocated, rules):
            taint = {**given, "effect": "NoExecute"}
            limits = [
                toleration.get("tolerationSeconds")
                for toleration in allocated.get("tolerations") or ()
                if toleration.get("effect") == "NoExecute" and tolerates_device_taint(toleration, taint)
            ]
            if None not in limits:
                yield datetime.fromisoformat(taint["timeAdded"]).timestamp() + max(min(limits, default=0), 0), rule

    def _taints(
        self, allocated: Mapping[str, Any], rules: Sequence[Object]
    ) -> Iterator[tuple[Mapping[str, Any], Object | None]]:
        slices = self._slices_by_pool.by_index(_BY_POOL, _pool(allocated))
        found = next((device for device in published(slices) if device["name"] == allocated["device"]), {})
        for taint in found.get("taints") or ():
            if taint["effect"] == "NoExecute":
                yield taint, None
        for rule in rules:
            if selects(rule, allocated):
                yield rule["spec"]["taint"], rule

    async def _delete(self, request: Request, pod: Object) -> bool:
        """False: it is gone already, or going."""
        uid = pod["metadata"]["uid"]
        pods = self._context.client.resource(PODS, request.namespace)
        try:
            current = await pods.get(request.name)
            if current["metadata"]["uid"] != uid or is_terminating(current):
                return False
            self._recorder.event(pod, "Normal", _REASON, "Marking for deletion")
            # this controller's condition has no observedGeneration
            known: Object = {"metadata": {}, "status": current.get("status")}
            status = pod_condition_patch(known, _DELETED, self._context.clock.now())
            if status:
                patch = {"metadata": {"uid": uid}, "status": status}
                await pods.patch(request.name, patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
            await pods.delete(request.name, uid=uid)
        except StatusError as error:
            if not is_not_found(error):
                raise
            return False
        return True


def _seen(pod: Object) -> tuple[object, ...]:
    """Returns the parts of a pod that the controller depends on."""
    status = pod.get("status") or {}
    return pod["metadata"]["uid"], pod["spec"].get("nodeName"), status.get("resourceClaimStatuses")


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = DeviceTaintEviction(context)
    controller = context.controller(reconciler, workers=context.configuration.concurrent_device_taint_eviction_syncs)
    reconciler.queue = controller.queue
    if reconciler.rules.informer is not None:
        controller.add_source(Informer(reconciler.rules.informer, reconciler.rule_changed))
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    controller.add_source(Informer(reconciler.claims, reconciler.claim_changed))
    controller.add_source(Informer(reconciler.slices, reconciler.slice_changed))
    return [controller]
