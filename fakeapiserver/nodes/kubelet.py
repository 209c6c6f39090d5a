"""The kubelets of all simulated nodes: they register nodes, renew leases, and let pods live (upstream: pkg/kubelet)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Final

from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.client.record import object_reference
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CONFIG_MAPS, NODES, PODS, SECRETS, is_terminating
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes import node, node_resources
from fakeapiserver.nodes.commands import needed_objects
from fakeapiserver.nodes.heartbeats import Heartbeats, Nodes
from fakeapiserver.nodes.managers import EvictionManager, ShutdownManager
from fakeapiserver.nodes.node_resources import Needs, attached_changed
from fakeapiserver.nodes.pod_lifecycle import admission, resizing, termination
from fakeapiserver.nodes.pod_lifecycle.context import BehaviourOf, PodLocation, PodState
from fakeapiserver.nodes.pod_lifecycle.events import WARNING, PodEvent, changes
from fakeapiserver.nodes.pod_lifecycle.lifecycle import next_status
from fakeapiserver.nodes.pod_lifecycle.pod_conditions import TERMINAL
from fakeapiserver.nodes.simulation import NodeState, Simulation
from fakeapiserver.nodes.surroundings import CONFIG_MAP, Key, Objects

# Writes the events of all nodes; what else they write, each writes itself.
USER: Final = f"system:node:{node.name_of(1)}"
_WORKERS: Final = 8
_NEVER: Final = 1e9  # seconds


class Pods:
    """Requests are pods of the simulated nodes."""

    def __init__(self, context: ControllerContext, simulation: Simulation) -> None:
        self._context = context
        self._simulation = simulation
        self._clients: dict[str, DynamicClient] = {}
        self._recorders: dict[str, CoreEventRecorder] = {}
        self._memories: dict[str, PodState] = {}
        self._rooms: defaultdict[str, admission.Room] = defaultdict(admission.Room)
        self._room_of: dict[str, admission.Room] = {}  # by the uids of the pods that hold resources
        self._waiting: set[Request] = set()  # for room
        self.nodes = context.informer(NODES)
        self.pods = context.informer(PODS)
        self.needs = Needs(context)
        # Pods whose containers don't start yet, and the reason in the last event.
        self._held: dict[Request, str] = {}
        simulation.pod = lambda request: self.pods.indexer.get_by_key(str(request))
        simulation.read_objects = self._read_objects
        simulation.spans = lambda uid: self._memories[uid].spans if uid in self._memories else {}

    def changed(self, event: Event, queue: Queue) -> None:
        """Queues pods on simulated nodes, and frees the room of pods that are deleted or have ended before the scheduler can
        give it to others.
        """
        pod = object_of(event)
        if isinstance(event, DeleteEvent) or (pod.get("status") or {}).get("phase") in TERMINAL:
            self._leave(pod["metadata"]["uid"])
        if pod["spec"].get("nodeName") in self._simulation.nodes:
            request = Request(pod["metadata"]["namespace"], pod["metadata"]["name"])
            queue.add(request)
            self._simulation.tell(request)
            if self._simulation.nodes[pod["spec"]["nodeName"]].shutdown is not None:
                self._simulation.tell_node(pod["spec"]["nodeName"])

    def node_changed(self, event: Event, queue: Queue) -> None:
        if self._held and attached_changed(event):
            self._look_again(queue)

    def need_changed(self, event: Event, queue: Queue) -> None:
        """Whatever pods may wait for."""
        self._look_again(queue)

    def _look_again(self, queue: Queue) -> None:
        for request in self._held:
            queue.add(request)

    async def reconcile(self, request: Request) -> Result | None:
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None:
            self._held.pop(request, None)
            self._simulation.addresses.give_back(uid := self._simulation.forget(request))
            self._memories.pop(uid, None)
            self._waiting.discard(request)
            self._leave(uid)
            return None
        state = self._simulation.nodes.get(pod["spec"].get("nodeName", ""))
        if state is None or not state.runs or "Pod" in self._simulation.staged:
            return None
        uid, name, now = pod["metadata"]["uid"], state.name, self._context.clock.now()
        self._simulation.remember(request, uid)
        if (refused := self._refusal(pod, state, now)) is not None:
            await self._reject(name, pod, refused)
            return None
        if uid not in self._simulation.behaviours.objects:
            self._simulation.behaviours.objects[uid] = await self._read_objects(pod, needed_objects(pod))
        behaviour_of, room = self._behaviour_of(request, pod, name), self._rooms[name]
        known_node = self.nodes.indexer.get_by_key(name)
        following = next_status(
            pod,
            PodLocation(
                self._host_addresses(state),
                self._addresses(pod, state, known_node),
                lambda pod: room.lacks(pod, known_node) if known_node is not None else None,
            ),
            behaviour_of,
            now,
            memory := self._memories.setdefault(uid, PodState(now)),
        )
        self._keep_room(room, pod, memory)
        pods = self._client(name).resource(PODS, request.namespace)
        try:
            if following.status is not None:
                patch = {"metadata": {"uid": uid}, "status": _patch(pod, following.status)}
                await pods.patch(request.name, patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
            self._tell(name, pod, [*following.events, *changes(pod, following.status or {})])
            if following.gone:
                await pods.delete(request.name, grace_period_seconds=0, uid=uid)
        except StatusError as error:
            if not (is_not_found(error) or is_conflict(error)):
                raise
        if following.after is None or following.gone or following.after > _NEVER / 2:
            return None
        # what is due now is looked at once the write has come back
        return (
            Result(requeue_after=max(following.after, 0.001)) if following.after or following.status is None else None
        )

    async def _read_objects(self, pod: Object, keys: Iterable[Key]) -> Objects:
        """The ConfigMaps and Secrets that the node can read."""
        objects: dict[Key, Object] = {}
        client = self._client(pod["spec"]["nodeName"])
        for kind, name in sorted(keys):
            resource = client.resource(CONFIG_MAPS if kind == CONFIG_MAP else SECRETS, pod["metadata"]["namespace"])
            with suppress(StatusError):
                objects[kind, name] = await resource.get(name)
        return objects

    def stop(self, pod: Object, stop: termination.Stop) -> bool:
        """The node ends the pod. False: it does so already."""
        memory = self._memories.setdefault(pod["metadata"]["uid"], PodState(stop.begun))
        if memory.stop is not None:
            return False
        memory.stop = stop
        self._simulation.look(Request(pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return True

    def _refusal(self, pod: Object, state: NodeState, now: float) -> admission.Refusal | None:
        """Returns why the node refuses a new pod, or None. The pod's resources are reserved then."""
        uid, status, room = pod["metadata"]["uid"], pod.get("status") or {}, self._rooms[state.name]
        known = self.nodes.indexer.get_by_key(state.name)
        if uid in room or known is None or status.get("phase") in TERMINAL or pod["metadata"].get("deletionTimestamp"):
            return None
        if "startTime" not in status:
            for spec in pod["spec"]["containers"]:
                if error := self._simulation.behaviours.of(pod, spec["name"], main=True).admission_error:
                    return admission.Refusal("UnexpectedAdmissionError", error)
            pressures = [pressure.condition for pressure in state.pressures(now)]
            refused = admission.refusal(pod, known, room, pressures=pressures, shuts_down=state.shutdown is not None)
            if refused is not None:
                return refused
        room.take(pod)
        self._room_of[uid] = room
        return None

    async def _reject(self, name: str, pod: Object, refused: admission.Refusal) -> None:
        metadata = pod["metadata"]
        status: Object = {
            "phase": "Failed",
            "reason": refused.reason,
            "message": f"Pod was rejected: {refused.message}",
            "startTime": rfc3339(self._context.clock.now()),
            "conditions": [{"$patch": "delete", "type": "PodScheduled"}],
        }
        if generation := metadata.get("generation"):
            status["observedGeneration"] = generation
        try:
            await (
                self._client(name)
                .resource(PODS, metadata["namespace"])
                .patch(
                    metadata["name"],
                    {"metadata": {"uid": metadata["uid"]}, "status": status},
                    "status",
                    patch_type=STRATEGIC_MERGE_PATCH,
                )
            )
        except StatusError as error:
            if not (is_not_found(error) or is_conflict(error)):
                raise
            return
        self._tell(name, pod, [PodEvent("Warning", refused.reason, refused.message)])

    def _keep_room(self, room: admission.Room, pod: Object, memory: PodState) -> None:
        """Updates the resources that the pod holds, and frees them when it has ended; pods that wait for them are
        queued.
        """
        uid = pod["metadata"]["uid"]
        if (pod.get("status") or {}).get("phase") in TERMINAL:
            self._leave(uid)
        elif uid in room and memory.allocated == resizing.wanted(pod):
            room.take(pod)
        waits = (pod.get("status") or {}).get("conditions") or ()
        request = Request(pod["metadata"]["namespace"], pod["metadata"]["name"])
        if any(row["type"] == resizing.PENDING for row in waits):
            self._waiting.add(request)
        else:
            self._waiting.discard(request)

    def _leave(self, uid: str) -> None:
        room = self._room_of.pop(uid, None)
        if room is not None:
            room.give_back(uid)
            for request in self._waiting:
                self._simulation.look(request)

    def _addresses(self, pod: Object, state: NodeState, known_node: Object | None) -> tuple[str, ...]:
        """Returns an address in each of the node's ranges."""
        dual_stack = self._simulation.dual_stack
        if pod["spec"].get("hostNetwork"):
            return self._host_addresses(state)
        ranges = ((known_node or {}).get("spec") or {}).get("podCIDRs")
        status = pod.get("status") or {}
        known = [row["ip"] for row in status.get("podIPs") or ()] or ([status["podIP"]] if status.get("podIP") else [])
        return tuple(
            self._simulation.addresses.of(pod["metadata"]["uid"], cidr, given)
            for cidr, given in zip_longest(
                ranges or node.pod_ranges(state.number, dual_stack=dual_stack), known, fillvalue=""
            )
            if cidr
        )

    def _behaviour_of(self, request: Request, pod: Object, node_name: str) -> BehaviourOf:
        """Returns the pod's behaviour; nothing starts before its volumes and devices are ready."""
        behaviours = self._simulation.behaviours
        begun = (pod.get("status") or {}).get("phase") not in (None, "Pending") or is_terminating(pod)
        problem = self.needs.problem(pod) if pod["spec"].get("resourceClaims") and not begun else ""
        if begun or (not problem and self.needs.is_attached(pod)):
            self._held.pop(request, None)
            return lambda container, main: behaviours.of(pod, container, main=main)
        if problem and self._held.get(request) != problem:
            why = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
            self._tell(node_name, pod, [PodEvent(WARNING, "FailedPrepareDynamicResources", why)])
        self._held[request] = problem
        return lambda container, main: replace(behaviours.of(pod, container, main=main), starts_after=_NEVER)

    def _host_addresses(self, state: NodeState) -> tuple[str, ...]:
        if self._simulation.endpoint is not None:
            return (self._simulation.endpoint[0],)
        return tuple(node.addresses_of(state.number, dual_stack=self._simulation.dual_stack))

    def _tell(self, name: str, pod: Object, events: Sequence[PodEvent]) -> None:
        if events and name not in self._recorders:
            self._recorders[name] = self._context.recorder("kubelet", name)
        for event in events:
            path = {"fieldPath": event.field_path} if event.field_path else {}
            self._recorders[name].event({**object_reference(pod), **path}, event.type, event.reason, event.message)

    def _client(self, name: str) -> DynamicClient:
        if name not in self._clients:
            self._clients[name] = self._context.client_of(f"system:node:{name}")
        return self._clients[name]


