"""The kubelets of all simulated nodes: they register nodes, renew leases, and let pods live (upstream: pkg/kubelet)."""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH, DynamicClient
from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict, is_not_found
from fakeapiserver.client.record import object_reference
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES, PODS
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.nodes import node
from fakeapiserver.nodes.events import Told, changes
from fakeapiserver.nodes.leases import renew
from fakeapiserver.nodes.lifecycle import Memory, Place, next_status
from fakeapiserver.nodes.simulation import Simulation

# Writes the events of all nodes; what else they write, each writes itself.
USER: Final = f"system:node:{node.name_of(1)}"
_WORKERS: Final = 8


class Pods:
    """Requests are pods of the simulated nodes."""

    def __init__(self, context: ControllerContext, simulation: Simulation) -> None:
        self._context = context
        self._simulation = simulation
        self._clients: dict[str, DynamicClient] = {}
        self._recorders: dict[str, CoreEventRecorder] = {}
        self._memories: dict[str, Memory] = {}
        self.pods = context.informer(PODS)
        simulation.pod = lambda request: self.pods.indexer.get_by_key(str(request))

    def changed(self, event: Event, queue: Queue) -> None:
        """What is on our nodes is to be looked at; what is gone gives its address back."""
        pod = object_of(event)
        if pod["spec"].get("nodeName") in self._simulation.nodes:
            request = Request(pod["metadata"]["namespace"], pod["metadata"]["name"])
            queue.add(request)
            self._simulation.tell(request)

    async def reconcile(self, request: Request) -> Result | None:
        pod = self.pods.indexer.get_by_key(str(request))
        if pod is None:
            self._simulation.addresses.give_back(uid := self._simulation.forget(request))
            self._memories.pop(uid, None)
            return None
        state = self._simulation.nodes.get(pod["spec"].get("nodeName", ""))
        if state is None or not state.runs or "Pod" in self._simulation.staged:
            return None
        uid, name = pod["metadata"]["uid"], state.name
        self._simulation.remember(request, uid)
        host = node.address_of(state.number)
        known = (pod.get("status") or {}).get("podIP", "")
        cidr = str(node.pod_range(state.number))
        address = host if pod["spec"].get("hostNetwork") else self._simulation.addresses.of(uid, cidr, known)
        behaviours, now = self._simulation.behaviours, self._context.clock.now()
        found = next_status(
            pod,
            Place(host, (address,)),
            lambda container, main: behaviours.of(pod, container, main=main),
            now,
            self._memories.setdefault(uid, Memory(now)),
        )
        pods = self._client(name).resource(PODS, request.namespace)
        try:
            if found.status is not None:
                patch = {"metadata": {"uid": uid}, "status": found.status}
                await pods.patch(request.name, patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
            self._tell(name, pod, [*found.told, *changes(pod, found.status or {})])
            if found.gone:
                await pods.delete(request.name, grace_period_seconds=0, uid=uid)
        except StatusError as error:
            if not (is_not_found(error) or is_conflict(error)):
                raise
        if found.after is None or found.gone:
            return None
        # what is due now is looked at once the write has come back
        return Result(requeue_after=max(found.after, 0.001)) if found.after or found.status is None else None

    def _tell(self, name: str, pod: Object, events: Sequence[Told]) -> None:
        if events and name not in self._recorders:
            self._recorders[name] = self._context.recorder("kubelet", name)
        for told in events:
            path = {"fieldPath": told.field_path} if told.field_path else {}
            self._recorders[name].event({**object_reference(pod), **path}, told.type, told.reason, told.message)

    def _client(self, name: str) -> DynamicClient:
        if name not in self._clients:
            self._clients[name] = self._context.client_of(f"system:node:{name}")
        return self._clients[name]


class Heartbeats:
    """Registers every node once, renews its lease every ten seconds and its status every five minutes. Requests are nodes.

    Where stages tell what becomes of nodes, they tell their conditions."""

    def __init__(self, context: ControllerContext, simulation: Simulation) -> None:
        self._context = context
        self._simulation = simulation
        self._registered: set[str] = set()
        self.nodes = context.informer(NODES)
        self._told: dict[str, float] = {}

    async def reconcile(self, request: Request) -> Result | None:
        state = self._simulation.nodes[request.name]
        if not state.runs:
            return None
        client, clock = self._context.client_of(f"system:node:{state.name}"), self._context.clock
        nodes = client.resource(NODES)
        now = clock.now()
        if state.name not in self._registered:
            try:
                await nodes.create(node.node(state.number, now, ready="Node" not in self._simulation.staged))
            except StatusError as error:
                if not is_already_exists(error):
                    raise
            self._registered.add(state.name)
            self._told[state.name] = now
            found = await nodes.get(state.name)
        else:
            known = self.nodes.indexer.get_by_key(state.name)
            if known is None:
                return None  # somebody deleted it: a kubelet registers once
            found = known
        is_ready = any(
            row["type"] == "Ready" and row["status"] == "True" for row in found["status"].get("conditions") or ()
        )
        is_due = now - self._told[state.name] >= node.STATUS_SECONDS or not is_ready
        if is_due and "Node" not in self._simulation.staged:
            patch = {"status": node.status(state.number, now, found["status"])}
            await nodes.patch(state.name, patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
            self._told[state.name] = now
        await renew(client, state.name, found["metadata"]["uid"], now)
        return Result(requeue_after=node.RENEW_SECONDS)


class _Nodes:
    """A Source: every node, when the kubelets start and when one begins to run again."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    async def start(self, queue: Queue) -> None:
        for name in self._simulation.nodes:
            queue.add(Request("", name))
        self._simulation.on_start = lambda name: queue.add(Request("", name))

    async def wait_for_sync(self) -> None:
        """They are known."""

    def stop(self) -> None:
        self._simulation.on_start = lambda name: None


class _Rescripted:
    """A Source: every pod, when a script or a node's state changes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    async def start(self, queue: Queue) -> None:
        def look_again() -> None:
            for request in self._simulation.requests:
                queue.add(request)

        self._look_again = look_again
        self._simulation.watchers.append(look_again)

    async def wait_for_sync(self) -> None:
        """Nothing is there in the beginning."""

    def stop(self) -> None:
        self._simulation.watchers.remove(self._look_again)


def new(context: ControllerContext, simulation: Simulation) -> Sequence[Controller]:
    """The kubelets of `simulation`."""
    heartbeats = context.controller(Heartbeats(context, simulation), name="kubelet-heartbeats")
    heartbeats.add_source(_Nodes(simulation))
    heartbeats.queue.slack = node.renew_slack(context.configuration.node_monitor_grace_period)
    reconciler = Pods(context, simulation)
    pods = context.controller(reconciler, name="kubelet-pods", workers=_WORKERS)
    pods.add_source(Informer(reconciler.pods, reconciler.changed))
    pods.add_source(_Rescripted(simulation))
    return [heartbeats, pods]
