"""Binds pods to nodes (upstream: pkg/scheduler/schedule_one.go).

Filters say where a pod can't run, scores where it runs best; where it can't, pods of less priority may have to go. Claims that wait for
their first consumer get their volumes, and claims for devices their devices, before the pod gets its node. Extenders are not considered.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.conditions import pod_condition_patch
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NAMESPACES, NODES, PODS, is_terminating, key_of, labels_of
from fakeapiserver.component_helpers.volumes.matching import claim_of
from fakeapiserver.component_helpers.volumes.pod_volumes import claim_name
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes.scheduler import dynamic_resources, preemption, scores
from fakeapiserver.nodes.scheduler.allocator import AllocationFailed
from fakeapiserver.nodes.scheduler.dynamic_resources import POLL_SECONDS, DeviceBinder, DevicesFailed
from fakeapiserver.nodes.scheduler.filters import Cycle, Refusal, cycle_of, refusal
from fakeapiserver.nodes.scheduler.node_info import PodInfo, Snapshot
from fakeapiserver.nodes.scheduler.ranking import Rankings
from fakeapiserver.nodes.scheduler.volume_binder import Binding, VolumeBinder, VolumeBindingFailed
from fakeapiserver.nodes.scheduler.volumes import PodVolumes

NAME: Final = "default-scheduler"
USER: Final = "system:kube-scheduler"
_VOLUMES: Final = "VolumeBinding"
_DEVICES: Final = "DynamicResources"
_TERMINAL: Final = ("Succeeded", "Failed")
_BACK_OFF: Final = 1.0
_MAX_BACK_OFF: Final = 10.0


class Scheduler:
    """Requests are pods that have no node yet."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._snapshot = Snapshot()
        self._rankings = Rankings(self._snapshot)
        self._recorder = context.recorder(NAME)
        # Those that fit nowhere: how often they were tried, and when the last time was.
        self._waiting: dict[Request, tuple[int, float]] = {}
        # Those that aren't worth trying yet, by the claims for devices that are missing.
        self._gated: dict[str, set[Request]] = {}
        self.binder = VolumeBinder(context)
        self.devices = DeviceBinder(context)
        # The pods that drivers bind devices for.
        self._placed: dict[Request, tuple[PodInfo, str]] = {}
        self.pods = context.informer(PODS)
        self.nodes = context.informer(NODES)
        self.namespaces = context.informer(NAMESPACES)

    # ------------------------------------------------------------------------- events

    def pod_changed(self, event: Event, queue: Queue) -> None:
        pod = object_of(event)
        request = Request(pod["metadata"]["namespace"], pod["metadata"]["name"])
        gone = isinstance(event, DeleteEvent)
        node = pod["spec"].get("nodeName")
        if node:
            self._waiting.pop(request, None)
            if gone or (pod.get("status") or {}).get("phase") in _TERMINAL:
                if self._snapshot.remove_pod(str(request)):
                    self._try_again(queue)
            else:
                self._on_node(event, pod, node, queue)
        elif gone:
            self._waiting.pop(request, None)
            self._placed.pop(request, None)
            self.devices.forget(request)
            if self.binder.of(request) is not None:
                why = f'binding volumes: pod does not exist any more: pod "{request.name}" not found'
                self._recorder.event(pod, "Warning", "FailedScheduling", _not_prepared(_VOLUMES, why))
                self.binder.forget(request)
            self._snapshot.remove_pod(str(request))
        elif self._is_ours(pod):
            old = event.object_old if isinstance(event, UpdateEvent) else None
            promised, before = _nominated(pod), _nominated(old) if old is not None else ""
            if promised:
                self._snapshot.nominate(PodInfo(pod), promised)
            elif before:
                self._snapshot.withdraw(str(request))
            if (
                old is None
                or old["spec"] != pod["spec"]
                or old["metadata"].get("labels") != pod["metadata"].get("labels")
                or _generated_claims(old) != _generated_claims(pod)
            ):
                queue.add(request, pod["spec"].get("priority") or 0)

    def _on_node(self, event: Event, pod: Object, node: str, queue: Queue) -> None:
        """Notes a pod that is bound to the node and has not ended."""
        old = event.object_old if isinstance(event, UpdateEvent) else None
        relabeled = old is not None and labels_of(old) != labels_of(pod)
        if old is None or relabeled or old["spec"] != pod["spec"] or not self._snapshot.refresh(pod, node):
            self._snapshot.place(PodInfo(pod), node)
        if relabeled:
            self._try_again(queue)

    def node_changed(self, event: Event, queue: Queue) -> None:
        if isinstance(event, DeleteEvent):
            self._snapshot.remove_node(event.object["metadata"]["name"])
            return
        node = object_of(event)
        self._snapshot.set_node(node)
        if not isinstance(event, UpdateEvent) or _shape(event.object_old) != _shape(node):
            self._try_again(queue)

    def namespace_changed(self, event: Event, queue: Queue) -> None:
        obj = object_of(event)
        if isinstance(event, DeleteEvent):
            self._snapshot.namespaces.pop(obj["metadata"]["name"], None)
        else:
            self._snapshot.namespaces[obj["metadata"]["name"]] = labels_of(obj)

    def claim_changed(self, event: Event, queue: Queue) -> None:
        claim = event.object_new if isinstance(event, UpdateEvent) else event.object
        self._look_again(key_of(claim), queue)
        if not isinstance(event, DeleteEvent):
            namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
            self._try_again(queue, lambda pod: pod["metadata"]["namespace"] == namespace and name in _claims_of(pod))

    def volume_changed(self, event: Event, queue: Queue) -> None:
        volume = event.object_new if isinstance(event, UpdateEvent) else event.object
        if volume["spec"].get("claimRef") is not None:
            self._look_again(str(claim_of(volume)), queue)
        if not isinstance(event, DeleteEvent):
            self._try_again(queue, _claims_of)

    def storage_changed(self, event: Event, queue: Queue) -> None:
        """Anything else that volumes depend on."""
        self._try_again(queue, _claims_of)

    def resource_claim_changed(self, event: Event, queue: Queue) -> None:
        self.devices.claim_changed(event)
        claim = event.object_new if isinstance(event, UpdateEvent) else event.object
        for request in self._gated.pop(key_of(claim), ()):
            queue.add(request)
        for row in (claim.get("status") or {}).get("reservedFor") or ():
            request = Request(claim["metadata"]["namespace"], row["name"])
            if self.devices.is_waiting(request):
                queue.add(request)
        if isinstance(event, DeleteEvent):
            return
        freed, changed = dynamic_resources.is_deallocated(event), True
        if isinstance(event, UpdateEvent):
            changed = event.object_old.get("status") != claim.get("status")
        if freed or changed:
            self._try_again(queue, _has_resource_claims if freed else lambda pod: dynamic_resources.uses(pod, claim))

    def resource_slice_changed(self, event: Event, queue: Queue) -> None:
        self.devices.slices_changed()
        self.device_class_changed(event, queue)

    def device_class_changed(self, event: Event, queue: Queue) -> None:
        if not isinstance(event, DeleteEvent):
            self._try_again(queue, _has_resource_claims)

    def _look_again(self, claim: str, queue: Queue) -> None:
        for request in self.binder.waiting_for(claim):
            queue.add(request)

    def _try_again(self, queue: Queue, concerns: Callable[[Object], object] = lambda pod: True) -> None:
        """Queues the pods that fit on no node, after a change; the more often a pod was tried, the later."""
        now = self._context.clock.monotonic()
        for request, (tries, last) in self._waiting.items():
            pod = self.pods.indexer.get_by_key(str(request))
            if pod is not None and concerns(pod):
                queue.add_after(request, last + _back_off(tries) - now)

    @staticmethod
    def _is_ours(pod: Object) -> bool:
        spec = pod["spec"]
        return (
            spec.get("schedulerName", NAME) == NAME
            and not spec.get("schedulingGates")
            and not is_terminating(pod)
            and (pod.get("status") or {}).get("phase") not in _TERMINAL
        )

    # --------------------------------------------------------------------- scheduling

    async def reconcile(self, request: Request) -> Result | None:
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None or pod["spec"].get("nodeName") or not self._is_ours(pod):
            self._waiting.pop(request, None)
            return None
        binding = self.binder.of(request)
        if binding is not None:
            return await self._bind_when_ready(request, binding)
        if self.devices.is_waiting(request):
            return await self._bind_when_devices_are(request)
        missing = self.devices.waits_for(pod)
        if missing is not None:
            if missing:
                self._gated.setdefault(missing, set()).add(request)
            return None
        info = PodInfo(pod)
        cycle = cycle_of(info, self._snapshot, self.binder.storage, self.devices.devices_of(pod))
        best = self._rankings.best(cycle)
        if best is not None:
            return await self._place(request, cycle, best.name)
        fitting, refusals = [], dict[str, Refusal]()
        try:
            for name, node in self._snapshot.nodes.items():
                why = Refusal((cycle.problem,)) if cycle.problem else refusal(cycle, node)
                if why is None:
                    fitting.append(node)
                else:
                    refusals[name] = why
        except AllocationFailed as error:
            return await self._failed(request, info, f'running "{_DEVICES}" filter plugin: {error}')
        if not fitting:
            await self._refused(request, info, refusals, cycle)
            return None
        return await self._place(
            request, cycle, scores.best(info, fitting, self._snapshot, cycle.devices.scores()).name
        )

    async def _place(self, request: Request, cycle: Cycle, chosen: str) -> Result | None:
        """The pod gets the node, once what it needs there is its."""
        # decided before anything is awaited, so that no other pod gets the same room
        info = cycle.pod
        self._snapshot.place(info, chosen)
        self._waiting.pop(request, None)
        volumes = cycle.claims.found.get(chosen, PodVolumes())
        binding = self.binder.begin(request, info, chosen, volumes) if volumes.static or volumes.dynamic else None
        if cycle.devices.claims:
            allocations = self.devices.reserve(cycle.devices, chosen)
            try:
                claims = await self.devices.bind(info, cycle.devices, allocations)
            except DevicesFailed as error:
                return await self._not_bound(request, info, _DEVICES, str(error))
            if dynamic_resources.has_binding_conditions(claims):
                self._recorder.event(
                    info.pod,
                    "Normal",
                    "BindingConditionsPending",
                    f"waiting for binding conditions for device on node {chosen}",
                )
                self._placed[request] = info, chosen
                self.devices.begin_waiting(request)
        if binding is None and not self.devices.is_waiting(request):
            return await self._bind(request, info, chosen)
        if (info.pod.get("status") or {}).get("nominatedNodeName") != chosen:
            await self._nominate(info.pod, chosen)
        if binding is not None:
            return await self._bind_volumes(request, binding)
        return await self._bind_when_devices_are(request)

    async def _nominate(self, pod: Object, node: str) -> None:
        """Writes the node that the pod is promised, for as long as it waits."""
        try:
            await self._patch(pod, {"nominatedNodeName": node})
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _bind_when_devices_are(self, request: Request) -> Result | None:
        """The node, once drivers have bound the pod's devices."""
        info, node = self._placed[request]
        try:
            if not self.devices.is_bound(info):
                return Result(requeue_after=POLL_SECONDS)
        except DevicesFailed as error:
            return await self._not_bound(request, info, _DEVICES, str(error))
        self.devices.forget(request)
        del self._placed[request]
        return await self._bind(request, info, node)

    async def _bind_volumes(self, request: Request, binding: Binding) -> Result | None:
        try:
            await self.binder.write(binding)
        except StatusError as error:
            return await self._not_bound(request, binding.info, _VOLUMES, str(error))
        return await self._bind_when_ready(request, binding)

    async def _bind_when_ready(self, request: Request, binding: Binding) -> Result | None:
        """The node, once its volumes are there."""
        try:
            if not self.binder.is_bound(binding):
                return Result(requeue_after=max(binding.deadline - self._context.clock.monotonic(), 0.0))
        except VolumeBindingFailed as error:
            return await self._not_bound(request, binding.info, _VOLUMES, f"binding volumes: {error}")
        self.binder.forget(request)
        if self.devices.is_waiting(request):
            return await self._bind_when_devices_are(request)
        return await self._bind(request, binding.info, binding.node)

    async def _not_bound(self, request: Request, info: PodInfo, plugin: str, why: str) -> Result:
        """Gives up a node because the pod's volumes or devices there failed."""
        self.binder.forget(request)
        self._snapshot.remove_pod(info.key)
        self._placed.pop(request, None)
        await self.devices.release(info)
        return await self._failed(request, info, _not_prepared(plugin, why))

    async def _failed(self, request: Request, info: PodInfo, message: str) -> Result:
        """Reports an error; the pod is tried again even if no event follows."""
        self._wait(request)
        self._recorder.event(info.pod, "Warning", "FailedScheduling", message)
        await self._say(info.pod, message, None, "SchedulerError")
        return Result(requeue_after=_back_off(self._waiting[request][0]))

    def _wait(self, request: Request) -> None:
        tries = self._waiting.get(request, (0, 0.0))[0] + 1
        self._waiting[request] = (tries, self._context.clock.monotonic())

    async def _bind(self, request: Request, info: PodInfo, name: str) -> Result | None:
        metadata = {"name": request.name, "namespace": request.namespace, "uid": info.pod["metadata"]["uid"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        try:
            await self._context.client.resource(PODS, request.namespace).create(binding, "binding")
        except StatusError as error:
            self._snapshot.remove_pod(info.key)
            if is_not_found(error) or is_conflict(error):
                return None
            raise
        self._recorder.event(info.pod, "Normal", "Scheduled", f"Successfully assigned {request} to {name}")
        return None

    async def _refused(self, request: Request, info: PodInfo, refusals: Mapping[str, Refusal], cycle: Cycle) -> None:
        self._wait(request)
        message = self._message(refusals, cycle.problem)
        # None: what was promised before still holds.
        nominated: str | None = None
        if refusals and cycle.claims.problem:
            # the plugin that is asked next which claims for devices could be given back hasn't seen the pod
            message += " not found"
        elif refusals:
            freed = await self.devices.make_room(info, cycle.devices)
            candidate = None
            why = preemption.ineligible(info, self._snapshot, refusals)
            if not why:
                candidate, why = preemption.candidate(
                    info, self._snapshot, refusals, self.binder.storage, cycle.devices
                )
                nominated = candidate.node if candidate is not None else ""
            if candidate is not None:
                # promised before anything is awaited, so that the victims' successors don't get their room
                self._snapshot.nominate(info, candidate.node)
                await self._preempt(info, candidate)
            else:
                message += f" {f'{freed}, ' if freed else ''}preemption: {why}"
        if nominated == "":
            self._snapshot.withdraw(info.key)
        self._recorder.event(info.pod, "Warning", "FailedScheduling", message)
        await self._say(info.pod, message, nominated)

    @staticmethod
    def _message(refusals: Mapping[str, Refusal], for_all: str) -> str:
        if not refusals:
            return "no nodes available to schedule pods"
        if for_all:
            return f"0/{len(refusals)} nodes are available: {for_all}."
        counts = Counter(reason for why in refusals.values() for reason in why.reasons)
        shown = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return f"0/{len(refusals)} nodes are available: {shown}."

    async def _preempt(self, info: PodInfo, candidate: preemption.Candidate) -> None:
        """Evicts the victims; the pod is tried again as they leave. No pod of lower priority gets the node's room."""
        uid = info.pod["metadata"]["uid"]
        for victim in candidate.victims:
            metadata = victim.pod["metadata"]
            if metadata.get("deletionTimestamp"):
                continue
            pods = self._context.client.resource(PODS, victim.namespace)
            status = pod_condition_patch(victim.pod, preemption.PREEMPTED, self._context.clock.now())
            try:
                if status:
                    await self._patch(victim.pod, status)
                await pods.delete(metadata["name"])
            except StatusError as error:
                if not is_not_found(error):
                    raise
                continue
            message = f"Preempted by pod {uid} on node {candidate.node}"
            self._recorder.event(victim.pod, "Normal", "Preempted", message)
        for other in list(self._snapshot.nominated.get(candidate.node, {}).values()):
            if other.priority < info.priority:
                self._snapshot.withdraw(other.key)
                await self._write(other.pod, {"nominatedNodeName": None})

    async def _say(self, pod: Object, message: str, nominated: str | None, reason: str = "Unschedulable") -> None:
        """Writes why, if it doesn't say so already. `nominated`: the node that is promised to it; "": none, None: as before."""
        refused = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        status = pod_condition_patch(pod, refused, self._context.clock.now())
        if nominated is not None and _nominated(pod) != nominated:
            status["nominatedNodeName"] = nominated or None
        if status:
            await self._write(pod, status)

    async def _write(self, pod: Object, status: Object) -> None:
        """Into a pod that may be gone."""
        try:
            await self._patch(pod, status)
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _patch(self, pod: Object, status: Object) -> None:
        metadata = pod["metadata"]
        pods = self._context.client.resource(PODS, metadata["namespace"])
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        await pods.patch(metadata["name"], patch, "status", patch_type=STRATEGIC_MERGE_PATCH)


def _back_off(tries: int) -> float:
    """In seconds."""
    return min(_BACK_OFF * 2.0 ** (tries - 1), _MAX_BACK_OFF)


def _not_prepared(plugin: str, why: str) -> str:
    return f'running PreBind plugin "{plugin}": {why}'


def _has_resource_claims(pod: Object) -> bool:
    return bool(pod["spec"].get("resourceClaims"))


def _generated_claims(pod: Object) -> object:
    return (pod.get("status") or {}).get("resourceClaimStatuses")


def _nominated(pod: Object) -> str:
    """The node that others leave for it; "": none."""
    name: str = (pod.get("status") or {}).get("nominatedNodeName") or ""
    return name


def _claims_of(pod: Object) -> Sequence[str]:
    rows = pod["spec"].get("volumes") or ()
    return [name for row in rows if (name := claim_name(pod, row))]


def _shape(node: Object) -> tuple[object, ...]:
    """Returns the parts of a node that scheduling depends on."""
    spec = node["spec"]
    return (
        node["metadata"].get("labels"),
        spec.get("taints"),
        spec.get("unschedulable"),
        node["status"].get("allocatable"),
    )


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = Scheduler(context)
    controller = context.controller(reconciler)
    controller.add_source(Informer(reconciler.namespaces, reconciler.namespace_changed))
    controller.add_source(Informer(reconciler.nodes, reconciler.node_changed))
    for informer in reconciler.binder.others:
        controller.add_source(Informer(informer, reconciler.storage_changed))
    controller.add_source(Informer(reconciler.binder.volumes, reconciler.volume_changed))
    controller.add_source(Informer(reconciler.binder.claims, reconciler.claim_changed))
    controller.add_source(Informer(reconciler.devices.slices, reconciler.resource_slice_changed, optional=True))
    controller.add_source(Informer(reconciler.devices.classes, reconciler.device_class_changed, optional=True))
    controller.add_source(Informer(reconciler.devices.claims, reconciler.resource_claim_changed, optional=True))
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    return [controller]
