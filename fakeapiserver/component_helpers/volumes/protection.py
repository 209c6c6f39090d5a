"""A finalizer that keeps objects as long as they are used (upstream: pkg/controller/util/protectionutil)."""

from collections.abc import Awaitable, Callable
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.dynamic import ResourceClient
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request

PVC_PROTECTION: Final = "kubernetes.io/pvc-protection"
PV_PROTECTION: Final = "kubernetes.io/pv-protection"
VAC_PROTECTION: Final = "kubernetes.io/vac-protection"


class Protection:
    """Keeps the objects of one resource while they are used.

    client: makes the resource's client for a namespace. is_used: whether an object is still needed.
    """

    def __init__(
        self,
        finalizer: str,
        objects: Indexer,
        client: Callable[[str], ResourceClient],
        is_used: Callable[[Object], Awaitable[bool]],
    ) -> None:
        self._finalizer = finalizer
        self._objects = objects
        self._client = client
        self._is_used = is_used

    def changed(self, event: Event, queue: Queue) -> None:
        """Queues the object if it has no protection yet, or waits for it to end."""
        obj = object_of(event)
        if not isinstance(event, DeleteEvent) and is_terminating(obj) == self._is_protected(obj):
            queue.add(request_for(obj))

    def _is_protected(self, obj: Object) -> bool:
        return self._finalizer in (obj["metadata"].get("finalizers") or ())

    async def reconcile(self, request: Request) -> None:
        obj = self._objects.get_by_key(str(request))
        if obj is None or is_terminating(obj) != self._is_protected(obj):
            return
        finalizers = obj["metadata"].get("finalizers") or []
        if not is_terminating(obj):
            await self._set_finalizers(obj, [*finalizers, self._finalizer])
        elif not await self._is_used(obj):
            await self._set_finalizers(obj, [name for name in finalizers if name != self._finalizer])

    async def _set_finalizers(self, obj: Object, finalizers: list[str]) -> None:
        metadata = {**obj["metadata"], "finalizers": finalizers}
        await self._client(metadata.get("namespace", "")).update({**obj, "metadata": metadata})
