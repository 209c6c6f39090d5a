"""Deletes pods that no other controller deletes (upstream: pkg/controller/podgc/gc_controller.go).

They are: ended pods beyond the threshold; pods on nodes that are gone or out of service; pods that are being deleted
and were never bound.
Upstream checks every 20 s; here checks happen at the same times, but only after a change that could make work.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, TransportError, is_not_found
from fakeapiserver.component_helpers.conditions import Condition, find_condition, pod_condition_patch
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import NODES, PODS, is_terminating
from fakeapiserver.component_helpers.pods import (
    POD_NODE_NAME_INDEX,
    add_pod_node_name_indexer,
    is_pod_terminal,
    pod_phase,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

log = logging.getLogger(__name__)

_PERIOD: Final = 20.0
# Seconds that a node may be missing.
_QUARANTINE: Final = 40.0
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_ALIVE: Final = ("Pending", "Running", "Unknown")
_ORPHANED: Final[Condition] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class PodGCController:
    """The one request is EVERYTHING."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._threshold = context.configuration.terminated_pod_gc_threshold
        self._start = context.clock.monotonic()
        # Nodes that don't exist although pods are bound to them, and the time when their pods may be deleted.
        self._missing: dict[str, float] = {}
        labels, name = ("namespace", "reason"), "pod_gc_collector_force_delete_pod"
        self._deleted = context.metrics.counter(f"{name}s_total", "Pods that were deleted at once", *labels)
        self._failed = context.metrics.counter(f"{name}_errors_total", "Pods that could not be deleted", *labels)
        self.nodes = context.informer(NODES)
        self.pods = context.informer(PODS)
        self._pods = add_pod_node_name_indexer(self.pods)

    # -------------------------------------------------------------------------- what happened

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Schedules a check for a pod that may have to be deleted."""
        if isinstance(event, DeleteEvent):
            return
        pod = object_of(event)
        node = pod["spec"].get("nodeName")
        known = self.nodes.indexer.get_by_key(node) if node else None
        if (
            (is_terminating(pod) and (not node or (known is not None and _is_out_of_service(known))))
            or (node and known is None)
            or (self._threshold > 0 and pod_phase(pod) not in _ALIVE)
        ):
            self._look_in_time(queue)

    def node_changed(self, event: Event, queue: Queue) -> None:
        """Schedules a check for the pods of a node that is gone or out of service."""
        node = object_of(event)
        if (isinstance(event, DeleteEvent) or _is_out_of_service(node)) and self._pods.index_keys(
            POD_NODE_NAME_INDEX, node["metadata"]["name"]
        ):
            self._look_in_time(queue)

    def _look_in_time(self, queue: Queue) -> None:
        queue.add_after(EVERYTHING, self._until_next())

    def _until_next(self) -> float:
        return _PERIOD - (self._clock.monotonic() - self._start) % _PERIOD

    # -------------------------------------------------------------------------------- a look

    async def reconcile(self, request: Request) -> Result | None:
        pods = self.pods.indexer.list()
        failed = False
        if self._threshold > 0:
            failed |= not await self._delete(self._terminated(pods), "terminated")
        failed |= not await self._delete(self._out_of_service(pods), "out-of-service")
        gone = await self._gone_nodes(pods)
        orphans = [pod for pod in pods if pod["spec"].get("nodeName") in gone]
        failed |= not await self._delete(orphans, "orphaned", _ORPHANED)
        failed |= not await self._delete(
            [pod for pod in pods if is_terminating(pod) and not pod["spec"].get("nodeName")], "unscheduled"
        )
        return Result(requeue_after=self._until_next()) if failed or self._missing else None

    def _terminated(self, pods: Iterable[Object]) -> Sequence[Object]:
        """Returns the ended pods beyond the threshold: evicted ones first, then the oldest."""
        ended = [pod for pod in pods if pod_phase(pod) not in _ALIVE]
        excess = len(ended) - self._threshold
        return sorted(ended, key=_eviction_order)[:excess] if excess > 0 else ()

    def _out_of_service(self, pods: Iterable[Object]) -> Sequence[Object]:
        nodes = self.nodes.indexer
        out_of_service = [
            pod
            for pod in pods
            if is_terminating(pod)
            and (node := nodes.get_by_key(pod["spec"].get("nodeName", ""))) is not None
            and _is_out_of_service(node)
        ]
        return sorted(out_of_service, key=_eviction_order)

    async def _gone_nodes(self, pods: Iterable[Object]) -> set[str]:
        """Names of nodes that pods are bound to, that were missing long enough, and that the server doesn't have either."""
        nodes, now = self.nodes.indexer, self._clock.monotonic()
        bound = {pod["spec"].get("nodeName", "") for pod in pods} - {""}
        missing = {name for name in bound if nodes.get_by_key(name) is None}
        self._missing = {name: self._missing.get(name, now + _QUARANTINE) for name in missing}
        gone: set[str] = set()
        for name in [name for name, due in self._missing.items() if due <= now]:
            del self._missing[name]  # if it is still needed, it is missing from now on
            try:
                await self._client.resource(NODES).get(name)
            except StatusError as error:
                if is_not_found(error):
                    gone.add(name)
                else:
                    self._missing[name] = now + _QUARANTINE
        return gone

    async def _delete(self, pods: Iterable[Object], reason: str, condition: Condition | None = None) -> bool:
        """Now, and so that they are seen to have failed; `reason` in the words of metrics. Whether all of it was done."""
        done = True
        for pod in pods:
            try:
                await self._delete_one(pod, condition)
                self._deleted.labels(pod["metadata"]["namespace"], reason).inc()
            except (StatusError, TransportError, TimeoutError) as error:
                if not (isinstance(error, StatusError) and is_not_found(error)):
                    self._failed.labels(pod["metadata"]["namespace"], reason).inc()
                    log.warning("failed to delete pod %s: %s", pod["metadata"]["name"], error)
                    done = False
        return done

    async def _delete_one(self, pod: Object, condition: Condition | None) -> None:
        metadata = pod["metadata"]
        resource = self._client.resource(PODS, metadata["namespace"])
        if not is_pod_terminal(pod):
            status: dict[str, Any] = {"phase": "Failed"}
            if generation := metadata.get("generation"):
                status["observedGeneration"] = generation
            if condition is not None:
                status |= pod_condition_patch(pod, condition, self._clock.now())
            patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
            await resource.patch(metadata["name"], patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
        await resource.delete(metadata["name"], grace_period_seconds=0)


def _is_out_of_service(node: Object) -> bool:
    """Reports whether the node has the taint out-of-service and isn't ready."""
    ready = find_condition((node.get("status") or {}).get("conditions"), "Ready")
    if ready is not None and ready["status"] == "True":
        return False
    return any(taint["key"] == _OUT_OF_SERVICE for taint in node["spec"].get("taints") or ())


def _eviction_order(pod: Object) -> tuple[bool, str, str]:
    status = pod["status"]
    evicted = status.get("phase") == "Failed" and status.get("reason") == "Evicted"
    return not evicted, pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = PodGCController(context)
    controller = context.controller(reconciler)
    controller.add_source(Periodic())
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    controller.add_source(Informer(reconciler.nodes, reconciler.node_changed))
    return [controller]
