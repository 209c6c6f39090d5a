"""Claims and volumes find each other, stay together, and part (upstream: pkg/controller/volume/persistentvolume).

Volumes that a provisioner of its own makes and deletes are left to it. What Kubernetes itself once deleted, host paths below /tmp, is not
touched: only the volume object goes. Nothing is recycled.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import amount
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.cache.shared_informer import strip_managed_fields
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.client.record import object_reference
from fakeapiserver.clock import Clock
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext
from fakeapiserver.component_helpers.objects import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    is_terminating,
    key_of,
)
from fakeapiserver.component_helpers.volumes.csi_migration import DRIVERS, MIGRATED_TO, annealed
from fakeapiserver.component_helpers.volumes.matching import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    annotations_of,
    best_match,
    claim_of,
    class_of,
    default_class,
    differ_in_mode,
    has_class,
    is_bound_to,
    storage_of,
    why_not,
)
from fakeapiserver.component_helpers.volumes.pod_volumes import POD_PVC_INDEX, add_pod_pvc_indexer, has_pod_ended
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer

_IN_TREE: Final = "kubernetes.io/"
_PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
_EXTERNAL_PROTECTION: Final = "external-provisioner.volume.kubernetes.io/finalizer"
_IN_TREE_PROTECTION: Final = "kubernetes.io/pv-controller"
_DELETABLE_PATH: Final = re.compile("/tmp/.+")
_OPEN_PHASES: Final = ("Released", "Failed")
_AT_REST: Final = ("Available", "Bound")


class InvalidBinding(Exception):
    """A claim that was bound here names a volume that is another's."""


class _Latest:
    """The objects of a resource, as the informer has them or, newer, as they were just written."""

    def __init__(self, informer: Indexer) -> None:
        self._informer = informer
        self._written: dict[str, Object] = {}

    def get(self, key: str) -> Object | None:
        written, seen = self._written.get(key), self._informer.get_by_key(key)
        if written is None or seen is None or _version(seen) >= _version(written):
            self._written.pop(key, None)
            return seen
        return written

    def list(self) -> Iterable[Object]:
        for key in self._informer.list_keys():
            obj = self.get(key)
            if obj is not None:
                yield obj

    def put(self, obj: Object) -> Object:
        """Remembers an object as it was written."""
        self._written[key_of(obj)] = strip_managed_fields(obj)
        return obj


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


class _Binder:
    """The state that both queues share."""

    def __init__(self, context: ControllerContext) -> None:
        self.client = context.client
        self.recorder = context.recorder("persistentvolume-controller")
        self.volume_informer = context.informer(PERSISTENT_VOLUMES)
        self.claim_informer = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self.classes = context.informer(STORAGE_CLASSES).indexer
        self.pods = add_pod_pvc_indexer(context.informer(PODS))
        self.volumes = _Latest(self.volume_informer.indexer)
        self.claims = _Latest(self.claim_informer.indexer)

    async def update_volume(self, volume: Object) -> Object:
        return self.volumes.put(await self.client.resource(PERSISTENT_VOLUMES).update(volume))

    async def update_claim(self, claim: Object) -> Object:
        claims = self.client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])
        return self.claims.put(await claims.update(claim))

    async def set_phase(self, volume: Object, phase: str, message: str = "") -> Object:
        if volume.get("status", {}).get("phase") == phase:
            return volume
        status = {key: value for key, value in volume.get("status", {}).items() if key != "message"}
        status |= {"phase": phase, **({"message": message} if message else {})}
        volumes = self.client.resource(PERSISTENT_VOLUMES)
        return self.volumes.put(await volumes.update_status({**volume, "status": status}))

    async def fail(self, volume: Object, reason: str, message: str) -> None:
        """Says why once."""
        if volume.get("status", {}).get("phase") != "Failed":
            failed = await self.set_phase(volume, "Failed", message)
            self.recorder.event(failed, "Warning", reason, message)

    def waiting_claims(self, volume: Object) -> Iterable[Request]:
        """Yields the claims that a free volume may be for, without those for which the scheduler chooses."""
        for claim in self.claims.list():
            wanted = claim["spec"].get("volumeName", "")
            suits = class_of(claim) == class_of(volume) if not wanted else wanted == volume["metadata"]["name"]
            if not suits or BIND_COMPLETED in annotations_of(claim):
                continue
            if wanted or is_bound_to(volume, claim) or not self.delays_binding(claim):
                yield request_for(claim)

    def delays_binding(self, claim: Object) -> bool:
        """Until a pod with it is scheduled."""
        storage_class = self.classes.get_by_key(class_of(claim))
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


