"""Binds pods to nodes (upstream: pkg/scheduler/schedule_one.go).

Filters say where a pod can't run, scores where it runs best; where it can't, pods of less priority may have to go. Claims that wait for
their first consumer get their volumes before the pod gets its node. Resource claims and extenders are not considered.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.conditions import Condition, pod_condition_patch
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NAMESPACES, NODES, PODS, is_terminating, key_of, labels_of
from fakeapiserver.component_helpers.pod_volumes import claim_name
from fakeapiserver.component_helpers.volumes import claim_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes.scheduler import preemption, scores
from fakeapiserver.nodes.scheduler.filters import Refusal, cycle_of, refusal
from fakeapiserver.nodes.scheduler.node_info import PodInfo, Snapshot
from fakeapiserver.nodes.scheduler.volume_binder import Binding, VolumeBinder, VolumeBindingFailed
from fakeapiserver.nodes.scheduler.volumes import PodVolumes

NAME: Final = "default-scheduler"
USER: Final = "system:kube-scheduler"
_TERMINAL: Final = ("Succeeded", "Failed")
_PREEMPTED: Final[Condition] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": f"{NAME}: preempting to accommodate a higher priority pod",
}
_BACK_OFF: Final = 1.0
_MAX_BACK_OFF: Final = 10.0


class Scheduler:
    """Requests are pods that have no node yet."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._snapshot = Snapshot()
        self._recorder = context.recorder(NAME)
        # Those that fit nowhere: how often they were tried, and when the last time was.
        self._waiting: dict[Request, tuple[int, float]] = {}
        self.binder = VolumeBinder(context)
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
                self._snapshot.place(PodInfo(pod), node)
                if isinstance(event, UpdateEvent) and labels_of(event.object_old) != labels_of(pod):
                    self._try_again(queue)
        elif gone:
            self._waiting.pop(request, None)
            if self.binder.of(request) is not None:
                self._tell_of_failure(
                    pod, f'binding volumes: pod does not exist any more: pod "{request.name}" not found'
                )
                self.binder.forget(request)
            self._snapshot.remove_pod(str(request))
        elif self._is_ours(pod):
            old = event.object_old if isinstance(event, UpdateEvent) else None
            if (
                old is None
                or old["spec"] != pod["spec"]
                or old["metadata"].get("labels") != pod["metadata"].get("labels")
            ):
                queue.add(request, pod["spec"].get("priority") or 0)

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

    def _look_again(self, claim: str, queue: Queue) -> None:
        for request in self.binder.waiting_for(claim):
            queue.add(request)

    def _try_again(self, queue: Queue, concerns: Callable[[Object], object] = lambda pod: True) -> None:
        """Something has changed: whoever fits nowhere may fit now; later, the more often it didn't."""
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
        info = PodInfo(pod)
        cycle = cycle_of(info, self._snapshot, self.binder.storage)
        fitting, refusals = [], dict[str, Refusal]()
        for name, node in self._snapshot.nodes.items():
            why = Refusal((cycle.claims.problem,)) if cycle.claims.problem else refusal(cycle, node)
            if why is None:
                fitting.append(node)
            else:
                refusals[name] = why
        if not fitting:
            await self._refused(request, info, refusals, cycle.claims.problem)
            return None
        # decided before anything is awaited: nobody else gets the same room
        chosen = scores.best(info, fitting, self._snapshot).name
        self._snapshot.place(info, chosen)
        self._waiting.pop(request, None)
        volumes = cycle.claims.found.get(chosen, PodVolumes())
        if volumes.static or volumes.dynamic:
            return await self._bind_volumes(request, self.binder.begin(request, info, chosen, volumes))
        await self._bind(request, info, chosen)
        return None

    async def _bind_volumes(self, request: Request, binding: Binding) -> Result | None:
        try:
            await self.binder.write(binding)
        except StatusError as error:
            return await self._failed(request, binding, str(error))
        return await self._bind_when_ready(request, binding)

    async def _bind_when_ready(self, request: Request, binding: Binding) -> Result | None:
        """The node, once its volumes are there."""
        try:
            if not self.binder.is_bound(binding):
                return Result(requeue_after=max(binding.deadline - self._context.clock.monotonic(), 0.0))
        except VolumeBindingFailed as error:
            return await self._failed(request, binding, f"binding volumes: {error}")
        self.binder.forget(request)
        await self._bind(request, binding.info, binding.node)
        return None

    async def _failed(self, request: Request, binding: Binding, why: str) -> Result:
        """Something went wrong that nobody may ever tell of: it is tried again all the same."""
        self.binder.forget(request)
        self._snapshot.remove_pod(binding.info.key)
        self._wait(request)
        message = self._tell_of_failure(binding.info.pod, why)
        await self._say(binding.info.pod, message, "", "SchedulerError")
        return Result(requeue_after=_back_off(self._waiting[request][0]))

    def _tell_of_failure(self, pod: Object, why: str) -> str:
        message = f'running PreBind plugin "VolumeBinding": {why}'
        self._recorder.event(pod, "Warning", "FailedScheduling", message)
        return message

    def _wait(self, request: Request) -> None:
        tries = self._waiting.get(request, (0, 0.0))[0] + 1
        self._waiting[request] = (tries, self._context.clock.monotonic())

    async def _bind(self, request: Request, info: PodInfo, name: str) -> None:
        metadata = {"name": request.name, "namespace": request.namespace, "uid": info.pod["metadata"]["uid"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        try:
            await self._context.client.resource(PODS, request.namespace).create(binding, "binding")
        except StatusError as error:
            self._snapshot.remove_pod(info.key)
            if is_not_found(error) or is_conflict(error):
                return
            raise
        self._recorder.event(info.pod, "Normal", "Scheduled", f"Successfully assigned {request} to {name}")

    async def _refused(self, request: Request, info: PodInfo, refusals: Mapping[str, Refusal], for_all: str) -> None:
        """`for_all`: why no node would do, whichever it was; "": each has its reasons."""
        self._wait(request)
        message, nominated = self._message(refusals, for_all), ""
        if refusals:
            found, why = preemption.candidate(info, self._snapshot, refusals, self.binder.storage)
            if found is not None:
                await self._preempt(info, found)
                nominated = found.node
            else:
                # upstream's plugins for this ask first which claims for devices could be given back
                message += " not found" if for_all else f" no new claims to deallocate, preemption: {why}"
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

    async def _preempt(self, info: PodInfo, found: preemption.Candidate) -> None:
        """The victims are told to go; the pod is tried again as they do."""
        uid = info.pod["metadata"]["uid"]
        for victim in found.victims:
            metadata = victim.pod["metadata"]
            if metadata.get("deletionTimestamp"):
                continue
            pods = self._context.client.resource(PODS, victim.namespace)
            status = pod_condition_patch(victim.pod, _PREEMPTED, self._context.clock.now())
            try:
                if status:
                    await self._patch(victim.pod, status)
                await pods.delete(metadata["name"])
            except StatusError as error:
                if not is_not_found(error):
                    raise
                continue
            message = f"Preempted by pod {uid} on node {found.node}"
            self._recorder.event(victim.pod, "Normal", "Preempted", message)

    async def _say(self, pod: Object, message: str, nominated: str, reason: str = "Unschedulable") -> None:
        """Writes why, if it doesn't say so already."""
        refused = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        status = pod_condition_patch(pod, refused, self._context.clock.now())
        if nominated and (pod.get("status") or {}).get("nominatedNodeName") != nominated:
            status["nominatedNodeName"] = nominated
        if status:
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


def _claims_of(pod: Object) -> Sequence[str]:
    rows = pod["spec"].get("volumes") or ()
    return [name for row in rows if (name := claim_name(pod, row))]


def _shape(node: Object) -> tuple[object, ...]:
    """What matters for scheduling of a node."""
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
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    return [controller]
