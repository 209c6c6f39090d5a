"""Volumes are made on simulated nodes, as in a local cluster with a provisioner for directories of its nodes.

A default storage class, whose claims wait for their first consumer and may grow; its volumes are on the node that was chosen. No
directory is made. The objects are those of rancher/local-path-provisioner.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import labels_of
from fakeapiserver.component_helpers.volumes.matching import PROVISIONED_BY, annotations_of
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.nodes import provisioning

NAME: Final = "local-path-provisioner"
ACCOUNT: Final = "local-path-provisioner-service-account"
PROVISIONER: Final = "rancher.io/local-path"
STORAGE_CLASS: Final = "standard"
_PATH: Final = "/var/local-path-provisioner"
_CHOSEN: Final = "local.path.provisioner/selected-node"
_HOSTNAME: Final = "kubernetes.io/hostname"
_MODES: Final = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})


def objects() -> Sequence[Object]:
    """Returns the objects that exist from the start: the storage class, and the provisioner's identity."""
    return [
        *provisioning.identity(ACCOUNT, "local-path-provisioner-role", "local-path-provisioner-bind"),
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


class LocalStorage(provisioning.Storage):
    """Directories of nodes."""

    def provisions_for(self, provisioner: str) -> bool:
        """Reports whether it is this provisioner's name."""
        return provisioner == PROVISIONER

    def owns(self, volume: Object) -> bool:
        """Reports whether the volume was made here."""
        return annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER

    def refusal(self, claim: Object) -> str:
        """A directory is no block device."""
        is_block = claim["spec"].get("volumeMode") == "Block"
        return f"{PROVISIONER} does not support block volume provisioning" if is_block else ""

    def problem(self, claim: Object, node: Object | None) -> str:
        """A directory isn't shared between nodes, and a node must have been chosen."""
        if claim["spec"].get("selector") is not None:
            return "claim.Spec.Selector is not supported"
        if not {*(claim["spec"].get("accessModes") or ())} <= _MODES:
            return "NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes"
        return "configuration error, no node was specified" if node is None else ""

    def volume(self, claim: Object, storage_class: Object, node: Object | None) -> Object:
        """A directory of the node."""
        assert node is not None
        metadata = claim["metadata"]
        expression = {"key": _HOSTNAME, "operator": "In", "values": [labels_of(node).get(_HOSTNAME, "")]}
        path = f"{_PATH}/{provisioning.volume_name(claim)}_{metadata['namespace']}_{metadata['name']}"
        return {
            "metadata": {"annotations": {_CHOSEN: node["metadata"]["name"]}},
            "spec": {
                "hostPath": {"path": path, "type": "DirectoryOrCreate"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            },
        }


def new(context: ControllerContext) -> Sequence[Controller]:
    """The controllers of the provisioner."""
    return provisioning.new(context, LocalStorage())
