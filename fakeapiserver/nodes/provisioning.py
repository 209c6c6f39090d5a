"""External provisioners and resizers: volumes are made for claims, grow with them, and are deleted once they are released.

Only the objects are made.
Upstream: sigs.k8s.io/sig-storage-lib-external-provisioner/controller/{controller,volume_store}.go,
kubernetes-csi/external-resizer/pkg/controller/controller.go.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict, is_not_found
from fakeapiserver.client.record import object_reference
from fakeapiserver.client.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    is_terminating,
    key_of,
)
from fakeapiserver.component_helpers.volumes.matching import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    annotations_of,
    class_of,
    requested_storage,
    storage_of,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_NAMESPACE: Final = "kube-system"
_RBAC: Final = "rbac.authorization.k8s.io"
_WORKERS: Final = 4
_LEAST_RETRY, _MOST_RETRY = 15.0, 1000.0  # seconds
_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class ProvisioningFailed(Exception):
    """Why a claim gets no volume; it is tried again."""


class Storage(ABC):
    """The maker of the volumes of some storage classes."""

    @abstractmethod
    def provisions_for(self, provisioner: str) -> bool:
        """Reports whether claims whose provisioner has this name get volumes here."""

    @abstractmethod
    def owns(self, volume: Object) -> bool:
        """Reports whether the volume grows and is deleted here."""

    @abstractmethod
    def refusal(self, claim: Object) -> str:
        """Why such a claim is never given a volume; "" if it may get one."""

    @abstractmethod
    def problem(self, claim: Object, node: Object | None) -> str:
        """Why the claim can't have a volume now; "" if it can. `node`: that of its first consumer, if one was chosen."""

    @abstractmethod
    def volume(self, claim: Object, storage_class: Object, node: Object | None) -> Object:
        """The metadata and the source of a new volume, for which there is no problem: `complete` adds the rest."""


class Claims:
    """Requests are claims."""

    def __init__(self, context: ControllerContext, storage: Storage) -> None:
        self._context = context
        self._client = context.client
        self._storage = storage
        self._recorders: dict[str, CoreEventRecorder] = {}
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.informer(PERSISTENT_VOLUMES).indexer
        self._classes = context.informer(STORAGE_CLASSES).indexer
        self._nodes = context.informer(NODES).indexer

    async def reconcile(self, request: Request) -> None:
        claim = self.claims.indexer.get_by_key(str(request))
        if claim is None:
            return
        if claim["spec"].get("volumeName"):
            await self._expand(claim)
            return
        annotations = annotations_of(claim)
        provisioner = annotations.get(STORAGE_PROVISIONER, annotations.get(BETA_STORAGE_PROVISIONER, ""))
        if not self._storage.provisions_for(provisioner):
            return
        name = class_of(claim)
        storage_class = self._classes.get_by_key(name)
        if storage_class is None:
            raise ProvisioningFailed(f'storageclass.storage.k8s.io "{name}" not found')
        chosen = annotations.get(SELECTED_NODE, "")
        if storage_class.get("volumeBindingMode") == _FOR_FIRST_CONSUMER and not chosen:
            return
        if self._volumes.get_by_key(volume_name(claim)) is None:
            await self._provision(claim, storage_class, provisioner)

    async def _provision(self, claim: Object, storage_class: Object, provisioner: str) -> None:
        recorder = self._recorder(provisioner)
        if refusal := self._storage.refusal(claim):
            recorder.event(claim, "Warning", "ProvisioningFailed", refusal)
            return
        chosen = annotations_of(claim).get(SELECTED_NODE, "")
        node = self._nodes.get_by_key(chosen)
        if chosen and node is None:
            recorder.event(claim, "Warning", "ProvisioningFailed", f'nodes "{chosen}" not found')
            await self._reschedule(claim)
            return
        message = f'External provisioner is provisioning volume for claim "{key_of(claim)}"'
        recorder.event(claim, "Normal", "Provisioning", message)
        problem = self._storage.problem(claim, node)
        if problem:
            problem = f'failed to provision volume with StorageClass "{storage_class["metadata"]["name"]}": {problem}'
            recorder.event(claim, "Warning", "ProvisioningFailed", problem)
            raise ProvisioningFailed(problem)
        try:
            volume = complete(self._storage.volume(claim, storage_class, node), claim, storage_class)
            await self._client.resource(PERSISTENT_VOLUMES).create(volume)
        except StatusError as error:
            if not is_already_exists(error):
                raise
        recorder.event(
            claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {volume_name(claim)}"
        )

    async def _expand(self, claim: Object) -> None:
        """Gives the volume and then the claim the capacity that the claim requests, as CSI's resizers do for drivers with nothing to do on
        the node."""
        status, name = claim.get("status") or {}, claim["spec"]["volumeName"]
        if status.get("phase") != "Bound" or requested_storage(claim) <= storage_of(status.get("capacity")):
            return
        volume = self._volumes.get_by_key(name)
        if volume is None or not self._storage.owns(volume):
            return
        recorder = self._recorder(_driver(volume).replace("/", "-"), "external-resizer ")
        capacity = {"storage": claim["spec"]["resources"]["requests"]["storage"]}
        now = rfc3339(self._context.clock.now())
        resizing = {"type": "Resizing", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        claims = self._client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])

        async def set_status(**changes: object) -> None:
            await claims.patch(claim["metadata"]["name"], {"status": changes}, "status")

        await set_status(
            conditions=[resizing],
            allocatedResources=capacity,
            allocatedResourceStatuses={"storage": "ControllerResizeInProgress"},
        )
        recorder.event(claim, "Normal", "Resizing", f"External resizer is resizing volume {name}")
        await self._client.resource(PERSISTENT_VOLUMES).patch(name, {"spec": {"capacity": capacity}})
        await set_status(capacity=capacity, conditions=None, allocatedResourceStatuses=None)
        recorder.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")

    def _recorder(self, driver: str, role: str = "") -> CoreEventRecorder:
        component = f"{role}{driver}"
        if component not in self._recorders:
            self._recorders[component] = self._context.recorder(component)
        return self._recorders[component]

    async def _reschedule(self, claim: Object) -> None:
        """Makes the scheduler choose another node."""
        annotations = {name: value for name, value in annotations_of(claim).items() if name != SELECTED_NODE}
        claims = self._client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])
        try:
            await claims.update({**claim, "metadata": {**claim["metadata"], "annotations": annotations}})
        except StatusError as error:
            if not (is_conflict(error) or is_not_found(error)):
                raise