class _Rescripted:
    """A Source: every pod, when a script or a node's state changes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    async def start(self, queue: Queue) -> None:
        def look_again() -> None:
            for request in self._simulation.requests:
                queue.add(request)

        self._look_again = look_again
        self._simulation.look = queue.add
        self._simulation.watchers.append(look_again)

    async def wait_for_sync(self) -> None:
        """Returns at once: nothing exists in the beginning."""

    def stop(self) -> None:
        self._simulation.watchers.remove(self._look_again)


def new(context: ControllerContext, simulation: Simulation) -> Sequence[Controller]:
    """The kubelets of `simulation`."""
    simulation.now = context.clock.now
    heartbeats = context.controller(Heartbeats(context, simulation), name="kubelet-heartbeats")
    heartbeats.add_source(Nodes(simulation))
    heartbeats.queue.slack = node.renew_slack(context.configuration.node_monitor_grace_period)
    reconciler = Pods(context, simulation)
    pods = context.controller(reconciler, name="kubelet-pods", workers=_WORKERS)
    pods.add_source(Informer(reconciler.pods, reconciler.changed))
    pods.add_source(Informer(reconciler.needs.devices, reconciler.need_changed, optional=True))
    for informer in (reconciler.needs.claims, reconciler.needs.volumes):
        pods.add_source(Informer(informer, reconciler.need_changed))
    pods.add_source(Informer(reconciler.needs.nodes, reconciler.node_changed))
    pods.add_source(_Rescripted(simulation))
    managers = [
        context.controller(EvictionManager(context, simulation, reconciler.stop), name="kubelet-eviction"),
        context.controller(ShutdownManager(context, simulation, reconciler.stop), name="kubelet-shutdown"),
    ]
    for manager in managers:
        manager.add_source(Nodes(simulation))
    return [heartbeats, pods, *managers, node_resources.new(context, simulation, reconciler.needs)]


def _patch(pod: Object, status: Object) -> Object:
    """Returns a strategic merge patch. A condition that is no more, or a field that one has no more, such as its reason, is removed."""
    known = {row["type"]: row for row in (pod.get("status") or {}).get("conditions") or ()}
    rows = [{**dict.fromkeys(known.get(row["type"], ())), **row} for row in status["conditions"]]
    deleted = [{"$patch": "delete", "type": kind} for kind in known.keys() - {row["type"] for row in rows}]
    return {**status, "conditions": [*rows, *sorted(deleted, key=lambda row: row["type"])]}
