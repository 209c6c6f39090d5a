"""Claims stay as long as pods use them, and say since when none does.

Upstream: pkg/controller/volume/pvcprotection/pvc_protection_controller.go.
"""

from collections.abc import Callable, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.conditions import find_condition, set_status_condition
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
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_UNUSED: Final = "Unused"
# By the condition's status.
_REASONS: Final = {
    "True": ("NoPodsUsingPVC", "No pods are currently referencing this PVC"),
    "False": ("PodUsingPVC", "A pod is currently referencing this PVC"),
}


class ClaimProtection:
    """Requests are claims."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._notes_use = context.configuration.feature_gates.enabled("PersistentVolumeClaimUnusedSinceTime")
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self.pods = context.informer(PODS)
        self._pods_by_claim = add_pod_pvc_indexer(self.pods)
        self._client = context.client.resource(PERSISTENT_VOLUME_CLAIMS)
        self._protection = Protection(
            PVC_PROTECTION, self.claims.indexer, self._client.namespaced, self._prevents_deletion
        )

    def claim_changed(self, event: Event, queue: Queue) -> None:
        """Queues a claim that lacks its protection or its condition, or that waits for its end."""
        self._protection.changed(event, queue)
        claim = object_of(event)
        if self._notes_use and not isinstance(event, DeleteEvent) and _unused(claim) is None:
            queue.add(request_for(claim))

    def pod_changed(self, event: Event, queue: Queue) -> None:
        """Queues the claims of a pod that may have been the last to use them; with the condition, those of every pod."""
        if isinstance(event, UpdateEvent):
            old, new = event.object_old, event.object_new
            self._enqueue(new, queue, deleted=False)
            if old["metadata"]["uid"] != new["metadata"]["uid"]:
                self._enqueue(old, queue, deleted=True)
        else:
            self._enqueue(event.object, queue, deleted=isinstance(event, DeleteEvent))

    def _enqueue(self, pod: Object, queue: Queue, *, deleted: bool) -> None:
        if self._notes_use or deleted or has_pod_ended(pod) or not pod["spec"].get("nodeName"):
            for claim in claims_of(pod):
                queue.add(claim)

    async def reconcile(self, request: Request) -> None:
        claim = self.claims.indexer.get_by_key(str(request))
        if claim is None:
            return
        # the binder writes the status of a claim that isn't bound yet
        is_bound = (claim.get("status") or {}).get("phase") == "Bound"
        if self._notes_use and is_bound and not is_terminating(claim):
            await self._note_use(claim)
        await self._protection.reconcile(request)

    async def _note_use(self, claim: Object) -> None:
        """Sets the condition Unused if it is missing or says the opposite."""
        is_used, status = await self._is_used(claim, _refers_to), _unused(claim)
        if is_used and status in (None, "True"):
            await self._set_unused(claim, "False")
        elif not is_used and status != "True":
            await self._set_unused(claim, "True")

    async def _set_unused(self, claim: Object, status: str) -> None:
        reason, message = _REASONS[status]
        conditions = set_status_condition(
            claim["status"].get("conditions"), _UNUSED, status, reason, self._context.clock.now(), message=message
        )
        client = self._client.namespaced(claim["metadata"]["namespace"])
        await client.update_status({**claim, "status": {**claim["status"], "conditions": conditions}})

    async def _prevents_deletion(self, claim: Object) -> bool:
        return await self._is_used(claim, _uses)

    async def _is_used(self, claim: Object, uses: Callable[[Object, Object], bool]) -> bool:
        """The server is asked, as the informer may not have heard of a pod yet."""
        metadata = claim["metadata"]
        cached = self._pods_by_claim.by_index(POD_PVC_INDEX, f"{metadata['namespace']}/{metadata['name']}")
        if any(uses(pod, claim) for pod in cached):
            return True
        live = await self._context.client.resource(PODS, metadata["namespace"]).list()
        return any(uses(pod, claim) for pod in live["items"])


def _unused(claim: Object) -> str | None:
    """Returns the status of the claim's condition Unused, or None without one."""
    condition = find_condition((claim.get("status") or {}).get("conditions"), _UNUSED)
    return None if condition is None else condition["status"]


def _uses(pod: Object, claim: Object) -> bool:
    """On some node. What was made for the pod isn't used any more once the pod is shut down."""
    return bool(pod["spec"].get("nodeName")) and _names(pod, claim, counts_own=not _is_shut_down(pod))


def _refers_to(pod: Object, claim: Object) -> bool:
    """Reports whether a pod that has not ended has the claim among its volumes, scheduled or not."""
    return not has_pod_ended(pod) and _names(pod, claim, counts_own=True)


def _names(pod: Object, claim: Object, *, counts_own: bool) -> bool:
    """Reports whether a volume of the pod is the claim. `counts_own`: claims that were made for the pod count."""
    name = claim["metadata"]["name"]
    for volume in pod["spec"].get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
            return True
        own = volume.get("ephemeral") is not None and f"{pod['metadata']['name']}-{volume['name']}" == name
        if own and counts_own and is_for_pod(pod, claim):
            return True
    return False


def _is_shut_down(pod: Object) -> bool:
    return is_terminating(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ClaimProtection(context)
    controller = context.controller(reconciler)
    controller.add_source(Informer(reconciler.claims, reconciler.claim_changed))
    controller.add_source(Informer(reconciler.pods, reconciler.pod_changed))
    return [controller]
