"""The base of both controllers: the newest objects, and their writes."""

from collections.abc import Iterable, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import amount
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.cache.shared_informer import strip_managed_fields
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    is_terminating,
    key_of,
)
from fakeapiserver.component_helpers.volumes.csi_migration import DRIVERS
from fakeapiserver.component_helpers.volumes.matching import (
    BIND_COMPLETED,
    annotations_of,
    class_of,
    is_bound_to,
    storage_of,
)
from fakeapiserver.component_helpers.volumes.pod_volumes import add_pod_pvc_indexer
from fakeapiserver.controller_runtime.handler import request_for
from fakeapiserver.controller_runtime.reconcile import Request

IN_TREE: Final = "kubernetes.io/"
_PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
_EXTERNAL_PROTECTION: Final = "external-provisioner.volume.kubernetes.io/finalizer"
IN_TREE_PROTECTION: Final = "kubernetes.io/pv-controller"
OPEN_PHASES: Final = ("Released", "Failed")
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


class Binder:
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
        """Reports whether the claim waits for a pod that uses it to be scheduled."""
        storage_class = self.classes.get_by_key(class_of(claim))
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def waits(obj: Object) -> bool:
    """A claim or a volume of which it isn't certain that all is done: looking at the others again changes nothing."""
    return obj.get("status", {}).get("phase") not in _AT_REST


def is_free(volume: Object) -> bool:
    return volume.get("status", {}).get("phase") == "Available" and not is_terminating(volume)


def reclaim_policy(volume: Object) -> str:
    policy: str = volume["spec"].get("persistentVolumeReclaimPolicy", "Retain")
    return policy


def with_annotations(obj: Object, annotations: dict[str, str]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def capacity_of(before: Object | None, volume: Object) -> Object | None:
    """The volume's; while it is being resized, what it was before."""
    capacity: Object = volume["spec"].get("capacity") or {}
    earlier = annotations_of(volume).get(_PRE_RESIZE_CAPACITY)
    if earlier is not None:
        return {**(before or {}), "storage": earlier}
    same = "storage" in (before or {}) and amount((before or {})["storage"]) == storage_of(capacity)
    return before if same else capacity


def protection(finalizers: Sequence[str], provisioner: str | None, policy: str) -> list[str]:
    """The finalizers that a volume should have while it must not go before what it stands for."""
    if provisioner is None:
        return [*finalizers]
    if provisioner in DRIVERS:
        return [name for name in finalizers if name != IN_TREE_PROTECTION]
    if not provisioner.startswith(IN_TREE):
        return [*finalizers]
    kept = [name for name in finalizers if name != _EXTERNAL_PROTECTION]
    if policy != "Delete":
        return [name for name in kept if name != IN_TREE_PROTECTION]
    return kept if IN_TREE_PROTECTION in kept else [*kept, IN_TREE_PROTECTION]
