"""Claims stay as long as pods use them (upstream: pkg/controller/volume/pvcprotection/pvc_protection_controller.go)."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import PERSISTENT_VOLUME_CLAIMS, PODS, is_terminating
from fakeapiserver.component_helpers.volumes.pod_volumes import (
    POD_PVC_INDEX,
    add_pod_pvc_indexer,
    claims_of,
    has_pod_ended,
    is_for_pod,
)
from fakeapiserver.component_helpers.volumes.protection import PVC_PROTECTION, Protection
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.source import Informer


def _pod_changed(event: Event, queue: Queue) -> None:
    """Queues the claims of a pod that may have been the last to use them."""
    if isinstance(event, UpdateEvent):
        old, new = event.object_old, event.object_new
        _enqueue(new, queue, deleted=False)
        if old["metadata"]["uid"] != new["metadata"]["uid"]:
            _enqueue(old, queue, deleted=True)
    else:
        _enqueue(event.object, queue, deleted=isinstance(event, DeleteEvent))


def _enqueue(pod: Object, queue: Queue, *, deleted: bool) -> None:
    if deleted or has_pod_ended(pod) or not pod["spec"].get("nodeName"):
        for claim in claims_of(pod):
            queue.add(claim)


def _uses(pod: Object, claim: Object) -> bool:
    """On some node. What was made for the pod isn't used any more once the pod is shut down."""
    if not pod["spec"].get("nodeName"):
        return False
    name = claim["metadata"]["name"]
    for volume in pod["spec"].get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
            return True
        own = volume.get("ephemeral") is not None and f"{pod['metadata']['name']}-{volume['name']}" == name
        if own and not _is_shut_down(pod) and is_for_pod(pod, claim):
            return True
    return False


def _is_shut_down(pod: Object) -> bool:
    return is_terminating(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def new(context: ControllerContext) -> Sequence[Controller]:
    claims, pods = context.informer(PERSISTENT_VOLUME_CLAIMS), context.informer(PODS)
    indexer = add_pod_pvc_indexer(pods)

    async def is_used(claim: Object) -> bool:
        """The server is asked, as the informer may not have heard of a pod yet."""
        metadata = claim["metadata"]
        cached = indexer.by_index(POD_PVC_INDEX, f"{metadata['namespace']}/{metadata['name']}")
        if any(_uses(pod, claim) for pod in cached):
            return True
        live = await context.client.resource(PODS, metadata["namespace"]).list()
        return any(_uses(pod, claim) for pod in live["items"])

    client = context.client.resource(PERSISTENT_VOLUME_CLAIMS)
    protection = Protection(PVC_PROTECTION, claims.indexer, client.namespaced, is_used)
    controller = context.controller(protection)
    controller.add_source(Informer(claims, protection.changed))
    controller.add_source(Informer(pods, _pod_changed))
    return [controller]
