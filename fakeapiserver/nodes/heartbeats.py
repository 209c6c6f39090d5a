"""Lets simulated nodes exist: registers them and renews their leases and status (upstream: pkg/kubelet/kubelet_node_status.go)."""

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_already_exists
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.nodes import node
from fakeapiserver.nodes.leases import renew
from fakeapiserver.nodes.simulation import NodeState, Simulation


class Heartbeats:
    """Registers each node once, renews its lease every ten seconds and its status every five minutes.

    Requests are nodes. If stages are configured, they set the nodes' conditions.
    """

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
                await nodes.create(self._new_node(state, now))
            except StatusError as error:
                if not is_already_exists(error):
                    raise
            self._registered.add(state.name)
            self._told[state.name] = now
            node_object = await nodes.get(state.name)
        else:
            known = self.nodes.indexer.get_by_key(state.name)
            if known is None:
                return None  # a user deleted it: a kubelet registers once
            node_object = known
        told = node.conditions(state.pressures(now), shuts_down=state.shutdown is not None)
        known_conditions = {(row["type"], row["status"]) for row in node_object["status"].get("conditions") or ()}
        changed = not known_conditions >= {(kind, value) for kind, value, _, _ in told}
        is_due = now - self._told[state.name] >= node.STATUS_SECONDS or changed
        extended = node.unallocatable(node_object["status"])
        if (is_due or extended) and "Node" not in self._simulation.staged:
            status = node.status(
                state.number,
                now,
                node_object["status"],
                told=told,
                dual_stack=self._simulation.dual_stack,
                endpoint=self._simulation.endpoint,
                version=self._simulation.kubelet_version,
            )
            status["allocatable"] |= extended
            patch = {"status": status}
            await nodes.patch(state.name, patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
            self._told[state.name] = now
        await renew(client, state.name, node_object["metadata"]["uid"], now)
        return Result(requeue_after=node.RENEW_SECONDS)

    def _new_node(self, state: NodeState, now: float) -> Object:
        ready = "Node" not in self._simulation.staged
        simulation = self._simulation
        return node.node(
            state.number,
            now,
            ready=ready,
            dual_stack=simulation.dual_stack,
            endpoint=simulation.endpoint,
            version=simulation.kubelet_version,
        )


class Nodes:
    """A Source: every node, when the kubelets start and when its state changes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    async def start(self, queue: Queue) -> None:
        for name in self._simulation.nodes:
            queue.add(Request("", name))

        def changed(name: str) -> None:
            queue.add(Request("", name))

        self._changed = changed
        self._simulation.node_changed.append(changed)

    async def wait_for_sync(self) -> None:
        """Returns when the informers have their first lists."""

    def stop(self) -> None:
        self._simulation.node_changed.remove(self._changed)
