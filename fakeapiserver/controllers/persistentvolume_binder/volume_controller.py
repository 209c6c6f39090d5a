"""The volumes: released, deleted or available."""

import re
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.objects import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
)
from fakeapiserver.component_helpers.volumes.csi_migration import MIGRATED_TO, annealed
from fakeapiserver.component_helpers.volumes.matching import (
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    annotations_of,
    claim_of,
    differ_in_mode,
)
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controllers.persistentvolume_binder.binder import (
    IN_TREE,
    IN_TREE_PROTECTION,
    OPEN_PHASES,
    Binder,
    is_free,
    protection,
    reclaim_policy,
    with_annotations,
)

_DELETABLE_PATH: Final = re.compile("/tmp/.+")


class VolumeController:
    """Requests are volumes."""

    def __init__(self, binder: Binder, claim_queue: Queue) -> None:
        self._binder = binder
        self._claim_queue = claim_queue

    def volume_changed(self, event: Event, queue: Queue) -> None:
        """Queues the volume, the claim of a deleted volume, and claims that may wait for a free one."""
        enqueue(event, queue)
        obj = object_of(event)
        if isinstance(event, DeleteEvent):
            if obj["spec"].get("claimRef") is not None:
                self._claim_queue.add(claim_of(obj))
        elif is_free(obj) and not (isinstance(event, UpdateEvent) and is_free(event.object_old)):
            for claim in self._binder.waiting_claims(obj):
                self._claim_queue.add(claim)

    async def reconcile(self, request: Request) -> None:
        volume = self._binder.volumes.get(request.name)
        if volume is None:
            return
        volume = await self._anneal(volume)
        if not (volume["spec"].get("claimRef") or {}).get("uid"):
            await self._binder.set_phase(volume, "Available")
            return
        claim = await self._claim(volume)
        if claim is None:
            await self._release(volume)
        elif not claim["spec"].get("volumeName"):
            self._sync_to_unbound(volume, claim)
        elif claim["spec"]["volumeName"] == volume["metadata"]["name"]:
            await self._binder.set_phase(volume, "Bound")
        elif PROVISIONED_BY in annotations_of(volume) and reclaim_policy(volume) == "Delete":
            await self._release(volume)
        else:
            await self._unbind(volume)

    async def _anneal(self, volume: Object) -> Object:
        annotations = annotations_of(volume)
        right = annealed(annotations, annotations.get(PROVISIONED_BY))
        finalizers: Sequence[str] = volume["metadata"].get("finalizers") or ()
        kept = protection(finalizers, annotations.get(PROVISIONED_BY), reclaim_policy(volume))
        if right is annotations and [*finalizers] == kept:
            return volume
        annealed_volume = with_annotations(volume, right)
        annealed_volume["metadata"]["finalizers"] = kept
        return await self._binder.update_volume(annealed_volume)

    async def _claim(self, volume: Object) -> Object | None:
        """The very claim that the volume names; the server is asked before a volume is given up."""
        request, uid = claim_of(volume), volume["spec"]["claimRef"]["uid"]
        claim = self._binder.claims.get(str(request))
        open_phase = volume.get("status", {}).get("phase") in OPEN_PHASES
        if (claim is None and not open_phase) or (claim is not None and claim["metadata"]["uid"] != uid):
            try:
                claim = await self._binder.client.resource(PERSISTENT_VOLUME_CLAIMS, request.namespace).get(
                    request.name
                )
            except StatusError as error:
                if not is_not_found(error):
                    raise
                return None
        return claim if claim is not None and claim["metadata"]["uid"] == uid else None

    def _sync_to_unbound(self, volume: Object, claim: Object) -> None:
        if not differ_in_mode(claim, volume):
            self._claim_queue.add(request_for(claim))
            return
        why = "due to incompatible volumeMode."
        own, other = volume["metadata"]["name"], claim["metadata"]["name"]
        message = f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{other}" {why}'
        self._binder.recorder.event(volume, "Warning", "VolumeMismatch", message)
        message = f'Cannot bind PersistentVolume "{own}" to requested PersistentVolumeClaim {why}'
        self._binder.recorder.event(claim, "Warning", "VolumeMismatch", message)

    async def _release(self, volume: Object) -> None:
        if volume.get("status", {}).get("phase") not in OPEN_PHASES:
            volume = await self._binder.set_phase(volume, "Released")
        if annotations_of(volume).get(MIGRATED_TO):
            return
        match reclaim_policy(volume):
            case "Delete":
                await self._delete(volume)
            case "Recycle" if not {"hostPath", "nfs"} & volume["spec"].keys():
                await self._binder.fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")

    async def _delete(self, volume: Object) -> None:
        problem = _deletion_problem(volume)
        if problem is None:
            return
        if problem:
            await self._binder.fail(volume, "VolumeFailedDelete", problem)
            return
        finalizers = volume["metadata"].get("finalizers") or ()
        if IN_TREE_PROTECTION in finalizers:
            kept = [name for name in finalizers if name != IN_TREE_PROTECTION]
            volume = await self._binder.update_volume(
                {**volume, "metadata": {**volume["metadata"], "finalizers": kept}}
            )
        try:
            await self._binder.client.resource(PERSISTENT_VOLUMES).delete(volume["metadata"]["name"])
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _unbind(self, volume: Object) -> None:
        """Frees a volume that this controller bound; a volume that a user reserved for a claim stays reserved."""
        annotations, spec = annotations_of(volume), {**volume["spec"]}
        if BOUND_BY_CONTROLLER in annotations:
            del spec["claimRef"]
            annotations = {name: value for name, value in annotations.items() if name != BOUND_BY_CONTROLLER}
        else:
            spec["claimRef"] = {name: value for name, value in spec["claimRef"].items() if name != "uid"}
        volume = await self._binder.update_volume({**with_annotations(volume, annotations), "spec": spec})
        await self._binder.set_phase(volume, "Available")


def _deletion_problem(volume: Object) -> str | None:
    """Returns why the volume can't be deleted; "" if it can be; None if another component deletes it."""
    provisioner = annotations_of(volume).get(PROVISIONED_BY)
    spec, name = volume["spec"], volume["metadata"]["name"]
    if provisioner:
        if not provisioner.startswith(IN_TREE):
            return None
        if provisioner != "kubernetes.io/host-path":
            return f"no volume plugin matched name: {provisioner}"
    elif "csi" in spec:
        return None
    elif "nfs" in spec:
        return f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
    elif "hostPath" not in spec:
        return f'error getting deleter volume plugin for volume "{name}": no volume plugin matched'
    path = (spec.get("hostPath") or {}).get("path", "")
    if _DELETABLE_PATH.search(path):
        return ""
    return f"host_path deleter only supports /tmp/.+ but received provided {path}"
