"""A node's own managers: evictions under pressure, and the graceful shutdown.

Upstream: pkg/kubelet/eviction/eviction_manager.go, pkg/kubelet/nodeshutdown.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES, PODS
from fakeapiserver.component_helpers.pods import POD_NODE_NAME_INDEX, add_pod_node_name_indexer
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.nodes.behaviour import Behaviours
from fakeapiserver.nodes.pod_lifecycle.admission import is_critical
from fakeapiserver.nodes.pod_lifecycle.eviction import (
    GRACE_SECONDS,
    INTERVAL_SECONDS,
    PRESSURES,
    TRANSITION_SECONDS,
    Usage,
    message,
    ranked,
)
from fakeapiserver.nodes.pod_lifecycle.pod_conditions import TERMINAL
from fakeapiserver.nodes.pod_lifecycle.termination import Stop
from fakeapiserver.nodes.simulation import NodeState, Simulation

_SHUTDOWN: Final = "Pod was terminated in response to imminent node shutdown."
# Why a pod is to end; False: it ends already.
StopPod = Callable[[Object, Stop], bool]


class EvictionManager:
    """Evicts one pod after the other from a node that runs low. Requests are nodes."""

    def __init__(self, context: ControllerContext, simulation: Simulation, stop: StopPod) -> None:
        self._context = context
        self._simulation = simulation
        self._stop = stop
        self._pods = add_pod_node_name_indexer(context.informer(PODS))
        self._nodes = context.informer(NODES)

    async def reconcile(self, request: Request) -> Result | None:
        state, now = self._simulation.nodes[request.name], self._context.clock.now()
        if not state.low or not state.runs:
            return None
        resource = next(name for name in PRESSURES if name in state.low)
        pressure = PRESSURES[resource]
        recorder = self._context.recorder("kubelet", state.name)
        if (node := self._nodes.indexer.get_by_key(state.name)) is not None:
            recorder.event(node, "Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}")
        pods = [pod for pod in active_pods(self._pods, state) if not is_critical(pod)]
        usage = {pod["metadata"]["uid"]: _usage(pod, self._simulation.behaviours) for pod in pods}
        for pod in ranked(pods, pressure, usage):
            told = message(pod, pressure, usage[pod["metadata"]["uid"]])
            if self._stop(pod, Stop(now, GRACE_SECONDS, "Evicted", told, told)):
                recorder.event(pod, "Warning", "Evicted", told)
                self._count(state, resource, now)
                break
        return Result(requeue_after=INTERVAL_SECONDS)

    @staticmethod
    def _count(state: NodeState, resource: str, now: float) -> None:
        left = state.low[resource]
        if left is None:
            return
        state.low[resource] = left - 1
        if left <= 1:
            del state.low[resource]
            state.lasting[resource] = now + TRANSITION_SECONDS


class ShutdownManager:
    """Ends all pods of a node that is shutting down, critical ones last. Requests are nodes."""

    def __init__(self, context: ControllerContext, simulation: Simulation, stop: StopPod) -> None:
        self._context = context
        self._simulation = simulation
        self._stop = stop
        self._pods = add_pod_node_name_indexer(context.informer(PODS))

    async def reconcile(self, request: Request) -> Result | None:
        state, now = self._simulation.nodes[request.name], self._context.clock.now()
        shutdown = state.shutdown
        if shutdown is None or not state.runs:
            return None
        pods = [*active_pods(self._pods, state)]
        groups = [[pod for pod in pods if is_critical(pod) == critical] for critical in (False, True)]
        graces = (shutdown.grace - shutdown.critical_grace, shutdown.critical_grace)
        while shutdown.stage == 0 or now >= shutdown.until or not groups[shutdown.stage - 1]:
            if shutdown.stage == len(groups):
                state.runs = False
                return None
            group, most = groups[shutdown.stage], graces[shutdown.stage]
            shutdown.stage, shutdown.until = shutdown.stage + 1, now + most
            for pod in group:
                own = pod["spec"].get("terminationGracePeriodSeconds")
                grace = most if own is None else min(most, float(own))
                self._stop(pod, Stop(now, grace, "Terminated", _SHUTDOWN, _SHUTDOWN))
        return Result(requeue_after=max(shutdown.until - now, 0.001))


def active_pods(pods: Indexer, state: NodeState) -> Iterator[Object]:
    """Yields the node's pods that haven't ended; `pods` has POD_NODE_NAME_INDEX."""
    for pod in pods.by_index(POD_NODE_NAME_INDEX, state.name):
        if (pod.get("status") or {}).get("phase") not in TERMINAL:
            yield pod


def _usage(pod: Object, behaviours: Behaviours) -> Usage:
    return {spec["name"]: behaviours.of(pod, spec["name"], main=True).usage for spec in pod["spec"]["containers"]}
