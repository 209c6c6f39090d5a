"""The claims: bound, provisioned or lost."""

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.record import object_reference
from fakeapiserver.component_helpers.objects import (
    PERSISTENT_VOLUME_CLAIMS,
    key_of,
)
from fakeapiserver.component_helpers.volumes.csi_migration import DRIVERS, annealed
from fakeapiserver.component_helpers.volumes.matching import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    annotations_of,
    best_match,
    claim_of,
    class_of,
    default_class,
    has_class,
    is_bound_to,
    why_not,
)
from fakeapiserver.component_helpers.volumes.pod_volumes import POD_PVC_INDEX, has_pod_ended
from fakeapiserver.controller_runtime.event import DeleteEvent, Event
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controllers.persistentvolume_binder.binder import (
    IN_TREE,
    Binder,
    InvalidBinding,
    capacity_of,
    with_annotations,
)


class ClaimController:
    """Requests are claims."""

    def __init__(self, binder: Binder, *, provisions: bool) -> None:
        self._binder = binder
        self._provisions = provisions
        self.volume_queue: Queue | None = None

    def claim_changed(self, event: Event, queue: Queue) -> None:
        """Queues the claim, and the volume of a deleted claim."""
        enqueue(event, queue)
        name = event.object["spec"].get("volumeName") if isinstance(event, DeleteEvent) else None
        if name and self.volume_queue is not None:
            self.volume_queue.add(Request("", name))

    async def reconcile(self, request: Request) -> None:
        claim = self._binder.claims.get(str(request))
        if claim is None:
            return
        annotations = annotations_of(claim)
        provisioner = annotations.get(STORAGE_PROVISIONER, annotations.get(BETA_STORAGE_PROVISIONER))
        right = annealed(annotations, provisioner)
        if right is not annotations:
            claim = await self._binder.update_claim(with_annotations(claim, right))
        if BIND_COMPLETED in annotations:
            await self._sync_bound(claim)
        elif claim["spec"].get("volumeName"):
            await self._sync_to_named_volume(claim)
        else:
            await self._sync_unbound(claim)

    # -------------------------------------------------------------------- unbound claims

    async def _sync_unbound(self, claim: Object) -> None:
        delays = self._binder.delays_binding(claim)
        volume = best_match(claim, self._binder.volumes.list(), delay_binding=delays)
        if volume is not None:
            await self._bind(volume, claim)
            return
        if not has_class(claim) and (default := default_class(self._binder.classes.list())) is not None:
            spec = {**claim["spec"], "storageClassName": default["metadata"]["name"]}
            claims = self._binder.client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])
            await claims.update({**claim, "spec": spec})
            return
        if delays and SELECTED_NODE not in annotations_of(claim):
            reason, message = self._waits_for(claim)
            self._tell(claim, reason, message)
        elif class_of(claim):
            await self._provision(claim)
            return
        else:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._tell(claim, "FailedBinding", message)
        await self._set_status(claim, "Pending", None)

    def _waits_for(self, claim: Object) -> tuple[str, str]:
        """(reason, message): what a claim whose volume is to be near its pod waits for."""
        names = [
            pod["metadata"]["name"]
            for pod in self._binder.pods.by_index(POD_PVC_INDEX, key_of(claim))
            if not pod["spec"].get("nodeName") and not has_pod_ended(pod)
        ]
        if not names:
            return "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        return "WaitForPodScheduled", f"waiting for pod{'s' * (len(names) > 1)} {','.join(names)} to be scheduled"

    async def _provision(self, claim: Object) -> None:
        """Asks the provisioner of the storage class for a volume: Kubernetes itself creates none any more."""
        if not self._provisions:
            return
        name = class_of(claim)
        storage_class = self._binder.classes.get_by_key(name)
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{name}" not found'
            self._tell(claim, "ProvisioningFailed", message, "Warning")
            return
        provisioner: str = storage_class["provisioner"]
        driver = DRIVERS.get(provisioner)
        if driver is None and provisioner.startswith(IN_TREE):
            message = f"no volume plugin matched name: {provisioner}"
            self._tell(claim, "ProvisioningFailed", message, "Warning")
            return
        provisioner = driver or provisioner
        annotations = annotations_of(claim)
        if annotations.get(STORAGE_PROVISIONER) != provisioner:
            named = {**annotations, BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
            try:
                claim = await self._binder.update_claim(with_annotations(claim, annealed(named, provisioner)))
            except StatusError as error:
                self._tell(claim, "ProvisioningFailed", f"Error saving claim: {error}", "Warning")
                raise
        self._tell(
            claim,
            "ExternalProvisioning",
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' "
            "or manually by the system administrator. If volume creation is delayed, please verify that "
            "the provisioner is running and correctly registered.",
        )

    async def _sync_to_named_volume(self, claim: Object) -> None:
        name = claim["spec"]["volumeName"]
        volume = self._binder.volumes.get(name)
        if volume is None:
            await self._set_status(claim, "Pending", None)
            return
        if volume["spec"].get("claimRef") is None:
            problem = why_not(volume, claim)
            if not problem:
                await self._bind(volume, claim)
                return
            self._tell(claim, "VolumeMismatch", f'Cannot bind to requested volume "{name}": {problem}', "Warning")
        elif is_bound_to(volume, claim):
            await self._bind(volume, claim)
            return
        else:
            self._tell(claim, "FailedBinding", f'volume "{name}" already bound to a different claim.', "Warning")
            if BOUND_BY_CONTROLLER in annotations_of(claim):
                raise InvalidBinding(
                    f'invalid binding of claim "{key_of(claim)}" to volume "{name}": '
                    f'volume already claimed by "{claim_of(volume)}"'
                )
        await self._set_status(claim, "Pending", None)

    # ---------------------------------------------------------------------- bound claims

    async def _sync_bound(self, claim: Object) -> None:
        name = claim["spec"].get("volumeName")
        if not name:
            problem = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            await self._lose(claim, "ClaimLost", problem)
            return
        volume = self._binder.volumes.get(name)
        if volume is None:
            problem = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            await self._lose(claim, "ClaimLost", problem)
            return
        reference = volume["spec"].get("claimRef")
        if reference is None or reference.get("uid") == claim["metadata"]["uid"]:
            await self._bind(volume, claim)
            return
        problem = "Two claims are bound to the same volume, this one is bound incorrectly"
        await self._lose(claim, "ClaimMisbound", problem)

    async def _lose(self, claim: Object, reason: str, message: str) -> None:
        if claim.get("status", {}).get("phase") != "Lost":
            await self._set_status(claim, "Lost", None)
            self._tell(claim, reason, message, "Warning")

    # --------------------------------------------------------------------------- writing

    async def _bind(self, volume: Object, claim: Object) -> None:
        """Binds the volume, then the claim, so that an interrupted binding can be continued."""
        volume = await self._bind_volume(volume, claim)
        volume = await self._binder.set_phase(volume, "Bound")
        claim = await self._bind_claim(claim, volume)
        await self._set_status(claim, "Bound", volume)

    async def _bind_volume(self, volume: Object, claim: Object) -> Object:
        reference, own = volume["spec"].get("claimRef") or {}, claim["metadata"]
        annotations = annotations_of(volume)
        names_it = all(reference.get(key) == own[key] for key in ("name", "namespace", "uid"))
        chosen_here = not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in annotations
        if names_it and not chosen_here:
            return volume
        if chosen_here:
            annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
        spec = volume["spec"] if names_it else {**volume["spec"], "claimRef": object_reference(claim)}
        return await self._binder.update_volume({**with_annotations(volume, annotations), "spec": spec})

    async def _bind_claim(self, claim: Object, volume: Object) -> Object:
        annotations, spec, name = annotations_of(claim), claim["spec"], volume["metadata"]["name"]
        added = {}
        if spec.get("volumeName") != name:
            spec = {**spec, "volumeName": name}
            added[BOUND_BY_CONTROLLER] = "yes"
        added[BIND_COMPLETED] = "yes"
        if spec is claim["spec"] and BIND_COMPLETED in annotations:
            return claim
        return await self._binder.update_claim({**with_annotations(claim, {**added, **annotations}), "spec": spec})

    async def _set_status(self, claim: Object, phase: str, volume: Object | None) -> None:
        before: Object = claim.get("status") or {}
        after = {**before, "phase": phase}
        if volume is None:
            for member in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
                after.pop(member, None)
        else:
            spec = volume["spec"]
            after["accessModes"] = spec.get("accessModes")
            if before.get("phase") != phase:
                after["capacity"] = capacity_of(before.get("capacity"), volume)
                attributes_class = spec.get("volumeAttributesClassName")
                if before.get("phase") == "Pending" and attributes_class is not None:
                    after["currentVolumeAttributesClassName"] = attributes_class
        if after != before:
            claims = self._binder.client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])
            self._binder.claims.put(await claims.update_status({**claim, "status": after}))

    def _tell(self, claim: Object, reason: str, message: str, event_type: str = "Normal") -> None:
        self._binder.recorder.event(claim, event_type, reason, message)