class ClaimController:
    """Requests are claims."""

    def __init__(self, binder: _Binder, *, provisions: bool) -> None:
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
            claim = await self._binder.update_claim(_with_annotations(claim, right))
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
        if driver is None and provisioner.startswith(_IN_TREE):
            message = f"no volume plugin matched name: {provisioner}"
            self._tell(claim, "ProvisioningFailed", message, "Warning")
            return
        provisioner = driver or provisioner
        annotations = annotations_of(claim)
        if annotations.get(STORAGE_PROVISIONER) != provisioner:
            named = {**annotations, BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
            try:
                claim = await self._binder.update_claim(_with_annotations(claim, annealed(named, provisioner)))
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
        return await self._binder.update_volume({**_with_annotations(volume, annotations), "spec": spec})

    async def _bind_claim(self, claim: Object, volume: Object) -> Object:
        annotations, spec, name = annotations_of(claim), claim["spec"], volume["metadata"]["name"]
        added = {}
        if spec.get("volumeName") != name:
            spec = {**spec, "volumeName": name}
            added[BOUND_BY_CONTROLLER] = "yes"
        added[BIND_COMPLETED] = "yes"
        if spec is claim["spec"] and BIND_COMPLETED in annotations:
            return claim
        return await self._binder.update_claim({**_with_annotations(claim, {**added, **annotations}), "spec": spec})

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
                after["capacity"] = _capacity(before.get("capacity"), volume)
                attributes_class = spec.get("volumeAttributesClassName")
                if before.get("phase") == "Pending" and attributes_class is not None:
                    after["currentVolumeAttributesClassName"] = attributes_class
        if after != before:
            claims = self._binder.client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])
            self._binder.claims.put(await claims.update_status({**claim, "status": after}))

    def _tell(self, claim: Object, reason: str, message: str, event_type: str = "Normal") -> None:
        self._binder.recorder.event(claim, event_type, reason, message)


class VolumeController:
    """Requests are volumes."""

    def __init__(self, binder: _Binder, claim_queue: Queue) -> None:
        self._binder = binder
        self._claim_queue = claim_queue

    def volume_changed(self, event: Event, queue: Queue) -> None:
        """Queues the volume, the claim of a deleted volume, and claims that may wait for a free one."""
        enqueue(event, queue)
        obj = object_of(event)
        if isinstance(event, DeleteEvent):
            if obj["spec"].get("claimRef") is not None:
                self._claim_queue.add(claim_of(obj))
        elif _is_free(obj) and not (isinstance(event, UpdateEvent) and _is_free(event.object_old)):
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
        elif PROVISIONED_BY in annotations_of(volume) and _policy(volume) == "Delete":
            await self._release(volume)
        else:
            await self._unbind(volume)

    async def _anneal(self, volume: Object) -> Object:
        annotations = annotations_of(volume)
        right = annealed(annotations, annotations.get(PROVISIONED_BY))
        finalizers: Sequence[str] = volume["metadata"].get("finalizers") or ()
        kept = _protection(finalizers, annotations.get(PROVISIONED_BY), _policy(volume))
        if right is annotations and [*finalizers] == kept:
            return volume
        annealed_volume = _with_annotations(volume, right)
        annealed_volume["metadata"]["finalizers"] = kept
        return await self._binder.update_volume(annealed_volume)

    async def _claim(self, volume: Object) -> Object | None:
        """The very claim that the volume names; the server is asked before a volume is given up."""
        request, uid = claim_of(volume), volume["spec"]["claimRef"]["uid"]
        claim = self._binder.claims.get(str(request))
        open_phase = volume.get("status", {}).get("phase") in _OPEN_PHASES
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
        if volume.get("status", {}).get("phase") not in _OPEN_PHASES:
            volume = await self._binder.set_phase(volume, "Released")
        if annotations_of(volume).get(MIGRATED_TO):
            return
        match _policy(volume):
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
        if _IN_TREE_PROTECTION in finalizers:
            kept = [name for name in finalizers if name != _IN_TREE_PROTECTION]
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
        volume = await self._binder.update_volume({**_with_annotations(volume, annotations), "spec": spec})
        await self._binder.set_phase(volume, "Available")


