"""Marks nodes that are lost: their conditions, their taints, the readiness of their pods.

Four queues: signs of life, NoSchedule taints after conditions, NoExecute taints at the zone's rate, pods that come to a node that
isn't ready. Upstream looks for signs of life every five seconds; here they are noticed as they come, and nothing is
checked while all is well; the effects come at the same times.
Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go, pkg/controller/util/node/controller_utils.go.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.conditions import find_condition
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext
from fakeapiserver.component_helpers.objects import LEASES, NODES, PODS, node_reference
from fakeapiserver.component_helpers.pods import POD_NODE_NAME_INDEX, add_pod_node_name_indexer, pod_condition
from fakeapiserver.component_helpers.workloads.gathering import gather_changes
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import ReconcilerFunc, Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.node_lifecycle.health import (
    NodeHealth,
    Zones,
    beats_until,
    conditions_unknown,
    first_seen,
    zone_of,
)
from fakeapiserver.controllers.node_lifecycle.metrics import NodeMetrics

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_TAINTS: Final[Mapping[tuple[str, str], str]] = {
    ("Ready", "False"): _NOT_READY,
    ("Ready", "Unknown"): _UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN_TAINTS: Final = frozenset({*_TAINTS.values(), _UNSCHEDULABLE})
# Seconds after which those that are to go are looked at; the NoSchedule taint is there then.
_EVICTION_PERIOD: Final = 0.1
_EVICTING: Final[Mapping[str, tuple[str, str]]] = {
    "False": (_NOT_READY, _UNREACHABLE),
    "Unknown": (_UNREACHABLE, _NOT_READY),
}
_LABELS: Final = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)
_LEASE_NAMESPACE: Final = "kube-node-lease"
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_MANY: Final = 8
_TRIES: Final = 5
# So many nodes are looked at before others of the event loop have their turn.
_TURN: Final = 64
# Seconds: more than what is lost when times are added up.
_MOMENT: Final = 0.002


class NodeLifecycle:
    """The state that the queues share."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._nodes = context.client.resource(NODES)
        self._recorder = context.recorder("node-controller")
        self._health: dict[str, NodeHealth] = {}
        self._known: dict[str, str] = {}
        self._looked_at = context.clock.now()
        self._zones = Zones(context.configuration)
        self._metrics = NodeMetrics(context.metrics)
        self.nodes = context.informer(NODES)
        self.pods = context.informer(PODS)
        self.leases = context.informer(LEASES)
        self.evictions: Queue | None = None
        add_pod_node_name_indexer(self.pods)

    def node(self, name: str) -> Object | None:
        return self.nodes.indexer.get_by_key(name)

    # ------------------------------------------------------------------ signs of life

    def node_told(self, event: Event, queue: Queue) -> None:
        """The first one begins it; a node that comes or goes is noticed at once, one that changes when upstream would look."""
        if not isinstance(event, UpdateEvent):
            queue.add(EVERYTHING)
            return
        self._notice(event.object_new["metadata"]["name"])
        if _looked_for(event.object_old) != _looked_for(event.object_new):
            now = self._context.clock.now()
            queue.add_after(EVERYTHING, self._next_look(now) - now)

    def lease_told(self, event: Event, queue: Queue) -> None:
        """A renewal changes nothing but when the node is lost."""
        metadata = object_of(event)["metadata"]
        if metadata["namespace"] == _LEASE_NAMESPACE:
            self._notice(metadata["name"])

    def _notice(self, name: str) -> None:
        """A sign of life counts from the next look on."""
        node, health = self.node(name), self._health.get(name)
        if node is not None and health is not None:
            self._notice_of(node, health, self._next_look(self._context.clock.now()))

    def _notice_of(self, node: Object, health: NodeHealth, now: float) -> None:
        health.notice(node, self.leases.indexer.get_by_key(f"{_LEASE_NAMESPACE}/{node['metadata']['name']}"), now)

    def _next_look(self, at: float) -> float:
        """When upstream looks next: what happens at the moment of a look comes too late for it."""
        period = self._context.configuration.node_monitor_period
        return self._looked_at + beats_until(at - self._looked_at + _MOMENT, period) * period

    async def look(self, request: Request) -> Result | None:
        """At all nodes."""
        await gather_changes(len(self.nodes.indexer))
        with self._metrics.update_all_nodes.time():
            return await self._look()

    async def _look(self) -> Result | None:
        nodes = self.nodes.indexer.list()
        self._looked_at = now = self._context.clock.now()
        self._tell_of_new_and_gone(nodes)
        ready: dict[str, list[bool]] = {}
        all_well = True
        for number, node in enumerate(nodes, 1):
            if number % _TURN == 0:
                await asyncio.sleep(0)
            with self._metrics.update_node.time():
                current = await self._look_at(node, now)
            all_well &= current == "True"
            if current is None or _EXCLUDED in (node["metadata"].get("labels") or {}):
                continue
            ready.setdefault(zone_of(node), []).append(current == "True")
        await self._disruption(ready, nodes)
        self._metrics.zones(ready)
        if not nodes:
            return None
        configuration = self._context.configuration
        lost_at = min(health.seen_at for health in self._health.values()) + configuration.node_monitor_grace_period
        looks = beats_until(lost_at - now, configuration.node_monitor_period) if all_well else 1
        return Result(requeue_after=max(looks, 1) * configuration.node_monitor_period)

    def _tell_of_new_and_gone(self, nodes: Sequence[Object]) -> None:
        uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in nodes}
        for name, uid in uids.items():
            if name not in self._known:
                self._tell(name, uid, "RegisteredNode", f"event: Registered Node {name} in Controller")
        for name, uid in self._known.items():
            if name not in uids:
                self._tell(name, uid, "RemovingNode", f"event: Removing Node {name} from Controller")
                self._health.pop(name, None)
        self._known = uids

    async def _look_at(self, node: Object, now: float) -> str | None:
        """The status of its Ready condition, as it is from now on. None: it has none, or could not be written."""
        name = node["metadata"]["name"]
        configuration = self._context.configuration
        self._zones.of(node)
        observed = find_condition(node["status"].get("conditions"), "Ready")
        health = self._health.get(name)
        if health is None:
            health = self._health[name] = first_seen(node, now)
        self._notice_of(node, health, now)
        health.seen_at = min(health.seen_at, now)
        patience = configuration.node_monitor_grace_period if observed else configuration.node_startup_grace_period
        current = observed
        if health.is_lost(now, patience):
            conditions = conditions_unknown(node, now)
            if conditions is not None:
                changed = {**node, "status": {**node["status"], "conditions": conditions}}
                try:
                    node = await self._nodes.update_status(changed)
                except StatusError as error:
                    if is_conflict(error) or is_not_found(error):
                        return None  # the next look sees more
                    raise
                current = find_condition(node["status"].get("conditions"), "Ready")
        if current is None:
            return None
        status: str = current["status"]
        await self._taint_for_eviction(node, status)
        if status != "True" and observed is not None and observed["status"] == "True":
            self._tell(name, node["metadata"]["uid"], "NodeNotReady", "status is now: NodeNotReady")
            for pod in self.pods.indexer.by_index(POD_NODE_NAME_INDEX, name):
                await self._mark_not_ready(pod)
        return status

    async def _disruption(self, ready: Mapping[str, Sequence[bool]], nodes: Sequence[Object]) -> None:
        change = self._zones.look(ready)
        if change == "begins":
            for node in nodes:
                await self._change_taints(node["metadata"]["name"], [], _pair("NoExecute"))
        elif change == "ends":
            now = self._context.clock.now()
            for health in self._health.values():
                health.seen_at = now

    def _tell(self, name: str, uid: str, reason: str, text: str) -> None:
        self._recorder.event(node_reference(name, uid), "Normal", reason, f"Node {name} {text}")

    # ------------------------------------------------------------------------- taints

    def node_changed(self, event: Event, queue: Queue) -> None:
        if not isinstance(event, DeleteEvent):
            node = object_of(event)
            queue.add(Request("", node["metadata"]["name"]))

    async def taint(self, request: Request) -> None:
        """NoSchedule, after its conditions; and labels of old names."""
        node = self.node(request.name)
        if node is None:
            return
        wanted = [
            _TAINTS[row["type"], row["status"]]
            for row in node["status"].get("conditions") or ()
            if (row["type"], row["status"]) in _TAINTS
        ]
        if node["spec"].get("unschedulable"):
            wanted.append(_UNSCHEDULABLE)
        has = [
            taint["key"]
            for taint in node["spec"].get("taints") or ()
            if taint["effect"] == "NoSchedule" and taint["key"] in _OWN_TAINTS
        ]
        if set(wanted) != set(has):
            add = [(key, "NoSchedule") for key in wanted if key not in has]
            await self._change_taints(request.name, add, [(key, "NoSchedule") for key in has if key not in wanted])
        labels = node["metadata"].get("labels") or {}
        missing = {new: labels[old] for old, new in _LABELS if old in labels and labels.get(new) != labels[old]}
        if missing:
            patch = {"metadata": {"labels": missing}}
            await self._nodes.patch(request.name, patch, patch_type=STRATEGIC_MERGE_PATCH)

    async def _taint_for_eviction(self, node: Object, status: str) -> None:
        name = node["metadata"]["name"]
        has = {taint["key"] for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"}
        if status == "True":
            if has & {_NOT_READY, _UNREACHABLE}:
                await self._change_taints(name, [], _pair("NoExecute"))
            return
        key, opposite = _EVICTING[status]
        if opposite in has:
            await self._change_taints(name, [(key, "NoExecute")], [(opposite, "NoExecute")])
        elif key not in has and self.evictions is not None:
            self.evictions.add_after(Request("", name), _EVICTION_PERIOD)

    async def evict(self, request: Request) -> Result | None:
        """NoExecute, one node after the other, as fast as its zone may."""
        node = self.node(request.name)
        ready = find_condition(node["status"].get("conditions"), "Ready") if node is not None else None
        if node is None or ready is None or ready["status"] == "True":
            return None
        limiter = self._zones.of(node).limiter
        if limiter is None:
            return None  # the next look asks again
        wait = limiter.reserve(self._context.clock.monotonic())
        if wait > 0:
            limiter.give_back()
            return Result(requeue_after=wait)
        key, opposite = _EVICTING[ready["status"]]
        await self._change_taints(request.name, [(key, "NoExecute")], [(opposite, "NoExecute")])
        self._metrics.evicted(zone_of(node))
        return None

    async def _change_taints(
        self, name: str, add: Sequence[tuple[str, str]], remove: Sequence[tuple[str, str]]
    ) -> None:
        """Against others that change them at the same time."""
        node = self.node(name)
        for _ in range(_TRIES):
            if node is None:
                return
            old: Sequence[Mapping[str, Any]] = node["spec"].get("taints") or ()
            names = {(taint["key"], taint["effect"]) for taint in old}
            kept = [taint for taint in old if (taint["key"], taint["effect"]) not in remove]
            now = rfc3339(self._context.clock.now())
            new = [
                {"key": key, "effect": effect, "timeAdded": now} for key, effect in add if (key, effect) not in names
            ]
            if len(kept) == len(old) and not new:
                return
            patch = {
                "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                "spec": {"taints": [*kept, *new] or None},
            }
            try:
                await self._nodes.patch(name, patch)
                return
            except StatusError as error:
                if is_not_found(error):
                    return
                if not is_conflict(error):
                    raise
            try:
                node = await self._nodes.get(name)
            except StatusError as error:
                if not is_not_found(error):
                    raise
                return

    # --------------------------------------------------------------------------- pods

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues a pod that was bound to a node."""
        if isinstance(event, DeleteEvent):
            return
        pod = object_of(event)
        old = event.object_old["spec"].get("nodeName") if isinstance(event, UpdateEvent) else None
        if pod["spec"].get("nodeName") and pod["spec"]["nodeName"] != old:
            queue.add(Request(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    async def look_at_pod(self, request: Request) -> None:
        pod = self.pods.indexer.get_by_key(str(request))
        node = self.node(pod["spec"].get("nodeName", "")) if pod is not None else None
        if pod is None or node is None or node["metadata"]["name"] not in self._health:
            return
        ready = find_condition(node["status"].get("conditions"), "Ready")
        if ready is not None and ready["status"] != "True":
            await self._mark_not_ready(pod)

    async def _mark_not_ready(self, pod: Object) -> None:
        condition = pod_condition(pod, "Ready")
        if condition is None or condition["status"] == "False":
            return
        metadata = pod["metadata"]
        changed = {**condition, "status": "False", "lastTransitionTime": rfc3339(self._context.clock.now())}
        patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [changed]}}
        pods = self._context.client.resource(PODS, metadata["namespace"])
        try:
            await pods.patch(metadata["name"], patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
        except StatusError as error:
            if not (is_not_found(error) or is_conflict(error)):
                raise
            return
        self._recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")


def _looked_for(node: Object) -> Sequence[object]:
    """Returns the parts of a node that the checks depend on."""
    ready = find_condition(node["status"].get("conditions"), "Ready")
    return (ready and ready["status"], node["spec"].get("taints"), node["metadata"].get("labels"))


def _pair(effect: str) -> Sequence[tuple[str, str]]:
    return ((_NOT_READY, effect), (_UNREACHABLE, effect))


def new(context: ControllerContext) -> Sequence[Controller]:
    controller = NodeLifecycle(context)
    health = context.controller(ReconcilerFunc(controller.look), name="node-lifecycle-health")
    health.add_source(Informer(controller.nodes, controller.node_told))
    health.add_source(Informer(controller.leases, controller.lease_told))
    taints = context.controller(ReconcilerFunc(controller.taint), name="node-lifecycle-taints", workers=_MANY)
    taints.add_source(Informer(controller.nodes, controller.node_changed))
    evictions = context.controller(ReconcilerFunc(controller.evict), name="node-lifecycle-evictions")
    controller.evictions = evictions.queue
    pods = context.controller(ReconcilerFunc(controller.look_at_pod), name="node-lifecycle-pods", workers=_MANY)
    pods.add_source(Informer(controller.pods, controller.pod_changed))
    return [health, taints, evictions, pods]
