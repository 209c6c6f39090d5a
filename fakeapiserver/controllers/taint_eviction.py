"""Deletes pods that don't tolerate their node's NoExecute taints, when their time is over.

Upstream: pkg/controller/tainteviction/taint_eviction.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.conditions import Condition, pod_condition_patch
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES, PODS
from fakeapiserver.component_helpers.pods import POD_NODE_NAME_INDEX, add_pod_node_name_indexer
from fakeapiserver.component_helpers.scheduling import tolerates
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

_WORKERS: Final = 8
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)
_REASON: Final = "TaintManagerEviction"
_DELETED: Final[Condition] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class TaintEviction:
    """Requests are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder(context.name)
        # When those that wait for their time have begun to.
        self._since: dict[Request, float] = {}
        name = "taint_eviction_controller_pod_deletion"
        self._deletions = context.metrics.counter(f"{name}s_total", "Pods that were deleted")
        self._deletion_seconds = context.metrics.histogram(
            f"{name}_duration_seconds", "From when a pod's time was over until it was deleted", _BUCKETS
        )
        self.nodes = context.informer(NODES)
        self.pods = context.informer(PODS)
        add_pod_node_name_indexer(self.pods)

    def node_changed(self, event: Event, queue: Queue) -> None:
        """Its taints did."""
        if isinstance(event, DeleteEvent):
            return
        node = object_of(event)
        if isinstance(event, UpdateEvent) and _taints(event.object_old) == _taints(node):
            return
        for pod in self.pods.indexer.by_index(POD_NODE_NAME_INDEX, node["metadata"]["name"]):
            queue.add(Request(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues a pod that was bound to a node or has new tolerations."""
        pod = object_of(event)
        if isinstance(event, UpdateEvent):
            old, new = event.object_old["spec"], pod["spec"]
            if all(old.get(name) == new.get(name) for name in ("nodeName", "tolerations")):
                return
        queue.add(Request(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    async def reconcile(self, request: Request) -> Result | None:
        pod = self.pods.indexer.get_by_key(str(request))
        node = self.nodes.indexer.get_by_key(pod["spec"].get("nodeName", "")) if pod is not None else None
        taints = _taints(node) if node is not None else ()
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            self._since.pop(request, None)
            return None
        if not taints:
            self._cancel(request, pod)
            return None
        seconds = _tolerated_seconds(taints, pod["spec"].get("tolerations") or ())
        if seconds is None:
            self._cancel(request, pod)
            return None
        now = self._context.clock.now()
        left = self._since.setdefault(request, now) + seconds - now if seconds > 0 else 0.0
        if left > 0:
            return Result(requeue_after=left)
        if await self._delete(request, pod):
            self._deletions.inc()
            self._deletion_seconds.observe(-left)
        self._since.pop(request, None)
        return None

    def _cancel(self, request: Request, pod: Object) -> None:
        if self._since.pop(request, None) is not None:
            self._recorder.event(pod, "Normal", _REASON, f"Cancelling deletion of Pod {request}")

    async def _delete(self, request: Request, pod: Object) -> bool:
        """False: it is gone already."""
        self._recorder.event(pod, "Normal", _REASON, f"Marking for deletion Pod {request}")
        pods = self._context.client.resource(PODS, request.namespace)
        status = pod_condition_patch(pod, _DELETED, self._context.clock.now())
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            if status:
                await pods.patch(request.name, patch, "status", patch_type=STRATEGIC_MERGE_PATCH)
            await pods.delete(request.name)
        except StatusError as error:
            if not is_not_found(error):
                raise
            return False
        return True


def _taints(node: Object) -> Sequence[Mapping[str, Any]]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]


def _tolerated_seconds(taints: Sequence[Mapping[str, Any]], tolerations: Sequence[Mapping[str, Any]]) -> float | None:
    """Returns the seconds for which all taints are tolerated, or None if for ever."""
    used = [[toleration for toleration in tolerations if tolerates([toleration], taint)] for taint in taints]
    if not all(used):
        return 0.0
    limits = [
        float(toleration["tolerationSeconds"])
        for used_toleration in used
        for toleration in used_toleration
        if toleration.get("tolerationSeconds") is not None
    ]
    return max(min(limits), 0.0) if limits else None


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = TaintEviction(context)
    controller = context.controller(reconciler, workers=_WORKERS)
    controller.add_source(Informer(reconciler.nodes, reconciler.node_changed))
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    return [controller]
