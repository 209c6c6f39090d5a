"""Annotates nodes with how long they may cache objects: the longer, the more nodes there are (upstream:
pkg/controller/ttl/ttl_controller.go).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from fakeapiserver.client.dynamic import STRATEGIC_MERGE_PATCH
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import NODES, key_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import CreateEvent, DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
_WORKERS: Final = 5


class _Boundary(NamedTuple):
    """Left for the one below with fewer nodes than `least`, for the one above with more than `most`."""

    least: int
    most: float
    seconds: int


_BOUNDARIES: Final = (
    _Boundary(0, 100, 0),
    _Boundary(90, 500, 15),
    _Boundary(450, 1000, 30),
    _Boundary(900, 2000, 60),
    _Boundary(1800, float("inf"), 300),
)


class TTLController:
    """Requests are nodes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client.resource(NODES)
        self.nodes = context.informer(NODES)
        self._count = 0
        self._step = 0

    def node_changed(self, event: Event, queue: Queue) -> None:
        """Nodes learn of another size of the cluster when they next change, as all do now and then."""
        if isinstance(event, DeleteEvent):
            self._count -= 1
            self._step -= self._count < _BOUNDARIES[self._step].least
            return
        if isinstance(event, CreateEvent):
            self._count += 1
            self._step += self._count > _BOUNDARIES[self._step].most
        obj = object_of(event)
        queue.add(Request("", key_of(obj)))

    async def reconcile(self, request: Request) -> None:
        node = self.nodes.indexer.get_by_key(request.name)
        if node is None:
            return
        wanted = str(_BOUNDARIES[self._step].seconds)
        if (node["metadata"].get("annotations") or {}).get(_ANNOTATION) != wanted:
            change = {"metadata": {"annotations": {_ANNOTATION: wanted}}}
            await self._client.patch(request.name, change, patch_type=STRATEGIC_MERGE_PATCH)


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = TTLController(context)
    controller = context.controller(reconciler, workers=_WORKERS)
    controller.add_source(Informer(reconciler.nodes, reconciler.node_changed))
    return [controller]