class Volumes:
    """Requests are volumes."""

    def __init__(self, context: ControllerContext, storage: Storage) -> None:
        self._client = context.client
        self._storage = storage
        self.volumes = context.informer(PERSISTENT_VOLUMES)

    async def reconcile(self, request: Request) -> None:
        volume = self.volumes.indexer.get_by_key(request.name)
        if (
            volume is None
            or is_terminating(volume)
            or PROVISIONED_BY not in annotations_of(volume)
            or not self._storage.owns(volume)
            or (volume.get("status") or {}).get("phase") != "Released"
            or volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
        ):
            return
        try:
            await self._client.resource(PERSISTENT_VOLUMES).delete(request.name)
        except StatusError as error:
            if not is_not_found(error):
                raise


def volume_name(claim: Object) -> str:
    """The name of the volume that is made for a claim."""
    return f"pvc-{claim['metadata']['uid']}"


def complete(volume: Object, claim: Object, storage_class: Object) -> Object:
    """The volume with what follows from its claim and its class."""
    metadata, spec = volume["metadata"], claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            **metadata,
            "name": volume_name(claim),
            "annotations": {**metadata.get("annotations", {}), PROVISIONED_BY: storage_class["provisioner"]},
        },
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": object_reference(claim),
            **volume["spec"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": class_of(claim),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }


def identity(account: str, role: str, binding: str, further: Sequence[Object] = ()) -> Sequence[Object]:
    """The service account of a provisioner, and its rights; `further`: rules of its role besides those of each provisioner."""
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": read},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": [*read, "update"]},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims/status"], "verbs": ["patch"]},
        {
            "apiGroups": [""],
            "resources": ["persistentvolumes"],
            "verbs": [*read, "create", "patch", "update", "delete"],
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": read},
        *further,
    ]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": _NAMESPACE}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": binding},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": _NAMESPACE}],
        },
    ]


def new(context: ControllerContext, storage: Storage) -> Sequence[Controller]:
    """The controllers of a provisioner and its resizer."""
    limiter = ItemExponentialFailureRateLimiter(_LEAST_RETRY, _MOST_RETRY)
    claims_reconciler, volumes_reconciler = Claims(context, storage), Volumes(context, storage)
    claims = context.controller(
        claims_reconciler, workers=_WORKERS, name=f"{context.name}-claims", rate_limiter=limiter
    )
    claims.add_source(Informer(claims_reconciler.claims, enqueue))
    volumes = context.controller(volumes_reconciler, workers=_WORKERS, name=f"{context.name}-volumes")
    volumes.add_source(Informer(volumes_reconciler.volumes, enqueue))
    return [claims, volumes]


def _driver(volume: Object) -> str:
    """The driver that grows a volume."""
    driver: str = (volume["spec"].get("csi") or {}).get("driver") or annotations_of(volume).get(PROVISIONED_BY, "")
    return driver