class _Resync:
    """Looks at everything now and then while something waits, as what is waited for may have come; upstream always does, at the
    same times."""

    def __init__(self, look: Callable[[], bool], clock: Clock, period: float) -> None:
        self._look = look
        self._clock = clock
        self._start = clock.monotonic()
        self._period = period

    def changed(self, event: Event, queue: Queue) -> None:
        """A claim or a volume."""
        if not isinstance(event, DeleteEvent) and _waits(object_of(event)):
            queue.add_after(EVERYTHING, self._until_next())

    async def reconcile(self, request: Request) -> Result | None:
        assert request == EVERYTHING
        return Result(requeue_after=self._until_next()) if self._look() else None

    def _until_next(self) -> float:
        return self._period - (self._clock.monotonic() - self._start) % self._period


def _waits(obj: Object) -> bool:
    """A claim or a volume of which it isn't certain that all is done: looking at the others again changes nothing."""
    return obj.get("status", {}).get("phase") not in _AT_REST


def _is_free(volume: Object) -> bool:
    return volume.get("status", {}).get("phase") == "Available" and not is_terminating(volume)


def _policy(volume: Object) -> str:
    policy: str = volume["spec"].get("persistentVolumeReclaimPolicy", "Retain")
    return policy


def _with_annotations(obj: Object, annotations: dict[str, str]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _capacity(before: Object | None, volume: Object) -> Object | None:
    """The volume's; while it is being resized, what it was before."""
    capacity: Object = volume["spec"].get("capacity") or {}
    earlier = annotations_of(volume).get(_PRE_RESIZE_CAPACITY)
    if earlier is not None:
        return {**(before or {}), "storage": earlier}
    same = "storage" in (before or {}) and amount((before or {})["storage"]) == storage_of(capacity)
    return before if same else capacity


def _protection(finalizers: Sequence[str], provisioner: str | None, policy: str) -> list[str]:
    """The finalizers that a volume should have while it must not go before what it stands for."""
    if provisioner is None:
        return [*finalizers]
    if provisioner in DRIVERS:
        return [name for name in finalizers if name != _IN_TREE_PROTECTION]
    if not provisioner.startswith(_IN_TREE):
        return [*finalizers]
    kept = [name for name in finalizers if name != _EXTERNAL_PROTECTION]
    if policy != "Delete":
        return [name for name in kept if name != _IN_TREE_PROTECTION]
    return kept if _IN_TREE_PROTECTION in kept else [*kept, _IN_TREE_PROTECTION]


def _deletion_problem(volume: Object) -> str | None:
    """Returns why the volume can't be deleted; "" if it can be; None if another component deletes it."""
    provisioner = annotations_of(volume).get(PROVISIONED_BY)
    spec, name = volume["spec"], volume["metadata"]["name"]
    if provisioner:
        if not provisioner.startswith(_IN_TREE):
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


def new(context: ControllerContext) -> Sequence[Controller]:
    binder = _Binder(context)
    configuration = context.configuration
    claim_controller = ClaimController(binder, provisions=configuration.enable_dynamic_provisioning)
    claims = context.controller(claim_controller, name=f"{context.name}-claims")
    volume_controller = VolumeController(binder, claims.queue)
    volumes = context.controller(volume_controller, name=f"{context.name}-volumes")
    claim_controller.volume_queue = volumes.queue
    claims.add_source(Informer(binder.claim_informer, claim_controller.claim_changed))
    volumes.add_source(Informer(binder.volume_informer, volume_controller.volume_changed))

    def look() -> bool:
        all_claims, all_volumes = binder.claim_informer.indexer.list(), binder.volume_informer.indexer.list()
        for claim in all_claims:
            claims.queue.add(request_for(claim))
        for volume in all_volumes:
            volumes.queue.add(request_for(volume))
        return any(map(_waits, all_claims)) or any(map(_waits, all_volumes))

    resyncing = _Resync(look, context.clock, configuration.pvclaimbinder_sync_period)
    resync = context.controller(resyncing, name=f"{context.name}-resync")
    resync.add_source(Informer(binder.claim_informer, resyncing.changed))
    resync.add_source(Informer(binder.volume_informer, resyncing.changed))
    return [volumes, claims, resync]
