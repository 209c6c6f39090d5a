"""Claims that want to grow wait for who can do it (upstream: pkg/controller/volume/expand/expand_controller.go).

No plugin of Kubernetes' own can grow a volume any more: CSI's resizers do.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from fakeapiserver.component_helpers.volumes.csi_migration import DRIVERS, PLUGINS
from fakeapiserver.component_helpers.volumes.matching import annotations_of, requested_storage, storage_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_RESIZER: Final = "volume.kubernetes.io/storage-resizer"
_PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
_WORKERS: Final = 10


class NotBound(Exception):
    """The claim's volume is another's."""


class ExpandController:
    """Requests are claims."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self._recorder = context.recorder("volume_expand")

    def claim_changed(self, event: Event, queue: Queue) -> None:
        """A bound one that wants more, or has more than before."""
        if isinstance(event, UpdateEvent):
            old, new = event.object_old, event.object_new
            if requested_storage(new) <= requested_storage(old) and _capacity(new) <= _capacity(old):
                return
        obj = object_of(event)
        if obj.get("status", {}).get("phase") == "Bound":
            queue.add(request_for(obj))

    async def reconcile(self, request: Request) -> None:
        claim = self.claims.indexer.get_by_key(str(request))
        if claim is None:
            return
        volume = await self._client.resource(PERSISTENT_VOLUMES).get(claim["spec"].get("volumeName", ""))
        if (volume["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            raise NotBound(f"persistent Volume is not bound to PVC being updated : {request}")
        if requested_storage(claim) <= _capacity(claim) and _PRE_RESIZE_CAPACITY not in annotations_of(volume):
            return
        plugin = next((PLUGINS[member] for member in volume["spec"] if member in PLUGINS), None)
        if plugin is None:
            message = "waiting for an external controller to expand this PVC"
            self._recorder.event(claim, "Normal", "ExternalExpanding", message)
            return
        message = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
        self._recorder.event(claim, "Normal", "ExternalExpanding", message)
        if annotations_of(claim).get(_RESIZER) != DRIVERS[plugin]:
            change = {"metadata": {"annotations": {_RESIZER: DRIVERS[plugin]}}}
            claims = self._client.resource(PERSISTENT_VOLUME_CLAIMS, request.namespace)
            await claims.patch(request.name, change)


def _capacity(claim: Object) -> Fraction:
    return storage_of(claim.get("status", {}).get("capacity"))


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ExpandController(context)
    controller = context.controller(reconciler, workers=_WORKERS)
    controller.add_source(Informer(reconciler.claims, reconciler.claim_changed))
    return [controller]
