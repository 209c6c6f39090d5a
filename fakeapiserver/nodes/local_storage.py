"""Volumes are made on simulated nodes, as in a local cluster with a provisioner for directories of its nodes.

A default storage class, whose claims wait for their first consumer and may grow; the provisioner makes their volumes on the node that was
chosen, lets them grow, and deletes what is released. Only the objects are made: no directory is.
Upstream: sigs.k8s.io/sig-storage-lib-external-provisioner/controller/{controller,volume_store}.go; the objects are those of
rancher/local-path-provisioner.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
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
    labels_of,
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

NAME: Final = "local-path-provisioner"
ACCOUNT: Final = "local-path-provisioner-service-account"
PROVISIONER: Final = "rancher.io/local-path"
STORAGE_CLASS: Final = "standard"
_NAMESPACE: Final = "kube-system"
_ROLE: Final = "local-path-provisioner-role"
_PATH: Final = "/var/local-path-provisioner"
_CHOSEN: Final = "local.path.provisioner/selected-node"
_HOSTNAME: Final = "kubernetes.io/hostname"
_MODES: Final = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
_RBAC: Final = "rbac.authorization.k8s.io"
_WORKERS: Final = 4
_LEAST_RETRY, _MOST_RETRY = 15.0, 1000.0  # seconds


def objects() -> Sequence[Object]:
    """Returns the objects that exist from the start: the storage class, and the provisioner's identity."""
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
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": _NAMESPACE},
        },
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": _ROLE}, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "local-path-provisioner-bind"},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": _NAMESPACE}],
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "allowVolumeExpansion": True,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    ]


class ProvisioningFailed(Exception):
    """Why a claim gets no volume; it is tried again."""


class Claims:
    """Requests are claims."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._recorder = context.recorder(PROVISIONER)
        self.claims = context.informer(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.informer(PERSISTENT_VOLUMES).indexer
        self._classes = context.informer(STORAGE_CLASSES).indexer
        self._nodes = context.informer(NODES).indexer

    async def reconcile(self, request: Request) -> None:
        claim = self.claims.indexer.get_by_key(str(request))
        if claim is None or not _is_ours(claim):
            return
        if claim["spec"].get("volumeName"):
            await self._expand(claim)
            return
        name = class_of(claim)
        storage_class = self._classes.get_by_key(name)
        if storage_class is None:
            raise ProvisioningFailed(f'storageclass.storage.k8s.io "{name}" not found')
        chosen = annotations_of(claim).get(SELECTED_NODE, "")
        if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not chosen:
            return
        if storage_class["provisioner"] == PROVISIONER and self._volumes.get_by_key(_volume_name(claim)) is None:
            await self._provision(claim, storage_class, chosen)

    async def _provision(self, claim: Object, storage_class: Object, chosen: str) -> None:
        if claim["spec"].get("volumeMode") == "Block":
            self._fail(claim, f"{PROVISIONER} does not support block volume provisioning")
            return
        node = self._nodes.get_by_key(chosen)
        if chosen and node is None:
            self._fail(claim, f'nodes "{chosen}" not found')
            await self._reschedule(claim)
            return
        message = f'External provisioner is provisioning volume for claim "{key_of(claim)}"'
        self._recorder.event(claim, "Normal", "Provisioning", message)
        problem = _problem(claim, node)
        if problem or node is None:
            problem = f'failed to provision volume with StorageClass "{storage_class["metadata"]["name"]}": {problem}'
            self._fail(claim, problem)
            raise ProvisioningFailed(problem)
        try:
            await self._client.resource(PERSISTENT_VOLUMES).create(_volume(claim, storage_class, node))
        except StatusError as error:
            if not is_already_exists(error):
                raise
        message = f"Successfully provisioned volume {_volume_name(claim)}"
        self._recorder.event(claim, "Normal", "ProvisioningSucceeded", message)

    async def _expand(self, claim: Object) -> None:
        """Gives the volume and the claim the capacity that the claim requests, as CSI's resizers do."""
        status = claim.get("status") or {}
        if status.get("phase") != "Bound" or requested_storage(claim) <= storage_of(status.get("capacity")):
            return
        capacity = {"capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]}}
        await self._client.resource(PERSISTENT_VOLUMES).patch(claim["spec"]["volumeName"], {"spec": capacity})
        claims = self._client.resource(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["namespace"])
        await claims.patch(claim["metadata"]["name"], {"status": capacity}, "status")
        self._recorder.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")

    def _fail(self, claim: Object, message: str) -> None:
        self._recorder.event(claim, "Warning", "ProvisioningFailed", message)

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

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.volumes = context.informer(PERSISTENT_VOLUMES)

    async def reconcile(self, request: Request) -> None:
        volume = self.volumes.indexer.get_by_key(request.name)
        if (
            volume is None
            or is_terminating(volume)
            or annotations_of(volume).get(PROVISIONED_BY) != PROVISIONER
            or (volume.get("status") or {}).get("phase") != "Released"
            or volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
        ):
            return
        try:
            await self._client.resource(PERSISTENT_VOLUMES).delete(request.name)
        except StatusError as error:
            if not is_not_found(error):
                raise


def _is_ours(claim: Object) -> bool:
    annotations = annotations_of(claim)
    return annotations.get(STORAGE_PROVISIONER, annotations.get(BETA_STORAGE_PROVISIONER)) == PROVISIONER


def _volume_name(claim: Object) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def _problem(claim: Object, node: Object | None) -> str:
    """Why it can't have a volume; "" if it can."""
    if claim["spec"].get("selector") is not None:
        return "claim.Spec.Selector is not supported"
    if not {*(claim["spec"].get("accessModes") or ())} <= _MODES:
        return "NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes"
    return "configuration error, no node was specified" if node is None else ""


def _volume(claim: Object, storage_class: Object, node: Object) -> Object:
    name, metadata, spec = _volume_name(claim), claim["metadata"], claim["spec"]
    hostname = labels_of(node).get(_HOSTNAME, "")
    expression = {"key": _HOSTNAME, "operator": "In", "values": [hostname]}
    path = f"{_PATH}/{name}_{metadata['namespace']}_{metadata['name']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": {_CHOSEN: node["metadata"]["name"], PROVISIONED_BY: PROVISIONER},
        },
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": object_reference(claim),
            "hostPath": {"path": path, "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": class_of(claim),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }


def new(context: ControllerContext) -> Sequence[Controller]:
    limiter = ItemExponentialFailureRateLimiter(_LEAST_RETRY, _MOST_RETRY)
    claims_reconciler, volumes_reconciler = Claims(context), Volumes(context)
    claims = context.controller(
        claims_reconciler, workers=_WORKERS, name=f"{context.name}-claims", rate_limiter=limiter
    )
    claims.add_source(Informer(claims_reconciler.claims, enqueue))
    volumes = context.controller(volumes_reconciler, workers=_WORKERS, name=f"{context.name}-volumes")
    volumes.add_source(Informer(volumes_reconciler.volumes, enqueue))
    return [claims, volumes]
